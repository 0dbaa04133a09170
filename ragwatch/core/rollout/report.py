"""Formats the report of a rollout as JSON, and derives its exit code."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.rollout.definition import Measured, Outcome, StageReport


def rollout_line(reports: Sequence[StageReport], a: str, b: str) -> dict[str, object]:
    """Returns the report as the object that `ragwatch rollout --json` prints."""
    return {
        "a": a,
        "b": b,
        "code": exit_code(reports),
        "stages": [
            {
                "stage": str(report.step),
                "outcome": str(report.outcome),
                "reason": report.reason,
                "notes": list(report.notes),
                "metrics": [_metric_line(metric) for metric in report.metrics],
            }
            for report in reports
        ],
    }


def _metric_line(metric: Measured) -> dict[str, object]:
    change = metric.change
    return {
        "metric": metric.name,
        "a": metric.a,
        "b": metric.b,
        "difference": None if change is None else change.value,
        "low": None if change is None else change.low,
        "high": None if change is None else change.high,
        "n_a": metric.n_a,
        "n_b": metric.n_b,
        "decides": metric.decides,
        "decision": str(metric.decision),
    }


def exit_code(reports: Sequence[StageReport]) -> int:
    """Returns 0 if all stages passed; else 10 + the number of the stage that stopped B, 20 + that of an undecided one.

    >>> from ragwatch.core.rollout.definition import RolloutStep
    >>> passed = StageReport(RolloutStep.OFFLINE, Outcome.PASSED, "")
    >>> exit_code([passed]), exit_code([passed, StageReport(RolloutStep.JUDGED, Outcome.STOPPED, "")])
    (0, 12)
    """
    tens = {Outcome.STOPPED: 10, Outcome.UNDECIDED: 20}
    codes = (tens[report.outcome] + number for number, report in enumerate(reports, start=1) if report.outcome in tens)
    return next(codes, 0)
