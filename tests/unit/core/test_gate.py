"""The gate: what passes, what fails, and what must not pass for want of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.kit import a_draw, a_verdict, an_evidence, an_unjudged

from ragwatch.core.evidence import ReferenceClaim
from ragwatch.core.gate import (
    GateDecision,
    GateReport,
    GateRules,
    GateSeverity,
    MetricFinding,
    MetricLimit,
    gate,
    metric_of,
    score_of,
)
from ragwatch.core.reference import ReferenceQuantity
from ragwatch.core.scores import Quantity
from ragwatch.core.stage import Stage
from ragwatch.core.verdict import Judged, Verdict

GOOD, BAD = an_evidence((1, 0)), an_evidence((0, 0))
FAITHFUL = MetricLimit(Quantity.FAITHFULNESS, 0.85)
RECALL = MetricLimit(ReferenceQuantity.CONTEXT_RECALL, 0.8)


def verdicts(good: int, bad: int = 0, unjudged: int = 0) -> list[Verdict]:
    """So many faithful answers, unfaithful ones, and unread ones."""
    return [
        *(a_verdict(evidence=GOOD) for _ in range(good)),
        *(a_verdict(evidence=BAD) for _ in range(bad)),
        *(an_unjudged() for _ in range(unjudged)),
    ]


def held(
    judged: Sequence[Verdict], limit: MetricLimit = FAITHFUL, rejected: Any = None, **parts: Any
) -> tuple[str, MetricFinding]:
    """Verdict and finding of a gate with one limit."""
    report = gate(judged, GateRules((limit,), **parts), rejected=rejected)
    return str(report.verdict), report.findings[0]


@pytest.mark.parametrize(
    ("good", "bad", "verdict"),
    [
        (0, 0, "NOT_ENOUGH_DATA"),
        (29, 0, "NOT_ENOUGH_DATA"),  # a sample too few, though all are good
        (30, 0, "PASS"),
        (1, 0, "NOT_ENOUGH_DATA"),
        (0, 1, "NOT_ENOUGH_DATA"),  # one bad answer proves nothing
        (0, 4, "NOT_ENOUGH_DATA"),
        (0, 5, "FAIL"),  # five do: the whole interval is below
        (52, 8, "PASS"),  # 0.867, though the interval begins below
        (50, 10, "FAIL"),  # 0.833, though the interval ends above
        (100, 100, "FAIL"),
    ],
)
def test_the_verdict_on_one_metric(good: int, bad: int, verdict: str) -> None:
    """Certainly bad fails at any size; else too few is unknown; else the mean decides."""
    assert held(verdicts(good, bad))[0] == verdict


def test_a_close_decision_says_so_and_strict_refuses_it() -> None:
    """With `strict` a threshold inside the interval is not enough data, on either side of the mean."""
    for good, bad in ((52, 8), (50, 10)):
        assert held(verdicts(good, bad))[1].reason == "close: the threshold is inside the interval"
        verdict, finding = held(verdicts(good, bad), strict=True)
        assert (verdict, finding.passed) == ("NOT_ENOUGH_DATA", None)
    assert held(verdicts(200), strict=True)[0] == "PASS"
    assert not held(verdicts(200))[1].reason


def test_a_mean_on_the_threshold_passes() -> None:
    """The threshold itself is good enough."""
    assert held(verdicts(17, 3), minimum_samples=20)[1].passed is True


def test_small_is_good_for_contradiction() -> None:
    """The threshold is an upper limit, and everything turns round."""
    limit = MetricLimit(Quantity.TOP_RANKED_IGNORED, 0.3)
    ignored = an_evidence((0, 1))
    assert held(verdicts(40), limit)[0] == "PASS"
    assert held([a_verdict(evidence=ignored)] * 40, limit)[0] == "FAIL"
    assert held([a_verdict(evidence=ignored)] * 2, limit)[0] == "NOT_ENOUGH_DATA"
    assert held(verdicts(2), limit)[1].passed is None
    close = [*verdicts(30), *[a_verdict(evidence=ignored)] * 10]
    assert held(close, limit)[1].reason.startswith("close")
    assert held(close, limit)[1].passed is True


@pytest.mark.parametrize(
    ("unjudged", "rejected", "verdict"), [(4, {}, "PASS"), (5, {}, "NOT_ENOUGH_DATA"), (2, {"torn_json": 3}, None)]
)
def test_a_gate_that_reads_only_the_rest_does_not_pass(unjudged: int, rejected: Any, verdict: str | None) -> None:
    """Answers that no judge could read, and rows that are none, count as unread; a failure still fails."""
    decision, finding = held(verdicts(40, 0, unjudged), rejected=rejected)
    assert decision == (verdict or "NOT_ENOUGH_DATA")
    assert finding.n == 40
    assert held(verdicts(0, 40, 40), rejected=rejected)[0] == "FAIL"
    report = gate(verdicts(1, 0, unjudged), GateRules((FAITHFUL,)), rejected=rejected)
    assert report.unread == {"timeout": unjudged, **rejected}


def test_warnings_never_decide_and_something_must() -> None:
    """A metric that warns may fail or be unknown; but where none blocks, there is no verdict."""
    warns = replace(FAITHFUL, metric=Quantity.CONTEXT_USE, threshold=0.9, severity=GateSeverity.WARN)
    unknown = replace(RECALL, severity=GateSeverity.WARN)
    report = gate(verdicts(40), GateRules((FAITHFUL, warns, unknown)))
    assert [finding.passed for finding in report.findings] == [True, False, None]
    assert report.verdict is GateDecision.PASS
    assert gate(verdicts(40), GateRules((warns,))).verdict is GateDecision.NOT_ENOUGH_DATA
    assert gate(verdicts(40), GateRules(())).verdict is GateDecision.NOT_ENOUGH_DATA


def test_a_failure_outweighs_what_is_unknown() -> None:
    """One metric fails and another is unknown: it is a failure."""
    assert gate(verdicts(0, 40), GateRules((RECALL, FAITHFUL))).verdict is GateDecision.FAIL


def test_why_a_metric_is_unknown() -> None:
    """No samples, no references, references that the judge does not read, or answers without claims."""
    with_reference = a_verdict(a_draw(reference="Cats purr."))
    abstained = a_verdict(evidence=an_evidence(address="abstained"))
    silent = a_verdict(evidence=an_evidence())
    assert held([], RECALL)[1].reason == "no sample was judged"
    assert held(verdicts(1), RECALL)[1].reason == "no sample has a reference"
    assert held([with_reference], RECALL)[1].reason == "the judge embedded does not read references"
    assert held([abstained, abstained, silent])[1].reason == "abstained in 2, no claims in 1"


def test_recall_is_judged_where_references_are_read() -> None:
    """Samples without a reference leave no trace in it."""
    known = ReferenceClaim("Cats purr.", 0, 10, (True, False))
    read = a_verdict(a_draw(reference="Cats purr."), replace(GOOD, reference=(known,)))
    verdict, finding = held([*[read] * 30, *verdicts(50)], RECALL)
    assert (verdict, finding.n) == ("PASS", 30)


def test_metrics_by_name() -> None:
    """Both kinds are found; others are refused."""
    read = a_verdict()
    assert isinstance(read, Judged)
    assert score_of(read, metric_of("faithfulness")) == 1.0
    assert score_of(read, metric_of("correctness")) is None
    with pytest.raises(ValueError, match="nonsense"):
        metric_of("nonsense")


def test_stages_are_counted() -> None:
    """Every judged sample with a known stage."""
    report: GateReport = gate(verdicts(3, 2, 1), GateRules((FAITHFUL,)))
    assert (report.judged, report.stages) == (5, {Stage.NONE: 3, Stage.GENERATION: 2})
