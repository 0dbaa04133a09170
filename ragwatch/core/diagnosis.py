"""Diagnosis: which stage a gate's findings speak of, and what to do about it.

Retrieval comes first: a generator cannot repair what it was never given. With a baseline the rule of the field is:
recall down is a retrieval regression; faithfulness down while recall holds is a generation regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from ragwatch.core.compare import Interval, change
from ragwatch.core.gate import GateDecision, GateReport, GateSeverity, Metric, MetricFinding
from ragwatch.core.reference import ReferenceQuantity
from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.core.stage import Stage

STAGES: Mapping[Metric, Stage] = MappingProxyType(
    {
        ReferenceQuantity.CONTEXT_RECALL: Stage.RETRIEVAL,
        ReferenceQuantity.CONTEXT_PRECISION_WITH_REFERENCE: Stage.RETRIEVAL,
        Quantity.NEED_RECALL: Stage.RETRIEVAL,
        Quantity.CONTEXT_PRECISION: Stage.RETRIEVAL,
        Quantity.CONTEXT_SENTENCE_PRECISION: Stage.RETRIEVAL,
        Quantity.FAITHFULNESS: Stage.GENERATION,
        Quantity.CONTRADICTION: Stage.GENERATION,
        Quantity.ANSWER_RELEVANCY: Stage.GENERATION,
        ReferenceQuantity.CORRECTNESS: Stage.GENERATION,
        Quantity.TOP_RANKED_IGNORED: Stage.ALIGNMENT,
        Quantity.CONTEXT_USE: Stage.ALIGNMENT,
    }
)
"""Which stage a metric's failure speaks of, where nothing else is known."""

_ADVICE = {
    Stage.RETRIEVAL: "look at the retriever first (index, embedding, chunking, k, reranker): "
    "a generator cannot repair what it was never given",
    Stage.GENERATION: "look at the generator (prompt, model, temperature)",
    Stage.ALIGNMENT: "look at what joins them (chunk size, reranker calibration, how contexts stand in the prompt)",
}
RECALLS = (ReferenceQuantity.CONTEXT_RECALL, Quantity.NEED_RECALL, Quantity.CONTEXT_PRECISION)
"""What says whether retrieval holds, the best first. The last one is no recall, and only stands in for it."""


class Regression(StrEnum):
    """What became worse since a baseline."""

    NONE = "none"
    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attribution:
    """What changed since a baseline.

    Attributes:
        regression: By the rule of the module.
        by: The metric that stood for recall; None where none was known on both sides.
        changes: Change of every metric that both sides know, with its interval.
    """

    regression: Regression
    by: Metric | None
    changes: Mapping[Metric, Interval]


def attribute(before: Mapping[Metric, Interval], after: Mapping[Metric, Interval]) -> Attribution:
    """What became worse, beyond what chance explains.

    >>> steady, fallen = Interval(0.9, 0.86, 0.93), Interval(0.6, 0.53, 0.67)
    >>> recall, faithful = ReferenceQuantity.CONTEXT_RECALL, Quantity.FAITHFULNESS
    >>> str(attribute({recall: steady, faithful: steady}, {recall: steady, faithful: fallen}).regression)
    'generation'
    >>> str(attribute({recall: steady, faithful: steady}, {recall: fallen, faithful: fallen}).regression)
    'retrieval'
    """
    changes = {metric: change(before[metric], found) for metric, found in after.items() if metric in before}
    by = next((metric for metric in RECALLS if metric in changes), None)
    faithful = changes.get(Quantity.FAITHFULNESS)
    if by is not None and _worse(by, changes[by]):
        regression = Regression.RETRIEVAL
    elif faithful is not None and _worse(Quantity.FAITHFULNESS, faithful):
        regression = Regression.UNKNOWN if by is None else Regression.GENERATION
    else:
        regression = Regression.UNKNOWN if by is None or faithful is None else Regression.NONE
    return Attribution(regression, by, changes)


def _worse(metric: Metric, found: Interval) -> bool:
    return found.low > 0.0 if metric in LOW_IS_GOOD else found.high < 0.0


def told(found: Attribution) -> str:
    """An attribution in a sentence."""
    by = "" if found.by is None else found.by.replace("_", " ")
    if found.by is not None and found.by is RECALLS[-1]:
        by += " (which stands in for recall, unknown on one side)"
    if found.regression is Regression.RETRIEVAL:
        return f"retrieval regression: {by} fell"
    if found.regression is Regression.GENERATION:
        return f"generation regression: faithfulness fell while {by} held"
    if found.regression is Regression.NONE:
        return f"no regression shown: neither {by} nor faithfulness fell beyond chance"
    return "nothing can be said about regressions: recall or faithfulness is unknown on one side"


def recommendation(report: GateReport, attribution: Attribution | None = None) -> str:
    """What to do next, naming the stage, in one or two sentences."""
    parts = [_first(report)]
    if attribution is not None:
        parts.append(f"Against the baseline: {told(attribution)}.")
    return " ".join(parts)


def _first(report: GateReport) -> str:
    blocking = [each for each in report.findings if each.limit.severity is GateSeverity.BLOCK]
    failed = [each for each in report.findings if each.passed is False]
    if report.verdict is GateDecision.NOT_ENOUGH_DATA:
        lacking = [f"{_name(each)} ({each.reason})" for each in blocking if each.passed is None]
        return f"Not enough data for {', '.join(lacking) or 'a verdict: no metric blocks'}." + _warned(failed, report)
    if report.verdict is GateDecision.PASS:
        return "Every metric that blocks is on the right side of its threshold." + _warned(failed, report)
    stage = _stage(failed, report)
    names = ", ".join(_name(each) for each in failed)
    return f"{names} failed; the stage at fault is {stage}: {_ADVICE[stage]}.{_shares(report)}"


def _warned(failed: Sequence[MetricFinding], report: GateReport) -> str:
    if not failed:
        return ""
    stage = _stage(failed, report)
    return f" Warning: {', '.join(map(_name, failed))} failed; {stage}: {_ADVICE[stage]}."


def _stage(failed: Sequence[MetricFinding], report: GateReport) -> Stage:
    """Retrieval when a metric of it failed; else what most faulty samples say; else what the failed metrics mean."""
    stages = [STAGES[each.limit.metric] for each in failed]
    if Stage.RETRIEVAL in stages:
        return Stage.RETRIEVAL
    faulty = {stage: count for stage, count in report.stages.items() if stage is not Stage.NONE}
    if faulty:
        return min(faulty, key=lambda stage: (-faulty[stage], list(Stage).index(stage)))
    return stages[0]


def _shares(report: GateReport) -> str:
    total = sum(report.stages.values())
    parts = [f"{stage} {report.stages[stage] / total:.0%}" for stage in Stage if report.stages.get(stage)]
    return f" Judged samples by stage: {', '.join(parts)}." if parts else ""


def _name(found: MetricFinding) -> str:
    return found.limit.metric.replace("_", " ")
