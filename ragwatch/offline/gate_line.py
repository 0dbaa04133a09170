"""Formats the report of a gate as JSON, and reads a baseline back from it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragwatch.model.stages import FAULTS, Stage
from ragwatch.offline.regression import Attribution, GateRun, MetricChange, describe, describe_change
from ragwatch.statistics.estimators.interval import Interval
from ragwatch.statistics.gate import Figure, GateReport, MetricFinding
from ragwatch.statistics.question_scores import QuestionScores, lost_line
from ragwatch.statistics.reference import statement_line
from ragwatch.statistics.relevance import CaseKind, RankingMetric
from ragwatch.statistics.set_scores import Metric, metric_of
from ragwatch.statistics.stage import IGNORED, KNOWLEDGE_GAP

_UNKNOWN = (None, None, None)


class GateOutcome(NamedTuple):
    """Outcome of a gate: the report, the version of the judge, and the changes since a baseline, if there is one."""

    report: GateReport
    judge: str
    attribution: Attribution | None = None


def gate_line(outcome: GateOutcome) -> dict[str, object]:
    """Returns it as the object that `ragwatch gate --json` prints."""
    report, attribution = outcome.report, outcome.attribution
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
        "judge": outcome.judge,
        "baseline": None if attribution is None else _attribution(attribution),
        "questions": [question._asdict() for question in report.questions],
        "references": [
            {
                "id": question.id,
                "question": question.question,
                "link": question.link,
                "missing": [claim.text for claim in claims if not claim.supported],
                "statements": [statement_line(claim) for claim in claims],
            }
            for question, claims in report.unsupported
        ],
    }


def section(metric: Metric) -> str:
    """Returns the section that a metric is reported in: `retrieval` (by relevance judgements) or `answers`."""
    return "retrieval" if isinstance(metric, RankingMetric) else "answers"


def _figure(figure: Figure) -> dict[str, object]:
    return {
        "metric": str(figure.metric),
        "section": section(figure.metric),
        **figure.estimate._asdict(),
        "n": figure.n,
    }


def _metric(finding: MetricFinding) -> dict[str, object]:
    """A metric with a threshold; its value, low and high are what is compared with the threshold.

    `corrected` is true where that is the level, which rests on `labels`. The mean of the judge is always given.
    """
    limit = finding.limit
    value, low, high = finding.compared or _UNKNOWN
    mean, mean_low, mean_high = finding.estimate or _UNKNOWN
    return {
        "metric": str(limit.metric),
        "section": section(limit.metric),
        "value": value,
        "low": low,
        "high": high,
        "n": finding.n,
        "threshold": limit.threshold,
        "lower_is_better": limit.low_is_good,
        "severity": str(limit.severity),
        "pass": finding.passed,
        "reason": finding.reason or None,
        "stage": str(stage_of(limit.metric)),
        "applies": finding.applies,
        "corrected": finding.level is not None,
        "labels": 0 if finding.level is None else finding.level.labels,
        "mean": mean,
        "mean_low": mean_low,
        "mean_high": mean_high,
    }


def _attribution(attribution: Attribution) -> dict[str, object]:
    return {
        "regression": str(attribution.regression),
        "told": describe(attribution),
        "recall_by": None if attribution.by is None else str(attribution.by),
        "paired": attribution.paired,
        "changes": {str(metric): _change(one) for metric, one in attribution.changes.items()},
        "lost": [lost_line(one) for one in attribution.lost],
    }


def _change(one: MetricChange) -> dict[str, object]:
    """Change of a metric since the baseline; `needed` rows should tell where `held` is null because of chance."""
    difference = one.difference
    value, low, high = _UNKNOWN if difference is None else difference.change
    return {
        "before": None if difference is None else difference.a,
        "now": None if difference is None else difference.b,
        "change": value,
        "low": low,
        "high": high,
        "n": 0 if difference is None else difference.n,
        "paired": difference is not None and difference.paired,
        "watched": one.watched,
        "held": one.held,
        "needed": one.needed,
        "described": describe_change(one),
    }


def baseline_of(line: Mapping[str, Any], judge: str) -> GateRun:
    """Reads from a gate line what a later run is compared with: the judge's means, and the scores by question.

    `ValueError` if it is no gate line, or from another judge or another version of the judge.
    """
    try:
        if line["judge"] != judge and line.get("judged", 1):  # relevance judgements are those of no judge
            raise ValueError(f"was made by the judge {line['judge']}, and this one is {judge}; make a new baseline")
        rows = []
        for row in (*line["metrics"], *line.get("figures", ())):
            names = ("mean", "mean_low", "mean_high") if row.get("corrected") else ("value", "low", "high")
            if row["value"] is not None:
                estimate = Interval(*(float(row[name]) for name in names))
                rows.append(Figure(metric_of(row["metric"], criteria=True), estimate, int(row["n"])))
        questions = tuple(
            QuestionScores(**{name: row[name] for name in QuestionScores._fields}) for row in line.get("questions", ())
        )
        return GateRun({row.metric: row for row in rows}, questions)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("is not the JSON that `ragwatch gate --json` prints") from error


_KINDS: Mapping[str, str] = {IGNORED: "none but the top context ignored", KNOWLEDGE_GAP: "knowledge gap"}


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
