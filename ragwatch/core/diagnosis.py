"""Names the stage at fault for a gate's findings, and recommends what to do.

Retrieval comes first, because the generator depends on the retrieved contexts. With a baseline, a drop of recall is a
retrieval regression, and a drop of faithfulness without a drop of recall is a generation regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragwatch.core.compare import Interval, change
from ragwatch.core.gate import GateDecision, GateReport, Metric, MetricFinding
from ragwatch.core.relevance import RankingMetric
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.model.stages import Stage

RECALLS = (ReferenceQuantity.CONTEXT_RECALL, Quantity.NEED_RECALL, Quantity.CONTEXT_PRECISION)
"""Judged metrics of retrieval, in order of preference. The last one is no recall, and substitutes for it only."""


def stage_of(metric: Metric) -> Stage:
    """Returns the stage at fault if a metric fails and nothing else is known."""
    return Stage.RETRIEVAL if isinstance(metric, RankingMetric) else metric.row.stage


class Regression(StrEnum):
    """Regression since a baseline."""

    NONE = "none"
    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attribution:
    """Changes since a baseline.

    Attributes:
        regression: Regression, by the rule in the docstring of the module.
        by: Metric that was used as recall; None if none is known on both sides.
        changes: Change with its interval of every metric that is known on both sides.
    """

    regression: Regression
    by: Metric | None
    changes: Mapping[Metric, Interval]


def attribute(before: Mapping[Metric, Interval], after: Mapping[Metric, Interval]) -> Attribution:
    """Attributes significant changes to retrieval or generation.

    >>> steady, fallen = Interval(0.9, 0.86, 0.93), Interval(0.6, 0.53, 0.67)
    >>> recall, faithful = ReferenceQuantity.CONTEXT_RECALL, Quantity.FAITHFULNESS
    >>> str(attribute({recall: steady, faithful: steady}, {recall: steady, faithful: fallen}).regression)
    'generation'
    >>> str(attribute({recall: steady, faithful: steady}, {recall: fallen, faithful: fallen}).regression)
    'retrieval'
    """
    changes = {metric: change(before[metric], interval) for metric, interval in after.items() if metric in before}
    by = _recall(changes)
    faithful = changes.get(Quantity.FAITHFULNESS)
    if by is not None and _worse(by, changes[by]):
        regression = Regression.RETRIEVAL
    elif faithful is not None and _worse(Quantity.FAITHFULNESS, faithful):
        regression = Regression.UNKNOWN if by is None else Regression.GENERATION
    else:
        regression = Regression.UNKNOWN if by is None or faithful is None else Regression.NONE
    return Attribution(regression, by, changes)


def _recall(changes: Mapping[Metric, Interval]) -> Metric | None:
    """Recall by relevance judgements at the largest k, else by the judge."""
    ranked = [metric for metric in changes if isinstance(metric, RankingMetric) and metric.measure == "recall"]
    if ranked:
        return max(ranked, key=lambda metric: metric.k or 0)
    return next((metric for metric in RECALLS if metric in changes), None)


def _worse(metric: Metric, difference: Interval) -> bool:
    return difference.low > 0.0 if metric in LOW_IS_GOOD else difference.high < 0.0


def describe(attribution: Attribution) -> str:
    """Describes an attribution in a sentence."""
    by = "" if attribution.by is None else attribution.by.replace("_", " ")
    if attribution.by is not None and attribution.by is RECALLS[-1]:
        by += " (used instead of recall, which is unknown on one side)"
    if attribution.regression is Regression.RETRIEVAL:
        return f"retrieval regression: {by} fell"
    if attribution.regression is Regression.GENERATION:
        return f"generation regression: faithfulness fell while {by} did not"
    if attribution.regression is Regression.NONE:
        return f"no significant regression: neither {by} nor faithfulness fell"
    return "regressions are unknown: recall or faithfulness is unknown on one side"


def recommendation(report: GateReport, attribution: Attribution | None = None) -> str:
    """Recommends what to do, naming the stage at fault, in one or two sentences."""
    parts = [_summary(report)]
    if attribution is not None:
        means = ", by the judge's means" if any(finding.level for finding in report.findings) else ""
        parts.append(f"Against the baseline{means}: {describe(attribution)}.")
    return " ".join(parts)


def _summary(report: GateReport) -> str:
    blocking = [finding for finding in report.findings if finding.limit.severity is GateSeverity.BLOCK]
    failed = [finding for finding in report.findings if finding.passed is False]
    if report.verdict is GateDecision.NOT_ENOUGH_DATA:
        unknown = [f"{_name(finding)} ({finding.reason})" for finding in blocking if finding.passed is None]
        return f"Not enough data for {', '.join(unknown) or 'a verdict: no metric blocks'}." + _warning(failed, report)
    if report.verdict is GateDecision.PASS:
        return "Every metric that blocks is on the right side of its threshold." + _warning(failed, report)
    stage = _stage(failed, report)
    names = ", ".join(map(_name, failed))
    return f"{names} failed; the stage at fault is {stage}: {stage.advice}.{_stage_shares(report)}"


def _warning(failed: Sequence[MetricFinding], report: GateReport) -> str:
    if not failed:
        return ""
    stage = _stage(failed, report)
    return f" Warning: {', '.join(map(_name, failed))} failed; {stage}: {stage.advice}."


def _stage(failed: Sequence[MetricFinding], report: GateReport) -> Stage:
    """Retrieval if one of its metrics failed, else the most frequent stage of faulty samples, else that of a metric."""
    stages = [stage_of(finding.limit.metric) for finding in failed]
    if Stage.RETRIEVAL in stages:
        return Stage.RETRIEVAL
    faulty = {stage: count for stage, count in report.stages.items() if stage is not Stage.NONE}
    if faulty:
        return min(faulty, key=lambda stage: (-faulty[stage], list(Stage).index(stage)))
    return stages[0]


def _stage_shares(report: GateReport) -> str:
    total = sum(report.stages.values())
    parts = [f"{stage} {report.stages[stage] / total:.0%}" for stage in Stage if report.stages.get(stage)]
    return f" Judged samples by stage: {', '.join(parts)}." if parts else ""


def _name(finding: MetricFinding) -> str:
    return finding.limit.metric.replace("_", " ")
