"""Drift: every configured quantity on every route is watched, score by score, in the order in which they were settled.

What is remembered is stored after each step, so that a process killed at any instant raises the same alarm at the same
score as one that never was; a score that was taken already moves nothing. All detectors together raise one false alarm
in a configured time, or fewer. An alarm stands until a person acknowledges it.

Beside each detector runs a band: where the mean lies today, in a way that holds however often one looks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from ragwatch.core.drift import day_band
from ragwatch.core.drift.day_band import DAY, DayBand
from ragwatch.core.drift.detect import Alarm, Score
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import Gauge, Gauges
from ragwatch.core.tally import Tally
from ragwatch.errors import StoreError
from ragwatch.pipeline.drift.rules import Cell, DriftRules
from ragwatch.pipeline.drift.streams import Stream
from ragwatch.ports import RecordedEvent, ScoreRow, Store, StoredRun
from ragwatch.telemetry import Telemetry

KIND = "drift"
ROWS = 5000
_LAST_RUNS = 20
_EVERYTHING = 0.0  # answers of any age count, in the order in which they were judged


class ScoreDriftLoop:
    """The loop that watches scores.

    Args:
        rules: What to watch; a reload brings another Drift.
        store: Holds the scores, and keeps what is remembered.
        judge_moved: Whether the judge itself has changed, as far as anchors tell.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        rules: DriftRules,
        *,
        store: Store,
        telemetry: Telemetry,
        judge_moved: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.rules = rules
        self._store = store
        self._telemetry = telemetry
        self._judge_moved = judge_moved
        self._clock = clock
        self._turn = asyncio.Lock()
        self._seq = 0
        self._streams: dict[Cell, Stream] = {(each, route): rules.stream(each, route) for each, route in rules.cells}
        self._bands: dict[Cell, DayBand] = {cell: rules.band(cell[1]) for cell in self._streams}
        self._alarms: dict[Cell, Alarm] = {}
        self._told: dict[Cell, int] = {}
        self._readers = rules.readers()
        self._gauges: Gauges = {}

    def resume(self) -> None:
        """Continue where an earlier process stopped.

        Raises:
            StoreError: What was kept cannot be read.
        """
        kept = self._store.recall(KIND)
        if kept is not None:
            self._seq = int(kept["seq"])
            self._load(kept)
            if (kept["judge"], kept["version"]) != (self.rules.judge, self.rules.version):
                self._another_judge(kept)
        self._show()

    async def step(self) -> bool:
        """Take the scores that came since the last step. True when there were some."""
        async with self._turn:
            return await asyncio.to_thread(self._step)

    async def acknowledge(
        self, quantity: str | None = None, route: str | None = None, *, anew: bool = False
    ) -> tuple[Cell, ...]:
        """Take alarms down, and with `anew` learn once more what is ordinary. Returns what that was done to.

        Args:
            quantity: Only this one; None for all.
            route: Only this one; None for all.
            anew: Whether the baseline is dropped too, alarm or not.

        Raises:
            StoreError: It could not be written; a restart would not know of it.
        """
        async with self._turn:
            return await asyncio.to_thread(self._settle, quantity, route, anew=anew)

    def gauges(self) -> Gauges:
        """What the last step showed."""
        return self._gauges

    def _step(self) -> bool:
        now, news = self._clock(), False
        self._set_back(now)
        while rows := self._store.window(self._seq, _EVERYTHING, ROWS):
            for row in rows:
                self._take(row, min(row.at, now))
            self._seq = rows[-1].seq
            self._latch()
            self._keep()
            news = True
        self._tell()
        self._show()
        return news

    def _set_back(self, now: float) -> None:
        """A clock that was ahead told times that have not come yet: they would hold everything up until they do."""
        for cell, stream in self._streams.items():
            stream.no_later(now)
            since = self._bands[cell].since
            if since is not None and since > now:
                self._bands[cell] = self.rules.band(cell[1])

    def _take(self, row: ScoreRow, at: float) -> None:
        if row.judge != self.rules.judge or row.version != self.rules.version or row.scores is None:
            return
        for cell, control in self._readers.get(row.route, ()):
            value = row.scores.get(Quantity(cell[0]))
            if value is None:  # a failed judgement is no low score
                continue
            weight = 1.0 / row.probability
            self._streams[cell].take(row.seq, at, Score(value, weight), control=control)
            if not control:
                self._bands[cell] = self._bands[cell].after(at, value, weight)

    def _latch(self) -> None:
        self._alarms |= {cell: each.alarm for cell, each in self._streams.items() if each.alarm is not None}

    def _tell(self) -> None:
        """Record each alarm once, whenever the process that raised it was killed."""
        before = dict(self._told)
        for cell, alarm in self._alarms.items():
            if self._told.get(cell) == alarm.seq:
                continue
            name, moved = _name(cell), self._judge_moved()
            if all(run.body["seq"] != alarm.seq for run in self._store.runs(KIND, name, _LAST_RUNS)):
                body = {**asdict(alarm), "judge": self.rules.judge, "judge_moved": moved}
                self._store.record_run(
                    StoredRun(KIND, name, alarm.at, failing=True, body=body), Counter({(Tally.DRIFT_ALARMS, cell): 1})
                )
                self._telemetry.drift_alarmed(*cell, evidence=alarm.evidence, judge_moved=moved)
            self._told[cell] = alarm.seq
        if self._told != before:  # the run may be gone one day while its alarm still stands
            self._keep()

    def _settle(self, quantity: str | None, route: str | None, *, anew: bool) -> tuple[Cell, ...]:
        self._tell()  # what a kill kept from being recorded would be gone with the alarm
        done = []
        for cell, stream in self._streams.items():
            if quantity not in (None, cell[0]) or route not in (None, cell[1]):
                continue
            if anew or cell in self._alarms:
                stream.settle(anew=anew)
                self._alarms.pop(cell, None)
                done.append(cell)
        if done:
            self._keep()
            what = ", ".join(map(_name, done))
            self._store.record(
                RecordedEvent(self._clock(), KIND, f"{what}: {'baseline renewed' if anew else 'acknowledged'}")
            )
        self._show()
        return tuple(done)

    def _keep(self) -> None:
        self._store.remember(
            KIND,
            {
                "seq": self._seq,
                "judge": self.rules.judge,
                "version": self.rules.version,
                "streams": {_name(cell): each.to_dict() for cell, each in self._streams.items()},
                "bands": {_name(cell): day_band.to_dict(each) for cell, each in self._bands.items()},
                "alarms": {_name(cell): asdict(each) for cell, each in self._alarms.items()},
                "told": {_name(cell): seq for cell, seq in self._told.items()},
            },
        )

    def _load(self, kept: Mapping[str, Any]) -> None:
        """Alarms stand under any judge; what was learnt is about the one that read it."""
        same = (kept["judge"], kept["version"]) == (self.rules.judge, self.rules.version)
        for cell, stream in self._streams.items():
            name = _name(cell)
            if name in kept["alarms"]:
                self._alarms[cell] = Alarm(**kept["alarms"][name])
            if name in kept["told"]:
                self._told[cell] = int(kept["told"][name])
            if same and name in kept["streams"]:
                try:
                    stream.load(kept["streams"][name])
                except (KeyError, TypeError, ValueError):  # watched in another way until now: it begins anew
                    self._streams[cell] = self.rules.stream(Quantity(cell[0]), cell[1])
            if same and name in kept.get("bands", {}):
                with suppress(KeyError, TypeError, ValueError):  # the same; its first day is lost, and no more
                    self._bands[cell] = day_band.from_dict(self._bands[cell], kept["bands"][name])

    def _another_judge(self, kept: Mapping[str, Any]) -> None:
        was, now = f"{kept['judge']} {kept['version']}", f"{self.rules.judge} {self.rules.version}"
        told = f"answers are read by {now}, not by {was}: scores mean something else, and baselines are learnt anew"
        self._telemetry.announced("judge", told)
        with suppress(StoreError):  # where nothing can be written whoever begins next says so again
            self._store.record(RecordedEvent(self._clock(), "judge", told))
            self._keep()

    def _show(self) -> None:
        found: dict[tuple[Gauge, tuple[str, ...]], float] = {}
        for cell, stream in self._streams.items():
            for gauge, value in (
                (Gauge.DRIFT_EVIDENCE, stream.evidence),
                (Gauge.DRIFT_THRESHOLD, stream.threshold),
                (Gauge.DRIFT_BASELINE, stream.baseline),
            ):
                if value is not None:
                    found[gauge, cell] = value
            if stream.evidence is not None or cell in self._alarms:
                found[Gauge.DRIFT_ALARM, cell] = float(cell in self._alarms)
        # Until its first answer a day has the band of the day before: a route that falls silent has none in the end.
        oldest = self._clock() // DAY - 1
        for cell, band in self._bands.items():
            mean, since = band.mean, band.since
            if mean is not None and since is not None and since // DAY >= oldest:
                found[Gauge.BAND_MEAN, cell], found[Gauge.BAND_SCORES, cell] = mean, float(band.band.spread.n)
                found[Gauge.BAND_LOW, cell], found[Gauge.BAND_HIGH, cell] = band.band.low, band.band.high
                found[Gauge.BAND_SINCE, cell] = since
        self._gauges = found


def _name(cell: Cell) -> str:
    return "/".join(cell)
