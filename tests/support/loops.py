"""Loops of the pipeline for tests: intakes of scripted batches, a scripted judge, a digest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragwatch.board import Board
from ragwatch.formats import canonical
from ragwatch.model.sample import Sample
from ragwatch.pipeline.digest import DigestInputs, DigestLoop
from ragwatch.pipeline.feedback import FeedbackWindows
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.judging import JudgingLoop, JudgingRules
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows
from ragwatch.ports import Batch, Judge, Source, Store
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.segments import Segments
from ragwatch.telemetry import Telemetry
from support.kit import AT, JUDGE, Clock, ListSource, ScriptedJudge

ALL = SamplingPlan(1.0, known_routes=frozenset({"search", "support"}))
_OF_LOOP = ("parse", "expand", "rescue")


def an_intake(
    store: Store,
    *batches: Batch,
    source: Source | None = None,
    read: Callable[[Mapping[str, object], str], Sample] = canonical.read,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] | None = None,
    **parts: Any,
) -> Any:
    """The intake of some batches, or of a source; `parts` are those of the loop or of its rules."""
    given = {name: parts.pop(name) for name in _OF_LOOP if name in parts}
    rules = IntakeRules(**{"plan": ALL, "judges": {JUDGE: 1.0}, "redactor": None, "max_pending": 1000, **parts})
    loop: Any = IntakeLoop(
        source or ListSource(batches),
        read,
        rules,
        store=store,
        telemetry=telemetry or Telemetry(),
        clock=clock or Clock(AT),
        **given,
    )
    return loop


async def take_all(intake: IntakeLoop) -> None:
    """Step until nothing is left to read."""
    while await intake.step():
        pass


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


HOUR = {"1h": 3600.0}
NOTHING = DigestInputs(lags=dict, probabilities=dict, problems=tuple)


def a_digest(
    store: Store,
    board: Board,
    clock: Callable[[], float] | None = None,
    *,
    judge: Judge | None = None,
    spans: Mapping[str, float] = HOUR,
    inputs: DigestInputs = NOTHING,
    **parts: Any,
) -> DigestLoop:
    """The digest of a judge, by default of a scripted one over one hour."""
    judge = judge or ScriptedJudge()
    versions, parts = {judge.name: judge.version}, {"telemetry": Telemetry(), **parts}
    parts.setdefault("labels", LabelCorrection(LabelRules(versions, (judge.name,)), spans, store=store))
    return DigestLoop(
        SlidingWindows(spans, versions, 0.95),
        inputs,
        shares=SamplingControl({judge.name: JudgePlan(1.0, waits=True)}, store, 1000),
        store=store,
        board=board,
        judges=[judge],
        clock=clock or Clock(),
        feedback=FeedbackWindows(spans, versions, 0.95, store=store),
        segments=SegmentWindows(Segments(), spans, versions, 0.95),
        **parts,
    )
