"""Compares two runs of a gate: which metrics fell, whether that is chance, and which questions lost.

The differences are those of `statistics.compare`, paired where rows are the same. The first row that applies decides:

| change of a metric                                                              | result  |
|---------------------------------------------------------------------------------|---------|
| it is unknown now                                                               | unknown |
| `MIN_CERTAIN_SCORES` or more, and the whole interval is on the wrong side of 0  | fell    |
| the value did not become worse, or the interval ends within the tolerated fall  | held    |
| otherwise: the rows are too few to tell                                         | unknown |

Metrics that block, faithfulness and recall must not fall. With recall by relevance judgements, that is recall at each
k. The intervals of all of them hold together with the confidence of the gate (Bonferroni). A fall of recall is a
retrieval regression, one of faithfulness without a fall of recall a generation regression. Without recall, context
precision substitutes for it; because its anchor is the answer, a fall of both names no stage.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, ReferenceQuantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.statistics.compare import Difference, PairedScore, WeightedScore, change, paired, unpaired
from ragwatch.statistics.gate import MIN_CERTAIN_SCORES, Figure, GateReport, GateRules
from ragwatch.statistics.question_scores import LostQuestion, Pairs, QuestionScores, lost_questions, pairs_of
from ragwatch.statistics.relevance import RankingMetric
from ragwatch.statistics.set_scores import Metric

RECALLS = (ReferenceQuantity.CONTEXT_RECALL, Quantity.NEED_RECALL, Quantity.CONTEXT_PRECISION)
"""Judged metrics of retrieval, in order of preference. The last one is no recall, and substitutes for it only."""
_STEP = 10  # of the number of rows that should tell


class Regression(StrEnum):
    """Regression since a baseline."""

    NONE = "none"
    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    UNKNOWN = "unknown"


class GateRun(NamedTuple):
    """What a later run is compared with: the judge's means by metric, and the scores by question."""

    figures: Mapping[Metric, Figure]
    questions: Sequence[QuestionScores] = ()


@dataclass(frozen=True, slots=True)
class MetricChange:
    """Change of one metric since a baseline."""

    metric: Metric
    difference: Difference | None  # the difference; None if the metric is unknown now
    watched: bool
    held: bool | None  # False if it fell; None if the rows are too few to tell, or it is unknown now
    needed: int | None = None  # number of rows that should tell; None if that is not in question

    @property
    def fell(self) -> bool:
        """Whether it became worse, beyond chance."""
        return self.held is False


@dataclass(frozen=True, slots=True)
class Attribution:
    """Changes since a baseline."""

    regression: Regression
    by: Metric | None  # metric that was used as recall; None if none is known on both sides
    changes: Mapping[Metric, MetricChange]
    lost: tuple[LostQuestion, ...] = ()
    paired: int = 0  # number of rows that both runs share


def run_of(report: GateReport) -> GateRun:
    """Returns what a report offers as a baseline: the judge's means, not levels."""
    known = (Figure(one.limit.metric, one.estimate, one.n) for one in report.findings if one.estimate is not None)
    return GateRun({figure.metric: figure for figure in (*report.figures, *known)}, report.questions)


def attribute(before: GateRun, after: GateRun, rules: GateRules) -> Attribution:
    """Compares a run with a baseline, and attributes a regression to retrieval or generation."""
    both = [metric for metric in after.figures if metric in before.figures]
    by = _recall(both)
    blocking = {limit.metric for limit in rules.limits if limit.severity is GateSeverity.BLOCK}
    kept = {by, Quantity.FAITHFULNESS, *blocking}
    watched = [metric for metric in before.figures if metric in kept or _is_ranked_recall(metric)]
    confidence = 1.0 - (1.0 - rules.confidence) / max(1, len(watched))
    pairs = pairs_of(before.questions, after.questions)
    changes = {
        metric: _change(metric, _difference(metric, before, after, pairs, confidence), watched, rules.tolerated_fall)
        for metric in dict.fromkeys((*both, *watched))
    }
    return Attribution(_regression(by, changes), by, changes, lost_questions(pairs, watched), len(pairs))


def _regression(by: Metric | None, changes: Mapping[Metric, MetricChange]) -> Regression:
    recall = None if by is None else changes[by]
    faithful = changes.get(Quantity.FAITHFULNESS)
    if recall is None:
        return Regression.UNKNOWN
    if faithful is not None and faithful.fell:
        if not recall.fell:
            return Regression.GENERATION
        return Regression.UNKNOWN if by is RECALLS[-1] else Regression.RETRIEVAL
    if recall.fell:
        return Regression.RETRIEVAL
    held = recall.held is True and (faithful is None or faithful.held is True)
    return Regression.NONE if held else Regression.UNKNOWN


def _recall(metrics: Iterable[Metric]) -> Metric | None:
    """Recall by relevance judgements at the largest k, else by the judge."""
    known = list(metrics)
    ranked = [metric for metric in known if _is_ranked_recall(metric)]
    if ranked:
        return max(ranked, key=lambda metric: getattr(metric, "k", None) or 0)
    return next((metric for metric in RECALLS if metric in known), None)


def _is_ranked_recall(metric: Metric) -> bool:
    return isinstance(metric, RankingMetric) and metric.measure == "recall"


def _difference(metric: Metric, before: GateRun, after: GateRun, pairs: Pairs, confidence: float) -> Difference | None:
    """The difference of a metric, paired where the rows are the same; None if the metric is unknown now."""
    now, low_is_good = after.figures.get(metric), metric in LOW_IS_GOOD
    if now is None:
        return None
    scores = [
        PairedScore(a.scores[metric], b.scores[metric]) for a, b in pairs if metric in a.scores and metric in b.scores
    ]
    if scores:
        return paired(scores, low_is_good=low_is_good, confidence=confidence)
    first, second = (
        [WeightedScore(row.scores[metric]) for row in run.questions if metric in row.scores] for run in (before, after)
    )
    if first and second:
        return unpaired(first, second, low_is_good=low_is_good, confidence=confidence)
    old = before.figures[metric]  # of an older version, without questions
    both, n = change(old.estimate, now.estimate), min(old.n, now.n)
    return Difference(old.estimate.value, now.estimate.value, both, n, paired=False, low_is_good=low_is_good)


def _change(metric: Metric, difference: Difference | None, watched: Sequence[Metric], tolerated: float) -> MetricChange:
    """Decides by the table in the docstring of the module, and says how many rows would tell."""
    if difference is None:
        return MetricChange(metric, None, metric in watched, None)
    value, low, high = difference.change
    if difference.low_is_good:
        value, low, high = -value, -high, -low
    held: bool | None = None
    needed = None
    if high < 0.0 and difference.n >= MIN_CERTAIN_SCORES:
        held = False
    elif value >= 0.0 or low >= -tolerated:
        held = True
    else:  # the interval of n rows is sqrt(n / m) times as wide with m rows
        factors = [((high - value) / value) ** 2]
        if -value < tolerated:
            factors.append(((value - low) / (tolerated + value)) ** 2)
        needed = max(1, ceil(difference.n * min(factors) / _STEP)) * _STEP
    return MetricChange(metric, difference, metric in watched, held, needed)


def describe(attribution: Attribution) -> str:
    """Describes an attribution in one or two sentences, without the last full stop."""
    by = "" if attribution.by is None else attribution.by.replace("_", " ")
    if attribution.by is not None and attribution.by is RECALLS[-1]:
        by += " (used instead of recall, which is unknown on one side)"
    said = {
        Regression.RETRIEVAL: f"retrieval regression: {by} fell",
        Regression.GENERATION: f"generation regression: faithfulness fell while {by} did not",
        Regression.NONE: f"no significant regression: neither {by} nor faithfulness fell"
        if Quantity.FAITHFULNESS in attribution.changes
        else f"no significant regression: {by} did not fall",
        Regression.UNKNOWN: _why_unknown(attribution),
    }[attribution.regression]
    steps = [describe_change(one) for one in attribution.changes.values() if one.watched and not one.held]
    names = ", ".join(one.question.id for one in attribution.lost[:5])
    if names:
        steps.append(f"{len(attribution.lost)} questions lost, most of all {names}")
    return "; ".join((said, *steps))


def _why_unknown(attribution: Attribution) -> str:
    if any(one.fell for one in attribution.changes.values()):
        return "regression of an unknown stage, which references or relevance judgements would name"
    if any(one.needed for one in attribution.changes.values()):
        return "a regression is neither shown nor ruled out, its stage is unknown"
    return "regressions are unknown: recall or faithfulness is unknown on one side"


def describe_change(one: MetricChange) -> str:
    """Says what is known of the change of a metric."""
    name, difference = one.metric.replace("_", " "), one.difference
    if difference is None:
        return f"{name} is in the baseline and unknown now"
    value, low, high = difference.change
    how = "rows paired" if difference.paired else "rows, not paired"
    figures = (
        f"{name} {difference.a:.3f} -> {difference.b:.3f} ({value:+.3f}, {low:+.3f}..{high:+.3f}, {difference.n} {how})"
    )
    return figures if one.needed is None else f"{figures}: too few to tell, about {one.needed} rows should"
