"""Judging: pending draws are read by one judge, scored, and settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ragwatch.core.sample import Draw
from ragwatch.core.verdict import Reading, Unjudged, UnjudgedReason, Verdict
from ragwatch.pipeline.reading import Reader
from ragwatch.ports import Judge, Store
from ragwatch.telemetry import Telemetry

GIVEN_UP_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """Limits of one judge.

    Attributes:
        batch: Draws leased at a time.
        timeout_seconds: A reading that takes longer is given up.
        lease_seconds: How long a leased draw is held back from others.
    """

    batch: int = 32
    timeout_seconds: float = 60.0
    lease_seconds: float = 300.0


class Judging:
    """The loop of one judge."""

    def __init__(
        self,
        judge: Judge,
        rules: JudgingRules,
        *,
        store: Store,
        telemetry: Telemetry,
        clock: Callable[[], float],
    ) -> None:
        self.judge = judge
        self._reader = Reader(judge, timeout_seconds=rules.timeout_seconds, telemetry=telemetry)
        self._rules = rules
        self._store = store
        self._clock = clock
        self._unwritten: Sequence[Verdict] = ()

    async def step(self) -> bool:
        """Settle up to one batch of draws. False when nothing is pending.

        Verdicts that could not be written are kept and written first the next time: a reading may have cost money.
        """
        if not self._unwritten:
            draws = await asyncio.to_thread(self._lease)
            if not draws:
                return False
            self._unwritten = await asyncio.gather(*(self._reader.read(draw) for draw in draws))
        await asyncio.to_thread(self._store.settle, self._unwritten)
        self._unwritten = ()
        return True

    def _lease(self) -> list[Draw]:
        return self._store.lease(
            self.judge.name, self._rules.batch, now=self._clock(), seconds=self._rules.lease_seconds
        )


def give_up(store: Store, judges: Collection[str], *, now: float) -> int:
    """Settle what waits for judges that are no longer configured as unjudged. Returns how many draws that were."""
    settled = 0
    for name in sorted(set(store.pending()) - set(judges)):
        reading = Reading(name, kind="", version="")
        while draws := store.lease(name, GIVEN_UP_AT_ONCE, now=now, seconds=1.0):
            settled += store.settle([Unjudged(draw, reading, UnjudgedReason.JUDGE_REMOVED) for draw in draws])
    return settled
