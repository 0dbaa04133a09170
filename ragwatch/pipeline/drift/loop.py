"""Drift loop: what the loops over scores and over traffic have in common: resume, step, acknowledge, store, record.

All state is stored after each step, so that a process that is killed at any instant raises the same alarm, at the same
value, as one that was not; a value that was taken before changes nothing. An alarm is active until it is acknowledged,
or, if there is a reference, until answers are back at it (see `ragwatch.statistics.drift.recovery`).

No reference is learnt on a route with a standing alert: it would make bad answers the baseline. Learning continues when
the alert is over.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar
from urllib.parse import quote

from ragwatch.board import Board
from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import Quantity, is_worse
from ragwatch.pipeline.drift.streams import ControlStream, ReferenceStream, SignalStream
from ragwatch.ports import LoopContext, RecordedEvent, SavedState, StoredRun
from ragwatch.statistics.drift.detect import Alarm
from ragwatch.statistics.drift.recovery import Mend
from ragwatch.statistics.snapshot import Gauge, Gauges, Snapshot
from ragwatch.statistics.tally import Tallies

MIN_EFFECTIVE = 30.0  # scores of an estimate, from which on it counts


class PauseReason(StrEnum):
    """Why a baseline is not learnt at present. Values of the label `reason`."""

    CANARIES = "canaries"
    THRESHOLD = "threshold"
    DRIFT = "drift"


class StandingAlerts:
    """Tells whether a route has a standing alert: degraded canaries, or an estimate clearly beyond its threshold."""

    def __init__(self, board: Board, judge: str, thresholds: Callable[[str], Mapping[Quantity, float]]) -> None:
        self._board = board
        self._judge = judge
        self._thresholds = thresholds

    def reason(self, route: str) -> PauseReason | None:
        """What stands against this route; None if nothing does, or before the first figures."""
        snapshot = self._board.latest()
        if snapshot is None:
            return None
        if any(value > 0.0 for (gauge, _), value in snapshot.gauges.items() if gauge is Gauge.CANARY_DEGRADED):
            return PauseReason.CANARIES
        limits, newest = self._thresholds(route), self._newest(snapshot, route)
        compared = [(name, newest[name], limit) for name, limit in limits.items() if name in newest]
        worse = any(is_worse(name, estimate.low, estimate.high, limit) for name, estimate, limit in compared)
        return PauseReason.THRESHOLD if worse else None

    def _newest(self, snapshot: Snapshot, route: str) -> dict[Quantity, Estimate]:
        """By quantity, the estimate of the newest answers that are enough: that of fewest among several windows."""
        newest: dict[Quantity, Estimate] = {}
        for row in snapshot.estimates:
            if (row.route, row.judge) != (route, self._judge) or row.estimate.n_eff < MIN_EFFECTIVE:
                continue
            if row.quantity not in newest or row.estimate.n < newest[row.quantity].n:
                newest[row.quantity] = row.estimate
        return newest


MAX_RUNS = 20  # that are searched for one of the same alarm
Cell = tuple[str, ...]  # quantity or signal, and route; of a segment also its key and value
Figures = dict[tuple[Gauge, tuple[str, ...]], float]
Standing = Callable[[str], PauseReason | None]
_S = TypeVar("_S", bound=ReferenceStream | ControlStream | SignalStream)


class DriftLoop(ABC, Generic[_S]):
    """A loop over drift streams, one for each (quantity or signal, route).

    Args:
        standing: Why no reference may be learnt on a route at present; by default one always may.
    """

    kind: ClassVar[str]  # name of the state, and kind of the stored runs
    pause_gauge: ClassVar[Gauge]  # gauge of references that are not learnt at present

    def __init__(self, context: LoopContext, *, standing: Standing | None = None) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self._standing = standing or (lambda _: None)
        self._pauses: dict[Cell, PauseReason] = {}
        self._paused_routes: frozenset[str] = frozenset()
        self._lock = asyncio.Lock()
        self._streams: dict[Cell, _S] = {}
        self._recorded: dict[Cell, int] = {}  # number of the last alarm that was recorded
        self._gauges: Gauges = {}

    def resume(self) -> None:
        """Continue where an earlier process, or another worker, stopped."""
        self._reset()
        self._load(self._store.recall(self.kind))
        self._render()

    async def step(self) -> bool:
        """Take what is new since the last step. True when there was something."""
        async with self._lock:
            return await asyncio.to_thread(self._step)

    async def acknowledge(
        self, name: str | None = None, route: str | None = None, *, renew: bool = False
    ) -> tuple[Cell, ...]:
        """End alarms. Returns the (quantity or signal, route) of those, or of the references that were renewed.

        Args:
            name: Only this quantity or signal; None for all.
            route: Only this route; None for all.
            renew: Whether to learn another reference as well, with or without an alarm.
        """
        async with self._lock:
            return await asyncio.to_thread(self._settle, name, route, renew=renew)

    def gauges(self) -> Gauges:
        """Values of the last step."""
        return self._gauges

    def _step(self) -> bool:
        self._update_pauses()
        busy = self._observe(self._clock())
        self._record_alarms()
        self._update_pauses()  # a reference may be complete, or an alarm raised
        self._render()
        return busy

    def _settle(self, name: str | None, route: str | None, *, renew: bool) -> tuple[Cell, ...]:
        self._record_alarms()  # one that is not recorded yet, because of a kill, would be lost
        active = self._active()
        cells = tuple(
            cell
            for cell in self._streams
            if name in (None, cell[0]) and route in (None, cell[1]) and (renew or cell in active)
        )
        for cell in cells:
            if renew:
                self._renew(cell)
            else:
                self._acknowledge(cell)
        if cells:
            self._save()
            self._announce(cells, renewed=renew)
        self._update_pauses()
        self._render()
        return cells

    def paused(self, route: str) -> PauseReason | None:
        """Why no reference may be learnt on a route at present; None if one may."""
        return self._standing(route)

    def _update_pauses(self) -> None:
        """Find out which references are not learnt at present, and log where that has changed."""
        before = {cell[1] for cell in self._pauses}
        reasons = {route: self.paused(route) for route in {cell[1] for cell in self._streams}}
        self._paused_routes = frozenset(route for route, reason in reasons.items() if reason is not None)
        self._pauses = {
            cell: reason
            for cell, stream in self._streams.items()
            if not stream.complete and (reason := reasons[cell[1]]) is not None
        }
        now = {cell[1]: str(reason) for cell, reason in self._pauses.items()}
        if paused := {route: reason for route, reason in now.items() if route not in before}:
            self._telemetry.learning_paused(self.kind, paused)
        if resumed := before - set(now):
            self._telemetry.learning_resumed(self.kind, sorted(resumed))

    def _record_alarms(self) -> None:
        """Record each alarm once, whether or not a process was killed after it."""
        news = False
        for cell, alarm in self._active().items():
            news = self._record_once(cell, alarm) or news
        if news:  # a run may be deleted one day while its alarm is still active
            self._save()

    def _record_once(self, cell: Cell, alarm: Alarm) -> bool:
        """Record an alarm unless it is recorded. True if what is to be saved has changed."""
        if self._recorded.get(cell) == alarm.seq:
            return False
        if all(run.body["seq"] != alarm.seq for run in self._store.runs(self.kind, name_of(cell), MAX_RUNS)):
            self._record(cell, alarm)
        self._recorded[cell] = alarm.seq
        return True

    def _record_end(self, cell: Cell, alarm: Alarm, mend: Mend, at: float, figures: str, **more: str) -> None:
        """Record the end of an alarm as an event and a run: once, whether or not a process was killed after it."""
        runs = self._store.runs(self.kind, name_of(cell), MAX_RUNS)
        if any(not run.failing and run.body["seq"] == alarm.seq for run in runs):
            return
        clock = datetime.fromtimestamp(mend.since, UTC)
        event = RecordedEvent(at, "drift", f"{words_of(cell)}: back since {clock:%H:%M} UTC, {figures}")
        if event not in self._store.events(at):
            self._store.record(event)
            self._telemetry.announced(event.kind, event.detail)
        body = {**asdict(mend), "seq": alarm.seq, **more}
        self._store.record_run(StoredRun(self.kind, name_of(cell), at, failing=False, body=body), Tallies())

    def _reset(self) -> None:
        """Forget what is in memory."""
        self._pauses, self._paused_routes, self._recorded = {}, frozenset(), {}

    def _save(self) -> None:
        self._store.remember(self.kind, self._state())

    def _active(self) -> Mapping[Cell, Alarm]:
        """Active alarms."""
        return {cell: stream.alarm for cell, stream in self._streams.items() if stream.alarm is not None}

    def _acknowledge(self, cell: Cell) -> None:
        self._streams[cell].acknowledge()

    def _renew(self, cell: Cell) -> None:
        self._streams[cell].renew()

    def _announce(self, cells: Sequence[Cell], *, renewed: bool) -> None:
        """Store an event about alarms that were acknowledged; as a rule there is none."""

    def _render(self) -> None:
        figures = self._figures()
        for cell, reason in self._pauses.items():
            if not is_segment(cell):
                figures[self.pause_gauge, (*cell, str(reason))] = 1.0
        self._gauges = figures

    @abstractmethod
    def _load(self, state: SavedState | None) -> None:
        """Continue with the stored state; None for none."""

    @abstractmethod
    def _state(self) -> Mapping[str, object]:
        """The state to store, as JSON values."""

    @abstractmethod
    def _observe(self, now: float) -> bool:
        """Take and store what is new. True when there was something."""

    @abstractmethod
    def _record(self, cell: Cell, alarm: Alarm) -> None:
        """Store an alarm as a run, and log it."""

    @abstractmethod
    def _figures(self) -> Figures:
        """Gauges of all streams."""


def name_of(cell: Cell) -> str:
    """Name of the runs of a (quantity or signal, route), or of a segment.

    >>> name_of(("faithfulness", "search")), name_of(("faithfulness", "search", "tenant", "a/b"))
    ('faithfulness/search', 'faithfulness//search//tenant//a%2Fb')
    """
    return "//".join(quote(part, safe="") for part in cell) if is_segment(cell) else "/".join(cell)


def words_of(cell: Cell) -> str:
    """A (quantity or signal, route), or a segment, as texts for people name it.

    >>> words_of(("faithfulness", "search")), words_of(("faithfulness", "search", "tenant", "acme"))
    ('faithfulness/search', 'faithfulness/search, tenant acme')
    """
    return f"{'/'.join(cell[:2])}, {' '.join(cell[2:])}" if is_segment(cell) else "/".join(cell)


def is_segment(cell: Cell) -> bool:
    """Whether it is about the answers of a segment on a route, not about all of them."""
    return len(cell) > 2
