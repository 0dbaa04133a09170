"""A digest of one judge, with all that it adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragwatch.board import Board
from ragwatch.core.segments import Segments
from ragwatch.pipeline.digest import DigestInputs, DigestLoop
from ragwatch.pipeline.feedback import FeedbackWindows
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows
from ragwatch.ports import Judge, Store
from ragwatch.telemetry import Telemetry
from support.kit import Clock, ScriptedJudge

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
