"""Traffic: watches the distributions of signals of all traffic, and whether each route still answers. Needs no judge.

Alarms of traffic drift are early warnings: they tell that traffic is different, not that answers are worse, and have a
budget of false alarms of their own. What is watched is the growth of the tallies since the last step. Counts and
evidence are stored together, so that a kill at any instant loses no request and counts none twice.

Silence is judged by the rhythm of each route (see `ragwatch.statistics.drift.silence`), and ends with the next answer.
The route `other` is what no other route takes, and a new route takes from it: it is silent only while no route answers.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ragwatch.errors import StoreError
from ragwatch.model.sample import OTHER
from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.loop import Cell, DriftLoop, Figures, Standing, name_of
from ragwatch.pipeline.drift.rules import RISK
from ragwatch.pipeline.drift.streams import SignalStream
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Clock, LoopContext, SavedState, Store, StoredRun
from ragwatch.statistics.drift import silence
from ragwatch.statistics.drift.detect import Alarm, Unit, threshold_for
from ragwatch.statistics.drift.recovery import EndTest
from ragwatch.statistics.drift.shift import CountScheme
from ragwatch.statistics.drift.silence import Rhythm
from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.statistics.tally import BUCKETS, INF, Tallies, Tally, bound_label

KIND = "traffic_drift"


@dataclass(frozen=True, slots=True)
class TrafficRules:
    """Which signals are watched, and how."""

    signals: tuple[Signal, ...]
    routes: tuple[str, ...]
    false_alarm_days: float = 30.0  # all detectors together raise one false alarm in so many days, or fewer
    requests: int = 5000  # requests to learn from, at least
    reference_seconds: float = 86400.0  # time to learn for, at least: traffic differs by the hour
    tolerance: float = 0.05  # change of a share that is ignored

    @property
    def cells(self) -> tuple[tuple[Signal, str], ...]:
        """All (signal, route) that have a detector."""
        return tuple((signal, route) for signal in self.signals for route in self.routes)

    def scheme(self, signal: Signal) -> CountScheme:
        """How a signal is watched."""
        threshold = threshold_for(self.false_alarm_days, len(self.cells))
        return CountScheme(
            threshold,
            buckets_of(signal),
            self.requests,
            self.tolerance,
            unit=Unit.DAYS,
            risk=RISK / len(self.cells),
            span=self.reference_seconds,
            doubles_from=doubles_from(signal),
        )


class TrafficDriftLoop(DriftLoop[SignalStream]):
    """The loop that watches signals of all traffic. Without vocabularies, words of questions are not watched."""

    kind = KIND
    pause_gauge = Gauge.TRAFFIC_DRIFT_PAUSED

    def __init__(
        self,
        rules: TrafficRules,
        context: LoopContext,
        *,
        vocabularies: Vocabularies | None = None,
        standing: Standing | None = None,
    ) -> None:
        super().__init__(context, standing=standing)
        self.rules = rules
        self._vocabularies = vocabularies

    def _load(self, state: SavedState | None) -> None:
        """Load the state. Signals that are watched for the first time start with the counts of this instant."""
        tallies = self._store.tallies()
        for signal, route in self.rules.cells:
            counts = counts_of(tallies, signal, route)
            end = EndTest(self.rules.false_alarm_days)
            stream = SignalStream(signal, self.rules.scheme(signal), end, counts, self._fingerprint(signal, route))
            self._streams[signal, route] = stream
            stored = (state or {}).get(name_of((signal, route)))
            if stored is None:
                continue
            with suppress(KeyError, TypeError, ValueError):  # stored by a version that counted other things
                recorded = stored["told"]
                stream.load(stored)
                if recorded is not None:
                    self._recorded[signal, route] = recorded
        with suppress(StoreError):  # a full disk stops the sources, so that few requests can be missed until it is not
            self._save()  # a stream that starts now continues after a restart

    def _state(self) -> Mapping[str, object]:
        return {
            name_of(cell): {**stream.to_dict(), "told": self._recorded.get(cell)}
            for cell, stream in self._streams.items()
        }

    def _observe(self, now: float) -> bool:
        tallies = self._store.tallies()
        changed = [self._take(cell, stream, tallies, now) for cell, stream in self._streams.items()]
        if any(changed):
            self._save()
        return any(changed)

    def _take(self, cell: Cell, stream: SignalStream, tallies: Tallies, now: float) -> bool:
        signal, (_, route) = stream.signal, cell
        counts, fingerprint = counts_of(tallies, signal, route), self._fingerprint(signal, route)
        changed = stream.take(counts, now, fingerprint, learn=route not in self._paused_routes)
        if stream.alarm is not None and (mend := stream.mend) is not None:
            self._record_once(cell, stream.alarm)
            self._record_end(cell, stream.alarm, mend, now, f"{mend.answers} answers")
            self._acknowledge(cell)
        return changed

    def _renew(self, cell: Cell) -> None:
        super()._renew(cell)
        if self._vocabularies is not None and cell[0] == Signal.QUESTION_WORDS:
            self._vocabularies.renew(cell[1])

    def _record(self, cell: Cell, alarm: Alarm) -> None:
        change = self._streams[cell].change()
        figures = {} if change is None else {"began": change.began, "before": change.before, "since": change.since}
        body = {**alarm._asdict(), **self._streams[cell].shift(), **figures}
        self._store.record_run(StoredRun(KIND, name_of(cell), alarm.at, failing=True, body=body), Tallies())
        self._telemetry.traffic_shifted(*cell, cut=str(body["cut"]), direction=str(body["direction"]))

    def _fingerprint(self, signal: Signal, route: str) -> str | None:
        """Fingerprint of the vocabulary that a signal is measured with; None for none."""
        if self._vocabularies is None or signal != Signal.QUESTION_WORDS:
            return None
        return self._vocabularies.mark(route)

    def _figures(self) -> Figures:
        figures: Figures = {}
        for cell, stream in self._streams.items():
            if stream.evidence is not None:
                figures[Gauge.TRAFFIC_DRIFT_EVIDENCE, cell] = stream.evidence
                if stream.threshold is not None:
                    figures[Gauge.TRAFFIC_DRIFT_THRESHOLD, cell] = stream.threshold
                figures[Gauge.TRAFFIC_DRIFT_ALARM, cell] = float(stream.alarm is not None)
            if (change := stream.change()) is not None:
                figures[Gauge.TRAFFIC_DRIFT_BEGAN, cell] = change.began
                for period, share in (("before", change.before), ("since", change.since)):
                    figures[Gauge.TRAFFIC_DRIFT_SHARE, (*cell, change.above or "", period)] = share
                figures[Gauge.TRAFFIC_DRIFT_SHARE_LOW, (*cell, change.above or "")] = change.since_low
        return figures


def buckets_of(signal: Signal) -> int:
    """Number of buckets of a signal's distribution; 2 for a rate.

    >>> buckets_of(Signal.ABSTENTIONS), buckets_of(Signal.CONTEXTS)
    (2, 12)
    """
    bounds = signal.row.bounds
    return 2 if bounds is None else len(bounds) + 1


def doubles_from(signal: Signal) -> int | None:
    """Index of the bound from which on only values that more than double are a change; None if every change is one."""
    row = signal.row
    return None if row.bounds is None or row.doubles_from is None else row.bounds.index(row.doubles_from)


def counts_of(tallies: Tallies, signal: Signal, route: str) -> tuple[int, ...]:
    """Number of requests in each bucket so far; for a rate: without, and with.

    >>> tallies = Tallies({(Tally.CONTEXTS, ("search", "5.0")): 8, (Tally.ABSTENTIONS, ("search",)): 3})
    >>> counts_of(tallies, Signal.ABSTENTIONS, "search")
    (5, 3)
    """
    counter = Tally(signal.row.counter)
    histogram = Tally.CONTEXTS if signal.row.bounds is None else counter  # the first counts every request
    labels = [*map(bound_label, BUCKETS[histogram]), INF]
    buckets = tuple(int(tallies[histogram, (route, label)]) for label in labels)
    if histogram is counter:
        return buckets
    with_signal = int(tallies[counter, (route,)])
    return sum(buckets) - with_signal, with_signal


SILENCE = "silence"  # name of its state
SAVE_SECONDS = 600.0
ELSEWHERE_SECONDS = 3600.0  # without an answer on any route, for `other` to be silent


class SilenceLoop:
    """The loop that watches the gaps between the answers of each route.

    All routes together raise one false alarm in so many days, or fewer. A change of an alarm is stored at once, what is
    learnt every `SAVE_SECONDS`.
    """

    def __init__(self, routes: Sequence[str], false_alarm_days: float, *, store: Store, clock: Clock) -> None:
        self._routes = tuple(routes)
        self._days = false_alarm_days * len(self._routes)
        self._store = store
        self._clock = clock
        self._rhythms = dict.fromkeys(self._routes, Rhythm())
        self._counts: dict[str, int] = {}
        self._saved = 0.0

    def resume(self) -> None:
        """Continue where an earlier process, or another worker, stopped. Unreadable state is learnt again."""
        state: SavedState = self._store.recall(SILENCE) or {}
        self._rhythms = dict.fromkeys(self._routes, Rhythm())
        for route in self._routes:
            if route in state:
                with suppress(KeyError, TypeError, ValueError):
                    self._rhythms[route] = silence.from_dict(state[route])
        self._counts = self._answers()
        self._saved = self._clock()

    async def step(self) -> bool:
        """Observe all routes. True when an alarm began or ended."""
        return await asyncio.to_thread(self._step)

    def gauges(self) -> Gauges:
        """Whether each route is silent, and the answers it usually has in such a time; empty while nothing is known."""
        gauges: dict[tuple[Gauge, tuple[str, ...]], float] = {}
        for route, rhythm in self._rhythms.items():
            if any(rhythm.answers):
                gauges[Gauge.SILENCE_ALARM, (route,)] = float(self._is_silent(route))
                gauges[Gauge.SILENCE_MISSED, (route,)] = rhythm.missed
        return gauges

    def _step(self) -> bool:
        now, counts = self._clock(), self._answers()
        before = self._silent()
        for route, rhythm in self._rhythms.items():
            answered = counts[route] != self._counts.get(route, 0)
            self._rhythms[route] = silence.observe(rhythm, now, answered=answered, days=self._days)
        self._counts = counts
        changed = self._silent() != before
        if changed or abs(now - self._saved) >= SAVE_SECONDS:
            self._store.remember(SILENCE, {route: rhythm._asdict() for route, rhythm in self._rhythms.items()})
            self._saved = now
        return changed

    def _answers(self) -> dict[str, int]:
        tallies = self._store.tallies()
        return {route: sum(counts_of(tallies, Signal.ABSTENTIONS, route)) for route in self._routes}

    def _silent(self) -> frozenset[str]:
        return frozenset(route for route in self._routes if self._is_silent(route))

    def _is_silent(self, route: str) -> bool:
        if route == OTHER:
            times = (rhythm.last for rhythm in self._rhythms.values() if any(rhythm.answers))
            newest = max((last for last in times if last is not None), default=0.0)
            return self._rhythms[route].silent and self._clock() - newest > ELSEWHERE_SECONDS
        return self._rhythms[route].silent
