"""The loop of a scripted judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragwatch.pipeline.judging import JudgingLoop, JudgingRules
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.ports import Judge, Store
from ragwatch.telemetry import Telemetry
from support.kit import Clock, ScriptedJudge


def a_judging(
    store: Store,
    judge: Judge | None = None,
    *,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] | None = None,
    self_tests: JudgeSelfTests | None = None,
    **rules: Any,
) -> JudgingLoop:
    """The loop of a judge, by default of one that accepts everything."""
    return JudgingLoop(
        judge or ScriptedJudge(),
        JudgingRules(**rules),
        store=store,
        telemetry=telemetry or Telemetry(),
        clock=clock or Clock(),
        self_tests=self_tests,
    )
