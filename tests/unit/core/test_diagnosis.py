"""Which stage a gate names, and what became worse since a baseline."""

from __future__ import annotations

import pytest
from support.kit import a_verdict, an_evidence

from ragwatch.core.compare import Interval
from ragwatch.core.diagnosis import Regression, attribute, describe, recommendation, stage_of
from ragwatch.core.gate import GateReport, GateRules, Metric, MetricLimit, gate, metric_of
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.model.stages import Stage

STEADY, FALLEN, HINT = Interval(0.9, 0.86, 0.93), Interval(0.6, 0.53, 0.67), Interval(0.87, 0.8, 0.92)
FAITHFUL, RECALL = Quantity.FAITHFULNESS, ReferenceQuantity.CONTEXT_RECALL
LIMITS = (
    MetricLimit(FAITHFUL, 0.85),
    MetricLimit(Quantity.ANSWER_RELEVANCY, 0.75),
    MetricLimit(Quantity.CONTEXT_PRECISION, 0.7, GateSeverity.WARN),
)


def reported(*evidence: object, limits: tuple[MetricLimit, ...] = LIMITS, times: int = 40) -> GateReport:
    """The gate's report on each evidence so many times."""
    return gate([a_verdict(evidence=part) for part in evidence for _ in range(times)], GateRules(limits))  # type: ignore[arg-type]


def test_every_metric_has_a_stage() -> None:
    """Whatever a gate may be asked for, a failure of it names a stage."""
    assert Stage.NONE not in {metric.row.stage for metric in (*Quantity, *ReferenceQuantity)}


@pytest.mark.parametrize(
    ("recall", "faithful", "regression"),
    [
        (FALLEN, STEADY, "retrieval"),
        (FALLEN, FALLEN, "retrieval"),
        (STEADY, FALLEN, "generation"),
        (HINT, FALLEN, "generation"),  # a fall within chance is steady
        (STEADY, HINT, "none"),
        (STEADY, STEADY, "none"),
        (None, FALLEN, "unknown"),
        (None, STEADY, "unknown"),
        (STEADY, None, "unknown"),
        (FALLEN, None, "retrieval"),
    ],
)
def test_the_rule_of_attribution(recall: Interval | None, faithful: Interval | None, regression: str) -> None:
    """Recall down: retrieval. Faithfulness down and recall steady: generation. Never a guess."""
    known: dict[Metric, Interval | None] = {RECALL: recall, FAITHFUL: faithful}
    after = {metric: interval for metric, interval in known.items() if interval is not None}
    attribution = attribute({RECALL: STEADY, FAITHFUL: STEADY}, after)
    assert attribution.regression == regression
    assert set(attribution.changes) == set(after)
    assert regression in describe(attribution) or regression in {"none", "unknown"}


def test_what_stands_in_for_recall_is_named() -> None:
    """Without references the next best known on both sides is taken, and precision is not passed off as recall."""
    before = dict.fromkeys((Quantity.CONTEXT_PRECISION, Quantity.NEED_RECALL, FAITHFUL), STEADY)
    assert attribute(before, before).by is Quantity.NEED_RECALL
    del before[Quantity.NEED_RECALL]
    attribution = attribute(before, {**before, FAITHFUL: FALLEN})
    assert (attribution.by, attribution.regression) == (Quantity.CONTEXT_PRECISION, Regression.GENERATION)
    assert "used instead of recall" in describe(attribution)


def test_rising_contradictions_are_no_recall() -> None:
    """A metric that is neither recall nor faithfulness changes nothing in the attribution."""
    before = {RECALL: STEADY, FAITHFUL: STEADY, Quantity.CONTRADICTION: Interval(0.1, 0.05, 0.15)}
    assert attribute(before, {**before, Quantity.CONTRADICTION: FALLEN}).regression is Regression.NONE


def test_the_recommendation_names_the_stage() -> None:
    """Retrieval first; else the stage that most faulty samples name; without those, what the metric means."""
    invented = an_evidence((0, 0))
    unfound = an_evidence((0, 0), relevant=(False, False))
    aside = an_evidence((0, 1), relevant=(True, True), address="partially")
    said = recommendation(reported(invented))
    assert "faithfulness failed; the stage at fault is generation" in said
    assert "generation 100%" in said
    both = recommendation(reported(invented, unfound))
    assert "faithfulness, context precision failed; the stage at fault is retrieval" in both
    assert "the stage at fault is alignment" in recommendation(reported(aside))
    only_relevancy = GateReport(reported(aside).findings[1:2], 40, {}, {})
    assert "the stage at fault is generation" in recommendation(only_relevancy)
    assert "by stage" not in recommendation(only_relevancy)


def test_passing_and_unknown_are_told_with_their_warnings() -> None:
    """PASS says so, and what only warns is not hidden; too little data names what is lacking."""
    good, unfound = an_evidence((1, 0)), an_evidence((1, 0), relevant=(False, False))
    assert recommendation(reported(good)) == "Every metric that blocks is on the right side of its threshold."
    assert "Warning: context precision failed; retrieval:" in recommendation(reported(unfound))
    few = recommendation(reported(good, times=3))
    assert "Not enough data for faithfulness (3 scores, fewer than the 30 needed)" in few
    assert recommendation(reported(good, limits=())) == "Not enough data for a verdict: no metric blocks."
    steady = attribute({RECALL: STEADY, FAITHFUL: STEADY}, {RECALL: STEADY, FAITHFUL: STEADY})
    assert recommendation(reported(good), steady).endswith(
        "Against the baseline: no significant regression: neither context recall nor faithfulness fell."
    )


def test_recall_by_relevance_judgements_goes_before_that_of_a_judge() -> None:
    """Requirements item 42: recall@k is measured, at the largest k; the judge's recall only substitutes for it."""
    before: dict[Metric, Interval] = {
        metric_of(name): STEADY for name in ("recall@3", "recall@10", "context_recall", "faithfulness", "mrr")
    }
    after = {**before, metric_of("recall@10"): FALLEN, FAITHFUL: FALLEN}
    attribution = attribute(before, after)
    assert (str(attribution.regression), attribution.by) == ("retrieval", "recall@10")
    assert str(attribute(before, {**before, RECALL: FALLEN, FAITHFUL: FALLEN}).regression) == "generation"
    assert stage_of(metric_of("ndcg@5")) is Stage.RETRIEVAL
