"""The gate line: what a gate found as JSON, in the shape of the public contract, and the baseline read back from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragwatch.core.compare import Interval
from ragwatch.core.diagnosis import STAGES, Attribution, recommendation, told
from ragwatch.core.gate import GateReport, Metric, MetricFinding, metric_of


def gate_line(report: GateReport, *, judge: str, attribution: Attribution | None = None) -> dict[str, Any]:
    """The report as the object that `ragwatch gate --json` prints.

    Args:
        report: What was found.
        judge: Version of the judge: figures of different ones cannot be compared.
        attribution: What changed since a baseline, if there is one.
    """
    return {
        "verdict": str(report.verdict),
        "metrics": [_metric(each) for each in report.findings],
        "recommendation": recommendation(report, attribution),
        "judged": report.judged,
        "unread": dict(sorted(report.unread.items())),
        "stages": {str(stage): count for stage, count in sorted(report.stages.items())},
        "judge": judge,
        "baseline": None if attribution is None else _attribution(attribution),
    }


def _metric(found: MetricFinding) -> dict[str, Any]:
    estimate = found.estimate
    return {
        "metric": str(found.limit.metric),
        "value": None if estimate is None else estimate.value,
        "low": None if estimate is None else estimate.low,
        "high": None if estimate is None else estimate.high,
        "n": found.n,
        "threshold": found.limit.threshold,
        "lower_is_better": found.limit.low_is_good,
        "severity": str(found.limit.severity),
        "pass": found.passed,
        "reason": found.reason or None,
        "stage": str(STAGES[found.limit.metric]),
    }


def _attribution(found: Attribution) -> dict[str, Any]:
    return {
        "regression": str(found.regression),
        "told": told(found),
        "recall_by": None if found.by is None else str(found.by),
        "changes": {
            str(metric): {"change": step.value, "low": step.low, "high": step.high}
            for metric, step in found.changes.items()
        },
    }


def baseline_of(line: Mapping[str, Any], judge: str) -> dict[Metric, Interval]:
    """The figures in a gate line, by metric; those that were unknown are left out.

    Raises:
        ValueError: It is no gate line, or one by another judge (or another version of it).
    """
    try:
        if line["judge"] != judge:
            raise ValueError(f"was made by the judge {line['judge']}, and this one is {judge}; make a new baseline")
        return {
            metric_of(each["metric"]): Interval(float(each["value"]), float(each["low"]), float(each["high"]))
            for each in line["metrics"]
            if each["value"] is not None
        }
    except (KeyError, TypeError) as error:
        raise ValueError("is not the JSON that `ragwatch gate --json` prints") from error


def figures_of(report: GateReport) -> dict[Metric, Interval]:
    """What is known, by metric."""
    return {each.limit.metric: each.estimate for each in report.findings if each.estimate is not None}
