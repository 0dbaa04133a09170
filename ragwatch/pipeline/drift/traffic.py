"""Traffic drift: what every request tells without a judge is watched for a change of its distribution.

Early warnings: they say that something is different, not that it is worse, and have a budget of false alarms of their
own. What is watched are the tallies of all traffic, by what they have grown since the last look. Counts and evidence
are stored together, so that a kill at any instant loses no request and counts none twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, cast

from ragwatch.core.drift.detect import (
    Alarm,
    Unit,
    Watch,
    acknowledge,
    begin,
    cap_time,
    from_dict,
    renew,
    step,
    threshold_for,
    to_dict,
)
from ragwatch.core.drift.detectors.shift import Counts, CountScheme, ShiftDetector
from ragwatch.core.snapshot import Gauge, Gauges
from ragwatch.core.tally import BUCKETS, Tallies, bound_label
from ragwatch.errors import StoreError
from ragwatch.pipeline.drift.signals import HISTOGRAMS, Signal, buckets_of, counts_of
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import NoteStore, StoredRun
from ragwatch.telemetry import Telemetry

KIND = "traffic_drift"
_LAST_RUNS = 20
Cell = tuple[str, str]  # signal, route


@dataclass(frozen=True, slots=True)
class TrafficRules:
    """What is watched, and how.

    Attributes:
        signals: What.
        routes: Where, as label values.
        false_alarm_days: All detectors together raise one false alarm in so many days, or fewer.
        requests: Requests to learn from, at least.
        reference_seconds: Time to learn for, at least: what is ordinary differs by the hour.
        tolerance: What a share may differ without a warning.
    """

    signals: tuple[Signal, ...]
    routes: tuple[str, ...]
    false_alarm_days: float = 30.0
    requests: int = 5000
    reference_seconds: float = 86400.0
    tolerance: float = 0.05

    @property
    def cells(self) -> tuple[tuple[Signal, str], ...]:
        """All (signal, route) that have a detector."""
        return tuple((signal, route) for signal in self.signals for route in self.routes)

    def scheme(self, signal: Signal) -> CountScheme:
        """How a signal is watched."""
        threshold = threshold_for(self.false_alarm_days, len(self.cells))
        return CountScheme(
            threshold, buckets_of(signal), self.requests, self.tolerance, Unit.DAYS, span=self.reference_seconds
        )


@dataclass(slots=True)
class _SignalState:
    """Everything to remember of one signal on one route.

    Attributes:
        watch: What its detector knows.
        counts: The tallies as they were at the last look.
        told: Number of the warning that was recorded last.
        vocabulary: Mark of the vocabulary that its questions were measured with; None for other signals.
    """

    watch: Watch[Counts]
    counts: tuple[int, ...]
    told: int | None = None
    vocabulary: str | None = None


class TrafficDriftLoop:
    """The loop that watches signals.

    Args:
        rules: What to watch.
        tallies: All counts at present.
        store: Keeps what is remembered.
        clock: Seconds since the epoch.
        vocabularies: What the words of questions are measured with; None where they are not.
    """

    def __init__(
        self,
        rules: TrafficRules,
        *,
        tallies: Callable[[], Tallies],
        store: NoteStore,
        telemetry: Telemetry,
        clock: Callable[[], float],
        vocabularies: Vocabularies | None = None,
    ) -> None:
        self.rules = rules
        self._vocabularies = vocabularies
        self._tallies = tallies
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._turn = asyncio.Lock()
        self._schemes = {signal: rules.scheme(signal) for signal in rules.signals}
        self._seen: dict[Cell, _SignalState] = {}
        self._gauges: Gauges = {}

    def resume(self) -> None:
        """Continue where an earlier process stopped. What is watched for the first time begins with this instant.

        Raises:
            StoreError: The store cannot be read.
        """
        kept = self._store.recall(KIND) or {}
        tallies = self._tallies()
        for signal, route in self.rules.cells:
            now = counts_of(tallies, signal, route)
            self._seen[signal, route] = self._restored(kept.get(f"{signal}/{route}"), (signal, route), now)
        with suppress(StoreError):  # a full disk stops the sources, not us: there is little to be missed meanwhile
            self._keep()  # what begins now begins now for good
        self._show()

    async def step(self) -> bool:
        """Take the requests that came since the last step. True when there were some."""
        async with self._turn:
            return await asyncio.to_thread(self._step)

    async def acknowledge(
        self, signal: str | None = None, route: str | None = None, *, anew: bool = False
    ) -> tuple[Cell, ...]:
        """Take warnings down, and with `anew` learn once more what is ordinary. Returns what that was done to.

        Args:
            signal: Only this one; None for all.
            route: Only this one; None for all.
            anew: Whether the reference is dropped too, warning or not.

        Raises:
            StoreError: It could not be written; a restart would not know of it.
        """
        async with self._turn:
            return await asyncio.to_thread(self._settle, signal, route, anew=anew)

    def gauges(self) -> Gauges:
        """What the last step showed."""
        return self._gauges

    def _restored(self, kept: Mapping[str, Any] | None, cell: tuple[Signal, str], now: tuple[int, ...]) -> _SignalState:
        signal, route = cell
        fresh = _SignalState(begin(self._schemes[signal]), now, vocabulary=self._mark(signal, route))
        if kept is None:
            return fresh
        try:
            counts = tuple(map(int, kept["counts"]))
            watch = from_dict(self._schemes[signal], kept["watch"])
            told, vocabulary = kept["told"], kept.get("vocabulary")
        except (KeyError, TypeError, ValueError):  # kept by a version that counted other things
            return fresh
        return _SignalState(watch, counts, told, vocabulary) if len(counts) == len(now) else fresh

    def _step(self) -> bool:
        tallies, now = self._tallies(), self._clock()
        moved = [self._take(cell, seen, tallies, now) for cell, seen in self._seen.items()]
        if any(moved):
            self._keep()
        self._tell()
        self._show()
        return any(moved)

    def _take(self, cell: Cell, seen: _SignalState, tallies: Tallies, now: float) -> bool:
        signal = Signal(cell[0])
        counts = counts_of(tallies, signal, cell[1])
        if seen.vocabulary != (mark := self._mark(signal, cell[1])):
            # Another vocabulary measures other things: what was learnt with the old one says nothing any more.
            self._begin_anew(signal, seen)
            seen.vocabulary, seen.counts = mark, counts
            return True
        more = tuple(one - other for one, other in zip(counts, seen.counts, strict=True))
        if not any(more):
            return False
        seen.counts, seen.watch = counts, cap_time(seen.watch, now)
        if min(more) < 0:  # kept by a version with other buckets: the difference is no traffic
            return True
        seen.watch = step(self._schemes[signal], seen.watch, seen.watch.seq + sum(more), now, more)
        return True

    def _tell(self) -> None:
        """Record each warning once, whenever the process that raised it was killed."""
        news = False
        for cell, seen in self._seen.items():
            alarm = seen.watch.alarm
            if alarm is None or seen.told == alarm.seq:
                continue
            name = "/".join(cell)
            if all(run.body["seq"] != alarm.seq for run in self._store.runs(KIND, name, _LAST_RUNS)):
                self._record(cell, name, seen.watch, alarm)
            seen.told, news = alarm.seq, True
        if news:
            self._keep()

    def _record(self, cell: Cell, name: str, watch: Watch[Counts], alarm: Alarm) -> None:
        body = {**asdict(alarm), **_where(Signal(cell[0]), watch)}
        self._store.record_run(StoredRun(KIND, name, alarm.at, failing=True, body=body), Tallies())
        self._telemetry.traffic_shifted(*cell, cut=str(body["cut"]), direction=str(body["direction"]))

    def _settle(self, signal: str | None, route: str | None, *, anew: bool) -> tuple[Cell, ...]:
        self._tell()  # what a kill kept from being recorded would be gone with the warning
        done = []
        for cell, seen in self._seen.items():
            if signal not in (None, cell[0]) or route not in (None, cell[1]):
                continue
            if anew:
                self._begin_anew(Signal(cell[0]), seen)
                if self._vocabularies is not None and cell[0] == Signal.QUESTION_WORDS:
                    self._vocabularies.renew(cell[1])
            elif seen.watch.alarm is not None:
                seen.watch = acknowledge(seen.watch)
            else:
                continue
            done.append(cell)
        if done:
            self._keep()
            self._show()
        return tuple(done)

    def _begin_anew(self, signal: Signal, seen: _SignalState) -> None:
        seen.watch = renew(self._schemes[signal], seen.watch)

    def _mark(self, signal: str, route: str) -> str | None:
        if self._vocabularies is None or signal != Signal.QUESTION_WORDS:
            return None
        return self._vocabularies.mark(route)

    def _keep(self) -> None:
        self._store.remember(
            KIND,
            {
                "/".join(cell): {
                    "watch": to_dict(seen.watch),
                    "counts": list(seen.counts),
                    "told": seen.told,
                    "vocabulary": seen.vocabulary,
                }
                for cell, seen in self._seen.items()
            },
        )

    def _show(self) -> None:
        found: dict[tuple[Gauge, tuple[str, ...]], float] = {}
        for cell, seen in self._seen.items():
            if seen.watch.evidence is not None:
                found[Gauge.TRAFFIC_DRIFT_EVIDENCE, cell] = seen.watch.evidence
                found[Gauge.TRAFFIC_DRIFT_ALARM, cell] = float(seen.watch.alarm is not None)
        self._gauges = found


def _where(signal: Signal, watch: Watch[Counts]) -> dict[str, str]:
    """Between which values the shift is clearest, and which way they went."""
    detector = cast("ShiftDetector", watch.detector)  # only with a detector is there a warning
    cut, direction = detector.where(watch.numbers)
    bound = bound_label(BUCKETS[HISTOGRAMS[signal]][cut]) if signal in HISTOGRAMS else "yes"
    return {"cut": bound, "direction": str(direction)}
