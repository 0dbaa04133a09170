"""The gate: what passes, what fails, and what must not pass for want of data."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.kit import a_draw, a_sample, a_verdict, an_evidence, an_unjudged

from ragwatch.model.evidence import ReferenceClaim
from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.sample import Context, RelevantContext
from ragwatch.statistics.gate import GateDecision, GateRules, MetricFinding, MetricLimit, gate
from ragwatch.statistics.quantity_level import KnownError, PersonsLabel
from ragwatch.statistics.relevance import CaseKind, RankedCase, rank_sample
from ragwatch.statistics.set_scores import metric_of
from ragwatch.statistics.verdict import Verdict

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
        (34, 6, "PASS"),  # the threshold itself is good enough
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


def labels_of(good: int, bad: int, quantity: Quantity = Quantity.FAITHFULNESS) -> KnownError:
    """What people say of answers 0, 1, ..., and four families of a judge of faithfulness."""
    people = {str(number): PersonsLabel({quantity: float(number < good)}, 1.0) for number in range(good + bad)}
    return KnownError({Quantity.FAITHFULNESS: ((0.95, 0.4), (0.97, 0.5), (0.9, 0.35), (0.93, 0.6))}, people)


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        (0, 0, "with `ragwatch label` or by hand for --labels, or compare the judge's mean with --uncorrected"),
        (17, 3, "20 of which are here, with `ragwatch label`"),
    ],
)
def test_a_threshold_inside_a_level_needs_labels(good: int, bad: int, reason: str) -> None:
    """The judge's error could turn the verdict: unknown, also without `strict`, and what to do; the mean stays."""
    judged = [a_verdict(a_draw(str(number)), GOOD) for number in range(40)]
    report = gate(judged, GateRules((FAITHFUL, RECALL)), error=labels_of(good, bad))
    finding, without = report.findings
    assert (report.verdict, finding.passed) == (GateDecision.NOT_ENOUGH_DATA, None)
    assert re.match(
        r"between 0\.\d\d and \d\.\d\d in people's terms, threshold 0.85: label [a-z 0-9]+ more", finding.reason
    )
    assert reason in finding.reason
    assert finding.level.labels == good + bad
    assert finding.compared == (finding.level.value, finding.level.low, finding.level.high)
    assert finding.estimate == gate(judged, GateRules((FAITHFUL,))).findings[0].estimate
    assert (without.level, without.compared) == (None, without.estimate)


def test_answers_in_unmeasured_languages_decide_nothing() -> None:
    """Neither pass nor fail by the judge's mean, which nobody has measured there; asked for it, the mean decides."""
    judged = [a_verdict(a_draw(str(number)), replace(GOOD, language="de")) for number in range(40)]
    report = gate(judged, GateRules((FAITHFUL,)), error=labels_of(0, 0))
    assert (report.verdict, report.findings[0].passed) == (GateDecision.NOT_ENOUGH_DATA, None)
    assert "100% of the answers are in languages in which the judge was not measured (de)" in report.findings[0].reason
    assert gate(judged, GateRules((FAITHFUL,))).verdict is GateDecision.PASS


def test_labels_decide() -> None:
    """A level on either side of the threshold passes or fails; one that is bad when high has an upper limit."""
    judged = [a_verdict(a_draw(str(number)), GOOD) for number in range(40)]
    for good, bad, verdict in ((20, 0, "PASS"), (0, 20, "FAIL")):
        assert gate(judged, GateRules((FAITHFUL,)), error=labels_of(good, bad)).verdict == verdict
    few = gate(judged[:20], GateRules((FAITHFUL,)), error=labels_of(20, 0))
    assert few.findings[0].reason == "20 scores, fewer than the 30 needed"
    limit = MetricLimit(Quantity.TOP_RANKED_IGNORED, 0.3)
    ignored = gate(judged, GateRules((limit,)), error=labels_of(20, 0, Quantity.TOP_RANKED_IGNORED)).findings[0]
    assert (ignored.passed, ignored.estimate and ignored.estimate.value) == (False, 0.0)


def test_small_is_good_for_contradiction() -> None:
    """The threshold is an upper limit, and everything turns round."""
    limit = MetricLimit(Quantity.TOP_RANKED_IGNORED, 0.3)
    ignored = an_evidence((0, 1))
    assert held(verdicts(40), limit)[0] == "PASS"
    assert held([a_verdict(evidence=ignored)] * 40, limit)[0] == "FAIL"
    assert held([a_verdict(evidence=ignored)] * 2, limit)[0] == "NOT_ENOUGH_DATA"
    assert held(verdicts(2), limit)[1].passed is None
    close = [*verdicts(28), *[a_verdict(evidence=ignored)] * 12]  # the threshold itself is good enough
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
    """A metric that warns may fail or be unknown; where none blocks there is no verdict; one that fails is enough."""
    assert gate(verdicts(0, 40), GateRules((RECALL, FAITHFUL))).verdict is GateDecision.FAIL
    warns = replace(FAITHFUL, metric=Quantity.CONTEXT_USE, threshold=0.9, severity=GateSeverity.WARN)
    unknown = replace(RECALL, severity=GateSeverity.WARN)
    report = gate(verdicts(40), GateRules((FAITHFUL, warns, unknown)))
    assert [finding.passed for finding in report.findings] == [True, False, None]
    assert report.verdict is GateDecision.PASS
    assert gate(verdicts(40), GateRules((warns,))).verdict is GateDecision.NOT_ENOUGH_DATA
    assert gate(verdicts(40), GateRules(())).verdict is GateDecision.NOT_ENOUGH_DATA


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


def a_ranked(ids: str = "xab", relevant: str = "ab", *, answer: str = "", route: str = "search") -> RankedCase:
    """A question whose contexts have these ids, in this order."""
    contexts = tuple(Context("Cats purr.", name) for name in ids)
    judged = tuple(RelevantContext(name) for name in relevant)
    return rank_sample(a_sample(contexts=contexts, relevant=judged, answer=answer), route=route)


def test_relevance_judgements_are_metrics_of_the_gate() -> None:
    """A threshold names them; below it the gate fails at retrieval, and the figures without one are reported too."""
    limit = MetricLimit(metric_of("recall@2"), 0.8)
    report = gate([], GateRules((limit,)), cases=[a_ranked()] * 40, ks=(1, 3))
    assert (report.findings[0].estimate or (None,))[0] == 0.5
    assert report.verdict is GateDecision.FAIL
    figures = {str(figure.metric): round(figure.estimate.value, 4) for figure in report.figures}
    at_3 = {"recall": 1.0, "precision": 0.6667, "f1": 0.8, "ndcg": 0.6934, "context_precision": 0.5833}
    expected = {f"{name}@{k}": value if k == 3 else 0.0 for name, value in at_3.items() for k in (1, 3)}
    assert figures == expected | {"mrr": 0.5}
    assert gate([], GateRules((limit,)), cases=[a_ranked("ab")] * 40).verdict is GateDecision.PASS


def test_figures_by_route() -> None:
    """Each route has its own means, of metrics with a threshold too."""
    cases = [*[a_ranked("ab")] * 2, a_ranked("xy", route="chat"), a_ranked(route="")]
    report = gate([], GateRules((MetricLimit(metric_of("recall@2"), 0.8),)), cases=cases, ks=(1,))
    routes = {
        route: {str(figure.metric): (figure.estimate.value, figure.n) for figure in figures}
        for route, figures in report.routes.items()
    }
    assert list(routes) == ["chat", "search"]
    assert (routes["search"]["recall@2"], routes["chat"]["recall@2"]) == ((1.0, 2), (0.0, 1))


def test_unknown_rankings_count_as_unread() -> None:
    """Contexts without ids, or rejected rows: with too many of them the gate does not pass; reasons are counted."""
    limit = MetricLimit(metric_of("mrr"), 0.4)
    unknown, good = [a_ranked(relevant="")] * 5, [a_ranked("ab")] * 40
    report = gate([], GateRules((limit,)), cases=[*good, *unknown])
    assert (report.verdict, report.unranked) == (GateDecision.NOT_ENOUGH_DATA, {"nothing_relevant": 5})
    assert gate([], GateRules((limit,)), cases=good, rejected={"torn_json": 5}).verdict is GateDecision.NOT_ENOUGH_DATA
    assert gate([], GateRules((limit,)), cases=unknown).findings[0].reason == "nothing relevant in 5"
    assert gate([], GateRules((limit,))).findings[0].reason.startswith("no row has relevance judgements")


def test_retrieval_and_generation_cases_are_never_averaged_together() -> None:
    """Requirements item 63: the fixed contexts of a generation test case say nothing about the retriever."""
    precision = MetricLimit(Quantity.CONTEXT_PRECISION, 0.7)
    rules = GateRules((FAITHFUL, precision, RECALL))
    mixed = gate(verdicts(40), rules, cases=[a_ranked()] * 3)
    assert [finding.n for finding in mixed.findings] == [40, 0, 0]
    assert "contexts of generation test cases are fixed" in mixed.findings[1].reason
    assert (mixed.kinds[CaseKind.RETRIEVAL], mixed.kinds[CaseKind.GENERATION]) == (3, 40)
    live = a_verdict(a_draw(relevant=(RelevantContext("a"),)))
    both = gate([live, *verdicts(40)], rules, cases=[a_ranked(), a_ranked(answer="So.")])
    assert [finding.n for finding in both.findings] == [41, 1, 0]
    assert both.kinds == {CaseKind.RETRIEVAL: 1, CaseKind.END_TO_END: 1, CaseKind.GENERATION: 40}
    alone = gate([live, *verdicts(40)], rules, cases=[a_ranked(answer="So.")])
    assert alone.findings[1].n == 41
