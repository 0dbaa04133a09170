"""Which stage a gate names."""

from __future__ import annotations

from support.kit import a_verdict, an_evidence

from ragwatch.core.gate import GateReport, GateRules, MetricLimit, gate
from ragwatch.core.gate_line import recommendation, stage_of
from ragwatch.core.set_scores import metric_of
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.model.stages import Stage

LIMITS = (
    MetricLimit(Quantity.FAITHFULNESS, 0.85),
    MetricLimit(Quantity.ANSWER_RELEVANCY, 0.75),
    MetricLimit(Quantity.CONTEXT_PRECISION, 0.7, GateSeverity.WARN),
)


def reported(*evidence: object, limits: tuple[MetricLimit, ...] = LIMITS, times: int = 40) -> GateReport:
    """The gate's report on each evidence so many times."""
    return gate([a_verdict(evidence=part) for part in evidence for _ in range(times)], GateRules(limits))  # type: ignore[arg-type]


def test_every_metric_has_a_stage() -> None:
    """Whatever a gate may be asked for, a failure of it names a stage."""
    assert Stage.NONE not in {metric.row.stage for metric in (*Quantity, *ReferenceQuantity)}
    assert stage_of(metric_of("ndcg@5")) is Stage.RETRIEVAL


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
