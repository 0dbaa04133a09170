"""Names the stage at fault for a gate's findings, and recommends what to do.

Retrieval comes first, because the generator depends on the retrieved contexts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ragwatch.core.gate import GateReport, MetricFinding
from ragwatch.core.regression import Attribution, describe
from ragwatch.core.relevance import RankingMetric
from ragwatch.core.set_scores import Metric
from ragwatch.core.stage_change import IGNORED, KNOWLEDGE_GAP
from ragwatch.model.stages import FAULTS, Stage

_KINDS: Mapping[str, str] = MappingProxyType(
    {IGNORED: "none but the top context ignored", KNOWLEDGE_GAP: "knowledge gap"}
)


def stage_of(metric: Metric) -> Stage:
    """Returns the stage at fault if a metric fails and nothing else is known."""
    return Stage.RETRIEVAL if isinstance(metric, RankingMetric) else metric.row.stage


def recommendation(report: GateReport, attribution: Attribution | None = None) -> str:
    """Recommends what to do, naming the stage at fault, in one or two sentences."""
    if attribution is None:
        return _summary(report)
    means = ", by the judge's means" if any(finding.level for finding in report.findings) else ""
    parts = [_summary(report), f"Against the baseline{means}: {describe(attribution)}."]
    return " ".join(reversed(parts) if all(report.held) is False else parts)


def _summary(report: GateReport) -> str:
    """What the thresholds say; what fell since the baseline stands behind it."""
    failed = [finding for finding in report.findings if finding.passed is False]
    blocked = [finding.passed for finding in report.blocking]
    if False in blocked:
        stage = _stage(failed, report)
        names = ", ".join(map(_name, failed))
        return f"{names} failed; the stage at fault is {stage}: {stage.advice}.{_stage_shares(report)}"
    if None in blocked:
        unknown = [f"{_name(one)} ({one.reason})" for one in report.blocking if one.passed is None]
        return f"Not enough data for {', '.join(unknown)}." + _warning(failed, report)
    if blocked:
        shares = "" if set(_KINDS).isdisjoint(report.stages) else _stage_shares(report)
        return "Every metric that blocks is on the right side of its threshold." + _warning(failed, report) + shares
    if report.held:
        return "No metric has a threshold that blocks." + _warning(failed, report)
    hint = "; set one for retrieval alone, such as `gate: {metrics: {recall@5: 0.8}}`" if report.alone else ""
    return f"Not enough data for a verdict: no metric blocks{hint}." + _warning(failed, report)


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
    most = max(FAULTS, key=lambda stage: report.stages.get(stage, 0))
    return most if report.stages.get(most) else stages[0]


def _stage_shares(report: GateReport) -> str:
    total = sum(report.stages.values())
    names: dict[str, str] = {stage: str(stage) for stage in Stage}
    names.update(_KINDS)
    parts = [f"{name} {count / total:.0%}" for kind, name in names.items() if (count := report.stages.get(kind))]
    return f" Judged samples by stage: {', '.join(parts)}." if parts else ""


def _name(finding: MetricFinding) -> str:
    return finding.limit.metric.replace("_", " ")
