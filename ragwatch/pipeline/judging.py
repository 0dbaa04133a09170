"""Judging: pending draws are read by one judge, scored, and settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.pipeline.reading import Reader
from ragwatch.ports import Judge, Store
from ragwatch.telemetry import Telemetry


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

    async def step(self) -> bool:
        """Settle up to one batch of draws. False when nothing is pending."""
        rules = self._rules
        draws = await asyncio.to_thread(
            self._store.lease, self.judge.name, rules.batch, now=self._clock(), seconds=rules.lease_seconds
        )
        if not draws:
            return False
        verdicts = await asyncio.gather(*(self._reader.read(draw) for draw in draws))
        await asyncio.to_thread(self._store.settle, verdicts)
        return True
