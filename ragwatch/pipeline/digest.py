"""Digest: what the store holds becomes one Snapshot on the Board. Reads only what came since the last time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.board import Board
from ragwatch.core.invariants import violations
from ragwatch.core.snapshot import Gauges, Lag, Snapshot
from ragwatch.core.tally import Tallies
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.sampling_control import SamplingControl
from ragwatch.pipeline.windows import MINUTE, SlidingWindows
from ragwatch.ports import Judge, Store
from ragwatch.telemetry import Telemetry

ROWS = 5000
OVERDUE_SECONDS = 60.0  # a draw that waits for longer is missing from the figures, and widens their worst case


@dataclass(frozen=True, slots=True)
class DigestInputs:
    """What others know at present, asked at each digest.

    Attributes:
        lags: How far each source is behind, by name.
        probabilities: Inclusion probability in force, by route.
        problems: What keeps ragwatch from being ready.
        gauges: Everything else that has a value.
    """

    lags: Callable[[], Mapping[str, Lag]]
    probabilities: Callable[[], Mapping[str, float]]
    problems: Callable[[], tuple[str, ...]]
    gauges: Callable[[], Gauges] = dict


class DigestLoop:
    """The loop that draws the Snapshot.

    Args:
        windows: Made for the judges in force; a reload brings a new Digest.
        around: What others know.
        shares: What each judge reads of the draws, and can pay for.
        people: Lays people's words beside those of judges; None where nobody is asked.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        windows: SlidingWindows,
        around: DigestInputs,
        *,
        shares: SamplingControl,
        store: Store,
        board: Board,
        telemetry: Telemetry,
        judges: Sequence[Judge],
        clock: Callable[[], float],
        people: LabelCorrection | None = None,
        patience: float = OVERDUE_SECONDS,
    ) -> None:
        self._windows = windows
        self._patience = patience
        self._people = people
        self._around = around
        self._shares = shares
        self._store = store
        self._board = board
        self._telemetry = telemetry
        self._judges = {judge.name: (judge.kind, judge.version) for judge in judges}
        self._clock = clock
        self._seen = 0
        self._last = 0.0

    async def step(self) -> bool:
        """Hang a new Snapshot. True when verdicts had come in since the last one."""
        return await asyncio.to_thread(self._step)

    def _step(self) -> bool:
        now = self._clock()
        news = self._catch_up(now)
        self._windows.set_back(now)
        self._windows.forget(now)
        estimates, coverage = self._windows.summary(now, self._store.overdue(now - self._patience))
        corrected, told = ((), {}) if self._people is None else self._people.look(now, estimates)
        tallies, pending = self._store.books()
        self._shares.update(tallies, pending, now)
        snapshot = Snapshot(
            at=now,
            estimates=estimates,
            corrected=corrected,
            coverage=coverage,
            last_sample=dict(self._windows.last_sample),
            exemplars=dict(self._windows.exemplars),
            tallies=tallies,
            pending=pending,
            probabilities=self._around.probabilities(),
            shares=self._shares.in_force(),
            budgets=self._shares.budgets(),
            gauges={**self._around.gauges(), **told},
            lags=self._around.lags(),
            judges=self._judges,
            problems=(*self._around.problems(), *self._unbalanced(tallies, pending)),
        )
        self._board.hang(snapshot)
        return news

    def _unbalanced(self, tallies: Tallies, pending: Mapping[str, int]) -> tuple[str, ...]:
        found = violations(tallies, pending)
        for law, figures in found.items():
            self._telemetry.unbalanced(law, figures)
        return tuple(f"our own counts do not balance: {figures}" for figures in found.values())

    def _catch_up(self, now: float) -> bool:
        news = False
        if self._last - now > MINUTE:  # the clock was ahead: what was too old for it is not too old at all
            self._windows.clear()
            self._seen = 0
        self._last = now
        while rows := self._store.window(self._seen, now - self._windows.longest, ROWS):
            self._windows.add(rows)
            self._seen = rows[-1].seq
            news = True
        return news
