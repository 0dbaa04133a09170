"""Loops of the pipeline for tests: intakes of scripted batches, a scripted judge, a digest."""

from collections.abc import Callable, Mapping
from typing import Any

from ragwatch.board import Board
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.pipeline.digest import DigestInputs, DigestLoop
from ragwatch.pipeline.feedback import FeedbackWindows
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.judging import JudgingLoop, JudgingRules
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows
from ragwatch.ports import Batch, Judge, LoopContext, Source, Store
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.segments import Segments
from ragwatch.telemetry import Telemetry
from support.kit import AT, JUDGE, Clock, ListSource, ScriptedJudge

ALL = SamplingPlan(1.0, known_routes=frozenset({"search", "support"}))
CANONICAL = LogReader(RecordRules("canonical"))


def an_intake(
    store: Store,
    *batches: Batch,
    source: Source | None = None,
    reader: LogReader = CANONICAL,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] | None = None,
    **parts: Any,
) -> Any:
    """The intake of some batches, or of a source; `parts` are those of its rules."""
    rules = IntakeRules(**{"plan": ALL, "judges": {JUDGE: 1.0}, "redactor": None, "max_pending": 1000, **parts})
    loop: Any = IntakeLoop(
        source or ListSource(batches), reader, rules, LoopContext(store, telemetry or Telemetry(), clock or Clock(AT))
    )
    return loop


async def take_all(loop: IntakeLoop | JudgingLoop) -> None:
    """Step until nothing is left to read."""
    while await loop.step():
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
        LoopContext(store, telemetry or Telemetry(), clock or Clock()),
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
    telemetry: Telemetry | None = None,
    **parts: Any,
) -> DigestLoop:
    """The digest of a judge, by default of a scripted one over one hour."""
    judge = judge or ScriptedJudge()
    versions = {judge.name: judge.version}
    parts.setdefault("labels", LabelCorrection(LabelRules(versions, (judge.name,)), spans, store=store))
    return DigestLoop(
        SlidingWindows(spans, versions, 0.95),
        inputs,
        LoopContext(store, telemetry or Telemetry(), clock or Clock()),
        shares=SamplingControl({judge.name: JudgePlan(1.0, waits=True)}, store, 1000),
        board=board,
        judges=[judge],
        feedback=FeedbackWindows(spans, versions, 0.95, store=store),
        segments=SegmentWindows(Segments(), spans, versions, 0.95),
        **parts,
    )
