"""Digest: computes a Snapshot from what the store holds, and publishes it. Reads only the score rows that are new.

The leader of several workers stores its Snapshot, as JSON by the types of its fields, and the others show the same.
What belongs to one worker (how far its sources are behind, its disk, what it has counted) is its own everywhere.
"""

import asyncio
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from ragwatch.board import Board
from ragwatch.errors import NotLeadingError, StoreError
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.pipeline.feedback import FeedbackWindows
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.sampling_control import SamplingControl
from ragwatch.pipeline.windows import MINUTE, SegmentWindows, SlidingWindows
from ragwatch.ports import Judge, LoopContext, Peak, Store, TrendStore
from ragwatch.statistics.snapshot import Gauge, Gauges, Lag, Snapshot
from ragwatch.statistics.tally import Tallies, violations
from ragwatch.statistics.trends import SPANS, TrendKey, TrendKind, start_of

STATE = "snapshot"


class SharedSnapshot:
    """The Snapshot of the leader, in the store.

    Args:
        store: The store of this worker; writes are refused unless it leads.
        leads: Whether this worker computes the figures.
        own_tallies: What this worker has counted.
    """

    def __init__(self, store: Store, leads: Callable[[], bool], own_tallies: Callable[[], Tallies]) -> None:
        self._store = store
        self.leads = leads
        self.own_tallies = own_tallies

    def save(self, snapshot: Snapshot) -> None:
        """Store the figures for the other workers.

        Raises:
            StoreError: They could not be written, or another worker leads.
        """
        shared = replace(snapshot, lags={}, probabilities={}, exported=None)
        self._store.remember(STATE, {"snapshot": to_record(shared)})

    def latest(self) -> Snapshot | None:
        """Return the figures of the leader; None if there are none, or only those of another version."""
        state = self._store.recall(STATE)
        if state is None:
            return None
        try:
            return snapshot_of(state.get("snapshot"))
        except ValueError:
            return None


def to_record(value: object) -> object:
    """Convert a value to JSON values: objects to lists of their fields, mappings to lists of pairs.

    >>> to_record({("a", "b"): 1.0})
    [[['a', 'b'], 1.0]]
    """
    if is_dataclass(value):
        return [to_record(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return [[to_record(key), to_record(item)] for key, item in value.items()]
    if isinstance(value, tuple):
        return [to_record(item) for item in value]
    return value


def snapshot_of(record: object) -> Snapshot:
    """Convert back. Raises `ValueError` if the record is of a version with other fields."""
    try:
        snapshot = _value_of(Snapshot, record)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    if not isinstance(snapshot, Snapshot):
        raise ValueError("not a snapshot")  # noqa: TRY004 - a record of another version
    return snapshot


def _value_of(kind: Any, record: Any) -> Any:  # noqa: ANN401 - a type, and JSON
    if isinstance(kind, type) and is_dataclass(kind):
        pairs = zip(_fields(kind), record, strict=True)
        return kind(**{name: _value_of(hint, item) for (name, hint), item in pairs})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):  # here always with None
        return None if record is None else _value_of(arguments[0], record)
    if origin is tuple:
        hints = arguments[:1] * len(record) if arguments[-1] is Ellipsis else arguments
        return tuple(_value_of(hint, item) for hint, item in zip(hints, record, strict=True))
    if origin is Counter:
        return Counter({_value_of(arguments[0], key): number for key, number in record})
    if origin is not None:
        return {_value_of(arguments[0], key): _value_of(arguments[1], item) for key, item in record}
    return _leaf_of(kind, record)


def _leaf_of(kind: Any, record: Any) -> Any:  # noqa: ANN401 - the same
    if isinstance(kind, type) and issubclass(kind, Enum):
        return quantity_of(record) if kind is Quantity else kind(record)  # a quantity may be a criterion
    return record


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))


ROWS = 5000
OVERDUE_SECONDS = 60.0  # a draw that has been pending for longer counts as unjudged and widens the worst-case bounds
RISE = 1.1  # by which factor evidence must exceed what is stored to be stored again, so that few steps write
_EVIDENCE = {
    Gauge.DRIFT_EVIDENCE: (TrendKind.DRIFT, Gauge.DRIFT_THRESHOLD),
    Gauge.TRAFFIC_DRIFT_EVIDENCE: (TrendKind.TRAFFIC_DRIFT, Gauge.TRAFFIC_DRIFT_THRESHOLD),
}


@dataclass(frozen=True, slots=True)
class DigestInputs:
    """Values of other components, read at each digest."""

    lags: Callable[[], Mapping[str, Lag]]  # how far each source is behind, by name
    probabilities: Callable[[], Mapping[str, float]]  # inclusion probability in force, by route
    problems: Callable[[], tuple[str, ...]]  # what keeps ragwatch from being ready
    gauges: Callable[[], Gauges] = dict  # all other gauges that have a value
    own_gauges: Callable[[], Gauges] = dict  # those of this process, where several share a store


class DigestLoop:
    """The loop that publishes Snapshots.

    Args:
        patience: Seconds after which a pending draw counts as unjudged.
        shared: The figures of the leader, where several workers share a store; None where there is one process.
    """

    def __init__(  # noqa: PLR0913 - dependencies, by keyword
        self,
        windows: SlidingWindows,
        inputs: DigestInputs,
        context: LoopContext,
        *,
        shares: SamplingControl,
        board: Board,
        judges: Sequence[Judge],
        labels: LabelCorrection,
        feedback: FeedbackWindows,
        segments: SegmentWindows,
        patience: float = OVERDUE_SECONDS,
        shared: SharedSnapshot | None = None,
    ) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self._shared = shared
        self._windows = windows
        self._patience = patience
        self._labels = labels
        self._feedback = feedback
        self._segments = segments
        self._inputs = inputs
        self._shares = shares
        self._board = board
        self._judges = {judge.name: (judge.kind, judge.version) for judge in judges}
        self._peaks = PeakRecorder(context.store)
        self._last_seq = 0
        self._last_step = 0.0

    async def step(self) -> bool:
        """Publish a new Snapshot. True when there were new verdicts."""
        return await asyncio.to_thread(self._step)

    def _step(self) -> bool:
        shared = self._shared
        if shared is None:
            snapshot, news = self._computed(self._clock())
        elif not shared.leads() and (latest := shared.latest()) is not None:
            self._shares.adopt(latest.shares, latest.budgets)
            news = False
            snapshot = replace(
                latest,
                probabilities=self._inputs.probabilities(),
                lags=self._inputs.lags(),
                gauges={**latest.gauges, **self._inputs.own_gauges()},
                problems=self._inputs.problems(),
                exported=shared.own_tallies(),
                leads=False,
            )
        else:  # also before the first leader has stored figures, or while that one is of another version
            snapshot, news = self._computed(self._clock())
            snapshot = replace(snapshot, exported=shared.own_tallies(), leads=shared.leads())
        self._board.publish(snapshot)
        if shared is None or shared.leads():
            self._peaks.take(snapshot.at, snapshot.gauges)
        if shared is not None and shared.leads():
            with suppress(NotLeadingError):  # the next leader stores its figures
                shared.save(snapshot)
        return news

    def _computed(self, now: float) -> tuple[Snapshot, bool]:
        """The figures of this instant, and whether there were new verdicts."""
        news = self._catch_up(now)
        self._windows.limit_times(now)
        self._windows.forget(now)
        self._segments.forget(now)
        estimates, coverage = self._windows.summary(now, self._store.overdue(now - self._patience))
        corrected, label_gauges = self._labels.correct(now, estimates)
        tallies, pending = self._store.tallies_and_pending()
        snapshot = Snapshot(
            at=now,
            estimates=estimates,
            corrected=corrected,
            segments=self._segments.summary(now),
            coverage=coverage,
            stages=self._windows.stages(now),
            last_sample=dict(self._windows.last_sample),
            segment_last=dict(self._segments.last_sample),
            exemplars=dict(self._windows.exemplars),
            tallies=tallies,
            pending=pending,
            probabilities=self._inputs.probabilities(),
            shares=self._shares.in_force(),
            budgets=self._shares.budgets(),
            user_scores=self._feedback.summary(now),
            gauges={**self._inputs.gauges(), **label_gauges, **self._inputs.own_gauges()},
            lags=self._inputs.lags(),
            judges=self._judges,
            problems=(*self._inputs.problems(), *self._violations(tallies, pending)),
        )
        return snapshot, news

    def _violations(self, tallies: Tallies, pending: Mapping[str, int]) -> tuple[str, ...]:
        violated = violations(tallies, pending)
        for invariant, figures in violated.items():
            self._telemetry.invariant_violated(invariant, figures)
        return tuple(f"invariant violated: {figures}" for figures in violated.values())

    def _catch_up(self, now: float) -> bool:
        news = False
        if self._last_step - now > MINUTE:  # the clock was ahead, and left out rows that are not too old after all
            for windows in (self._windows, self._feedback, self._segments):
                windows.clear()
            self._last_seq = 0
        self._last_step = now
        while rows := self._store.window(self._last_seq, now - self._windows.longest, ROWS):
            for windows in (self._windows, self._feedback, self._segments):
                windows.add(rows)
            self._last_seq = rows[-1].seq
            news = True
        return news


class PeakRecorder:
    """Stores how high the evidence of drift was, for charts: the first of a bucket of time, and what is higher in it.

    While the store cannot be written, charts have gaps, and nothing else is affected.
    """

    def __init__(self, store: TrendStore) -> None:
        self._store = store
        self._stored: dict[tuple[TrendKey, int], tuple[int, float]] = {}  # start and value, by series and span

    def take(self, now: float, gauges: Gauges) -> None:
        """Store the evidence of an instant where it is a peak."""
        peaks = [peak for peak in peaks_of(now, gauges) if self._is_higher(peak)]
        if peaks:
            with suppress(StoreError):  # a full disk; the next step tries again
                self._store.add_peaks(peaks)
                self._stored.update({(peak.series, peak.span): (peak.start, peak.value) for peak in peaks})

    def _is_higher(self, peak: Peak) -> bool:
        start, value = self._stored.get((peak.series, peak.span), (None, 0.0))
        return start != peak.start or peak.value > max(RISE * value, 1.0)


def peaks_of(now: float, gauges: Gauges) -> Iterator[Peak]:
    """Yield the evidence of an instant as peaks of its buckets."""
    for (gauge, labels), value in gauges.items():
        if gauge in _EVIDENCE:
            kind, threshold = _EVIDENCE[gauge]
            name, route = labels
            series = TrendKey(kind, route, name)
            for span in SPANS:
                yield Peak(series, span, start_of(now, span), value, gauges.get((threshold, labels)))
