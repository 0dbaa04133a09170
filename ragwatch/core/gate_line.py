"""Formats the report of a gate as JSON, and reads a baseline back from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ragwatch.core.compare import Interval
from ragwatch.core.diagnosis import Attribution, describe, recommendation, stage_of
from ragwatch.core.gate import Figure, GateReport, Metric, MetricFinding, metric_of
from ragwatch.core.relevance import CaseKind, RankingMetric

_UNKNOWN = (None, None, None)


class GateFigure(TypedDict):
    """A metric without a threshold in a gate line."""

    metric: str
    section: str
    value: float | None
    low: float | None
    high: float | None
    n: int


_Limit = TypedDict(  # a class cannot have a field `pass`
    "_Limit", {"threshold": float, "lower_is_better": bool, "severity": str, "pass": bool | None, "reason": str | None}
)


class GateMetric(GateFigure, _Limit):
    """A metric with a threshold in a gate line; its value, low and high are what is compared with the threshold.

    `corrected` is true where that is the level, which rests on `labels`. The mean of the judge is always given.
    """

    stage: str
    corrected: bool
    labels: int
    mean: float | None
    mean_low: float | None
    mean_high: float | None


class GateLine(TypedDict):
    """The report of a gate as JSON values."""

    verdict: str
    metrics: list[GateMetric]
    figures: list[GateFigure]
    cases: dict[str, int]
    unranked: dict[str, int]
    routes: dict[str, list[GateFigure]]
    recommendation: str
    judged: int
    unread: dict[str, int]
    stages: dict[str, int]
    judge: str
    baseline: dict[str, object] | None


def gate_line(report: GateReport, *, judge: str, attribution: Attribution | None = None) -> GateLine:
    """Returns the report as the object that `ragwatch gate --json` prints.

    Args:
        report: Report of the gate.
        judge: Version of the judge; figures of different versions cannot be compared.
        attribution: Changes since a baseline; None without a baseline.
    """
    return {
        "verdict": str(report.verdict),
        "metrics": [_metric(finding) for finding in report.findings],
        "figures": [_figure(figure) for figure in report.figures],
        "cases": {str(kind): report.kinds.get(kind, 0) for kind in CaseKind},
        "unranked": dict(sorted(report.unranked.items())),
        "routes": {route: [_figure(figure) for figure in figures] for route, figures in report.routes.items()},
        "recommendation": recommendation(report, attribution),
        "judged": report.judged,
        "unread": dict(sorted(report.unread.items())),
        "stages": {str(stage): count for stage, count in sorted(report.stages.items())},
        "judge": judge,
        "baseline": None if attribution is None else _attribution(attribution),
    }


def section(metric: Metric) -> str:
    """Returns the section that a metric is reported in: `retrieval` (by relevance judgements) or `answers`."""
    return "retrieval" if isinstance(metric, RankingMetric) else "answers"


def _figure(figure: Figure) -> GateFigure:
    return {
        "metric": str(figure.metric),
        "section": section(figure.metric),
        "value": figure.estimate.value,
        "low": figure.estimate.low,
        "high": figure.estimate.high,
        "n": figure.n,
    }


def _metric(finding: MetricFinding) -> GateMetric:
    compared, mean = finding.compared or _UNKNOWN, finding.estimate or _UNKNOWN
    return {
        "metric": str(finding.limit.metric),
        "section": section(finding.limit.metric),
        "value": compared[0],
        "low": compared[1],
        "high": compared[2],
        "n": finding.n,
        "threshold": finding.limit.threshold,
        "lower_is_better": finding.limit.low_is_good,
        "severity": str(finding.limit.severity),
        "pass": finding.passed,
        "reason": finding.reason or None,
        "stage": str(stage_of(finding.limit.metric)),
        "corrected": finding.level is not None,
        "labels": 0 if finding.level is None else finding.level.labels,
        "mean": mean[0],
        "mean_low": mean[1],
        "mean_high": mean[2],
    }


def _attribution(attribution: Attribution) -> dict[str, object]:
    return {
        "regression": str(attribution.regression),
        "told": describe(attribution),
        "recall_by": None if attribution.by is None else str(attribution.by),
        "changes": {
            str(metric): {"change": change.value, "low": change.low, "high": change.high}
            for metric, change in attribution.changes.items()
        },
    }


def baseline_of(line: Mapping[str, Any], judge: str) -> dict[Metric, Interval]:
    """Reads the judge's means from a gate line by metric; unknown ones are left out.

    Raises:
        ValueError: The line is not a gate line, or is from another judge or another version of the judge.
    """
    try:
        if line["judge"] != judge:
            raise ValueError(f"was made by the judge {line['judge']}, and this one is {judge}; make a new baseline")
        return {
            metric_of(row["metric"], criteria=True): Interval(*(float(row[name]) for name in names))
            for row in (*line["metrics"], *line.get("figures", ()))
            for names in [("mean", "mean_low", "mean_high") if row.get("corrected") else ("value", "low", "high")]
            if row[names[0]] is not None
        }
    except (KeyError, TypeError) as error:
        raise ValueError("is not the JSON that `ragwatch gate --json` prints") from error


def figures_of(report: GateReport) -> dict[Metric, Interval]:
    """Returns the judge's means by metric; unknown ones are left out."""
    return {
        **{figure.metric: figure.estimate for figure in report.figures},
        **{finding.limit.metric: finding.estimate for finding in report.findings if finding.estimate is not None},
    }
