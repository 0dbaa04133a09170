"""What a gate found as JSON, and read back as a baseline."""

from __future__ import annotations

import json

import pytest
from support.kit import a_verdict, an_evidence, an_unjudged

from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.stages import Stage
from ragwatch.offline.gate_line import baseline_of, gate_line, recommendation, stage_of
from ragwatch.offline.regression import attribute, run_of
from ragwatch.statistics.gate import GateReport, GateRules, MetricLimit, gate
from ragwatch.statistics.set_scores import metric_of

RULES = GateRules((MetricLimit(Quantity.FAITHFULNESS, 0.85), MetricLimit(ReferenceQuantity.CONTEXT_RECALL, 0.8)))


def report(*cells: int) -> GateReport:
    """Forty answers of which the first context supports the claim or not, and one that nobody read."""
    return gate([*[a_verdict(evidence=an_evidence(cells))] * 40, an_unjudged()], RULES)


def test_the_shape_of_the_contract() -> None:
    """Every key of design section 6 is there, and what is unknown is null."""
    line = json.loads(json.dumps(gate_line(report(1, 0), judge="v1")))
    assert (line["verdict"], line["judged"]) == ("NOT_ENOUGH_DATA", 40)
    assert (line["unread"], line["baseline"]) == ({"timeout": 1}, None)
    known, unknown = line["metrics"]
    assert {"metric", "value", "low", "high", "n", "threshold", "severity", "pass"} <= set(known)
    assert known.items() >= {"metric": "faithfulness", "value": 1.0, "n": 40, "pass": True, "reason": None}.items()
    assert [unknown[name] for name in ("value", "low", "high", "pass")] == [None] * 4
    assert unknown["reason"] == "no sample has a reference"
    assert isinstance(line["recommendation"], str)


def test_a_line_is_a_baseline_for_a_later_one() -> None:
    """Figures go out and come back the same; the change stands in the line."""
    before = baseline_of(gate_line(report(1, 0), judge="v1"), "v1")
    assert before == run_of(report(1, 0))
    after = report(0, 0)
    line = gate_line(after, judge="v1", attribution=attribute(before, run_of(after), RULES))
    told = line["baseline"]
    assert told is not None
    assert (told["regression"], told["recall_by"], told["paired"]) == ("unknown", None, 40)
    assert told["changes"]["faithfulness"]["change"] == -1.0
    assert told["changes"]["faithfulness"]["held"] is False
    assert len(told["lost"]) == 40
    assert told["lost"][0]["scores"] == {"faithfulness": [1.0, 0.0]}
    assert json.loads(json.dumps(line)) == line


def test_a_baseline_without_questions_is_compared_by_its_means() -> None:
    """Reports of older versions have no questions."""
    old = {name: value for name, value in gate_line(report(1, 0), judge="v1").items() if name != "questions"}
    attribution = attribute(baseline_of(old, "v1"), run_of(report(0, 0)), RULES)
    change = attribution.changes[Quantity.FAITHFULNESS]
    assert (change.difference.paired, change.held, attribution.lost) == (False, False, ())


@pytest.mark.parametrize("line", [{}, {"judge": "v1"}, {"judge": "v1", "metrics": [{}]}, {"judge": "v1", "metrics": 3}])
def test_what_is_no_gate_line_is_refused(line: dict[str, object]) -> None:
    """Any other JSON is named as such; verdicts of different versions of a judge never share a comparison."""
    with pytest.raises(ValueError, match="is not the JSON that `ragwatch gate --json` prints"):
        baseline_of(line, "v1")
    with pytest.raises(ValueError, match="was made by the judge v1, and this one is v2"):
        baseline_of(gate_line(report(1, 0), judge="v1"), "v2")


LIMITS = (
    MetricLimit(Quantity.FAITHFULNESS, 0.85),
    MetricLimit(Quantity.ANSWER_RELEVANCY, 0.75),
    MetricLimit(Quantity.CONTEXT_PRECISION, 0.7, GateSeverity.WARN),
)


def reported(*evidence: object, limits: tuple[MetricLimit, ...] = LIMITS, times: int = 40) -> GateReport:
    """The gate's report on each evidence so many times."""
    return gate([a_verdict(evidence=part) for part in evidence for _ in range(times)], GateRules(limits))  # type: ignore[arg-type]


def test_the_recommendation_names_the_stage() -> None:
    """Retrieval first; else the stage that most faulty samples name; else that of the metric: each has one."""
    assert Stage.NONE not in {metric.row.stage for metric in (*Quantity, *ReferenceQuantity)}
    assert stage_of(metric_of("ndcg@5")) is Stage.RETRIEVAL
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
