"""Judging without message batches, by a judge that may have sent some before: they are paid for, and collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ragwatch.pipeline.batching import BatchJudgingLoop
from ragwatch.pipeline.judging import JudgingLoop, JudgingRules
from ragwatch.pipeline.leadership import Step
from ragwatch.pipeline.self_tests import JudgeSelfTests
from ragwatch.ports import Store
from ragwatch.ports.judging import BatchJudge
from ragwatch.telemetry import Telemetry


@runtime_checkable
class CollectsBatches(BatchJudge, Protocol):
    """A judge that can collect message batches, whether or not it sends any."""


class LeftBatchesLoop(BatchJudgingLoop):
    """The loop of one judge that reads pending draws one by one, and collects the batches that are still open.

    Args:
        led: Makes a step one that runs in the leader only: of several workers one collects a batch.
    """

    sends_batches = False
    collects_batches = True

    def __init__(
        self,
        judge: BatchJudge,
        rules: JudgingRules,
        *,
        store: Store,
        telemetry: Telemetry,
        clock: Callable[[], float],
        self_tests: JudgeSelfTests | None = None,
        led: Callable[[Step], Step] = lambda step: step,
    ) -> None:
        super().__init__(judge, rules, store=store, telemetry=telemetry, clock=clock, self_tests=self_tests)
        self._send_after = math.inf
        self._collect_batches = led(super().step)

    async def step(self) -> bool:
        """Collect the batches that have ended, then do what any loop does. False when nothing changed or is pending."""
        collected = await self._collect_batches()
        return await JudgingLoop.step(self) or collected
