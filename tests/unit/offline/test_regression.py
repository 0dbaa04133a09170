"""What fell since a baseline and which questions lost; what a gate found as JSON, read back as a baseline."""

import json
from typing import Any

import pytest
from support.kit import a_draw, a_sample, a_verdict, an_evidence, an_unjudged

from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.sample import Context, RelevantContext, Role, Turn
from ragwatch.model.stages import Stage
from ragwatch.offline.gate_line import GateOutcome, baseline_of, gate_line, recommendation, stage_of
from ragwatch.offline.regression import Attribution, GateRun, Regression, attribute, describe, run_of
from ragwatch.statistics.estimators.interval import Interval
from ragwatch.statistics.gate import Figure, GateReport, GateRules, MetricLimit, gate
from ragwatch.statistics.question_scores import QuestionScores, pairs_of, question_of
from ragwatch.statistics.relevance import RankedCase, rank_sample
from ragwatch.statistics.set_scores import Metric, metric_of

STEADY, FALLEN, HINT = Interval(0.9, 0.86, 0.93), Interval(0.6, 0.53, 0.67), Interval(0.87, 0.84, 0.90)
FAITHFUL, RECALL = Quantity.FAITHFULNESS, ReferenceQuantity.CONTEXT_RECALL
RULES = GateRules((MetricLimit(FAITHFUL, 0.85),), tolerated_fall=0.1)
GOOD, BAD = an_evidence((1, 0)), an_evidence((0, 0))
TWO_LIMITS = GateRules((MetricLimit(Quantity.FAITHFULNESS, 0.85), MetricLimit(ReferenceQuantity.CONTEXT_RECALL, 0.8)))
LIMITS = (
    MetricLimit(Quantity.FAITHFULNESS, 0.85),
    MetricLimit(Quantity.ANSWER_RELEVANCY, 0.75),
    MetricLimit(Quantity.CONTEXT_PRECISION, 0.7, GateSeverity.WARN),
)


def means(figures: dict[Metric, Interval | None]) -> GateRun:
    """A run of which only means are known."""
    return GateRun({metric: Figure(metric, one, 300) for metric, one in figures.items() if one is not None})


def since(before: dict[Metric, Interval | None], after: dict[Metric, Interval | None]) -> Attribution:
    """The second against the first."""
    return attribute(means(before), means(after), RULES)


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
    attribution = since({RECALL: STEADY, FAITHFUL: STEADY}, {RECALL: recall, FAITHFUL: faithful})
    assert attribution.regression == regression
    assert regression in describe(attribution) or regression == "none"
    assert ("is in the baseline and unknown now" in describe(attribution)) is (faithful is None)


def test_what_stands_in_for_recall_is_named() -> None:
    """Recall@k is measured (requirements item 42); else the next best that both sides know is taken."""
    known = (Quantity.CONTEXT_PRECISION, Quantity.NEED_RECALL, FAITHFUL)
    before: dict[Metric, Interval | None] = dict.fromkeys(known, STEADY)
    assert since(before, before).by is Quantity.NEED_RECALL
    del before[Quantity.NEED_RECALL]
    attribution = since(before, before | {FAITHFUL: FALLEN})
    assert (attribution.by, attribution.regression) == (Quantity.CONTEXT_PRECISION, Regression.GENERATION)
    assert "used instead of recall" in describe(attribution)
    both = since(before, dict.fromkeys(before, FALLEN))  # its anchor is the answer, so that an invention lowers it
    assert both.regression is Regression.UNKNOWN
    names = ("recall@3", "recall@10", "context_recall", "faithfulness", "mrr")
    before: dict[Metric, Interval | None] = dict.fromkeys(map(metric_of, names), STEADY)
    attribution = since(before, before | {metric_of("recall@10"): FALLEN, FAITHFUL: FALLEN})
    assert (str(attribution.regression), attribution.by) == ("retrieval", "recall@10")
    assert str(since(before, before | {RECALL: FALLEN, FAITHFUL: FALLEN}).regression) == "generation"


def test_only_what_blocks_and_recall_and_faithfulness_are_watched() -> None:
    """A fall of another metric is reported and fails no build; of what is better when low, a rise is a fall."""
    figures: dict[Metric, Interval | None] = {FAITHFUL: STEADY, Quantity.CONTEXT_USE: STEADY, metric_of("mrr"): STEADY}
    rules = GateRules((MetricLimit(metric_of("mrr"), 0.5), MetricLimit(Quantity.CONTEXT_USE, 0.5, GateSeverity.WARN)))
    changes = attribute(means(figures), means(figures), rules).changes
    assert {str(name) for name, one in changes.items() if one.watched} == {"faithfulness", "mrr"}
    rare, frequent, metric = Interval(0.1, 0.08, 0.12), Interval(0.4, 0.35, 0.45), Quantity.CONTRADICTION
    assert since({metric: rare}, {metric: frequent}).changes[metric].held is False
    assert since({metric: frequent}, {metric: rare}).changes[metric].held


def judged(bad: int, total: int) -> GateReport:
    """So many answers to questions of their own, of which the first few are invented."""
    draws = [a_draw(f"q{number}", question=f"Why {number}?") for number in range(total)]
    return gate([a_verdict(draw, BAD if number < bad else GOOD) for number, draw in enumerate(draws)], RULES)


def ranked(hits: int, total: int) -> GateReport:
    """So many questions, of which the first few find their passage at rank 4."""

    def case(number: int) -> RankedCase:
        ids = ("x", "y", "z", "good" if number < hits else "bad")
        contexts = tuple(Context("", name) for name in ids)
        relevant = (RelevantContext("good"),)
        question = f"Why {number}?"
        return rank_sample(a_sample(f"r{number}", question=question, contexts=contexts, relevant=relevant, answer=""))

    return gate([], RULES, cases=[case(number) for number in range(total)], ks=(4,))


@pytest.mark.parametrize(
    ("before", "after", "metric", "held"),
    [
        (judged(0, 300), judged(30, 300), "faithfulness", False),  # 1.000 -> 0.900
        (judged(0, 300), judged(2, 300), "faithfulness", True),  # within the tolerated fall
        (judged(3, 40), judged(3, 40), "faithfulness", True),
        (judged(0, 40), judged(2, 40), "faithfulness", None),
        (ranked(280, 320), ranked(160, 320), "recall@4", False),  # .875 -> .500
        (ranked(35, 40), ranked(20, 40), "recall@4", False),
        (ranked(7, 8), ranked(4, 8), "recall@4", None),
        (ranked(2, 2), ranked(0, 2), "recall@4", None),  # two questions prove nothing
    ],
)
def test_a_fall_beyond_chance_fails(before: GateReport, after: GateReport, metric: str, held: Any) -> None:
    """Paired by id; what too few rows leave open comes with the number that should tell."""
    attribution = attribute(run_of(before), run_of(after), GateRules(RULES.limits))
    change = attribution.changes[metric_of(metric)]
    assert (change.held, change.difference.paired) == (held, True)
    assert (change.needed is not None) is (held is None)
    assert (change.needed or 10**6) > change.difference.n


def test_the_number_needed_is_enough() -> None:
    """With so many rows of the same kind the same change is told."""
    few = attribute(run_of(ranked(7, 8)), run_of(ranked(4, 8)), RULES)
    needed = few.changes[metric_of("recall@4")].needed
    more = attribute(run_of(ranked(needed * 7 // 8, needed)), run_of(ranked(needed // 2, needed)), RULES)
    assert more.changes[metric_of("recall@4")].held is False
    assert f"too few to tell, about {needed} rows should" in describe(few)


def test_questions_that_lost_most_come_first() -> None:
    """By the largest loss, then by the sum."""

    def run(**scores: dict[str, float]) -> GateRun:
        figures = {metric_of(name): Figure(metric_of(name), STEADY, 3) for name in ("faithfulness", "recall@4")}
        return GateRun(figures, [QuestionScores(name, name, None, name, one) for name, one in scores.items()])

    scores = {"a": (0.5, 1.0), "b": (1.0, 1.0), "c": (0.5, 0.5), "d": (0.0, 1.0)}
    whole = {name: {"faithfulness": 1.0, "recall@4": 1.0} for name in scores}
    worse = {name: {"faithfulness": faithful, "recall@4": recall} for name, (faithful, recall) in scores.items()}
    lost = attribute(run(**whole), run(**worse), RULES).lost
    assert [one.question.id for one in lost] == ["d", "c", "a"]
    assert lost[0].lost == {FAITHFUL: (1.0, 0.0)}


def test_rows_of_other_questions_are_compared_unpaired() -> None:
    """The fall is told from the means of both; what only one side knows is unknown, and has lost nothing."""
    before, after = run_of(judged(0, 60)), run_of(judged(30, 60))
    others = tuple(row._replace(id=f"other-{row.id}", key=f"other {row.key}") for row in after.questions)
    change = attribute(before, after._replace(questions=others), RULES).changes[FAITHFUL]
    assert (change.difference.paired, change.held) == (False, False)
    unknown = attribute(before, GateRun({}), RULES).changes
    assert all(one.difference is None and one.held is None for one in unknown.values())
    lost = len(attribute(before, after, RULES).lost)
    bad = next(place for place, row in enumerate(after.questions) if row.scores[FAITHFUL] < 1.0)
    rows = list(after.questions)
    rows[bad] = rows[bad]._replace(scores={})
    assert len(attribute(before, after._replace(questions=tuple(rows)), RULES).lost) == lost - 1


def test_rows_are_paired_by_id_else_by_question() -> None:
    """Line numbers as ids pair no other questions; a row has a link if its metadata hold an address."""
    first = [question_of(a_sample(f"log:{number}", question=f"Why {number}?")) for number in range(10)]
    shifted = [row._replace(id=f"log:{number}") for number, row in enumerate(first[1:])]
    assert [(a.question, b.question) for a, b in pairs_of(first, shifted)] == [(one.question,) * 2 for one in first[1:]]
    assert pairs_of(first, [question_of(a_sample(one.id, question="Else?")) for one in first]) == []
    again = question_of(a_sample("log:0", question=" WHY  0?", history=(Turn(Role.USER, "Hello."),)))
    assert again.key != first[0].key
    assert question_of(a_sample(metadata={"url": "https://ci.example/q1"})).link == "https://ci.example/q1"
    assert question_of(a_sample(metadata={"url": "javascript:alert(1)", "link": 3})).link is None


def forty_of(*cells: int) -> GateReport:
    """Forty answers of which the first context supports the claim or not, and one that nobody read."""
    return gate([*[a_verdict(evidence=an_evidence(cells))] * 40, an_unjudged()], TWO_LIMITS)


def as_json(report: GateReport, attribution: Attribution | None = None) -> dict[str, Any]:
    """The line of a report, as a reader of JSON has it."""
    return json.loads(json.dumps(gate_line(GateOutcome(report, "v1", attribution))))  # type: ignore[no-any-return]


def test_the_shape_of_the_contract() -> None:
    """Every key of design section 6 is there, and what is unknown is null."""
    line = as_json(forty_of(1, 0))
    assert (line["verdict"], line["judged"]) == ("NOT_ENOUGH_DATA", 40)
    assert (line["unread"], line["baseline"]) == ({"timeout": 1}, None)
    known, unknown = line["metrics"]
    assert {"metric", "value", "low", "high", "n", "threshold", "severity", "pass"} <= set(known)
    assert known.items() >= {"metric": "faithfulness", "value": 1.0, "n": 40, "pass": True, "reason": None}.items()
    assert [unknown[name] for name in ("value", "low", "high", "pass")] == [None] * 4
    assert unknown["reason"] == "no sample has a reference"
    assert isinstance(line["recommendation"], str)


def test_a_line_is_a_baseline_for_a_later_one() -> None:
    """Figures go out and come back the same; those of older versions have no questions, and are compared by means."""
    before = baseline_of(as_json(forty_of(1, 0)), "v1")
    assert before == run_of(forty_of(1, 0))
    after = forty_of(0, 0)
    told = as_json(after, attribute(before, run_of(after), TWO_LIMITS))["baseline"]
    assert (told["regression"], told["recall_by"], told["paired"]) == ("unknown", None, 40)
    assert told["changes"]["faithfulness"]["change"] == -1.0
    assert told["changes"]["faithfulness"]["held"] is False
    assert len(told["lost"]) == 40
    assert told["lost"][0]["scores"] == {"faithfulness": [1.0, 0.0]}
    old = {name: value for name, value in as_json(forty_of(1, 0)).items() if name != "questions"}
    attribution = attribute(baseline_of(old, "v1"), run_of(forty_of(0, 0)), TWO_LIMITS)
    change = attribution.changes[Quantity.FAITHFULNESS]
    assert (change.difference.paired, change.held, attribution.lost) == (False, False, ())


def test_what_is_no_gate_line_is_refused() -> None:
    """Any other JSON is named as such; verdicts of different versions of a judge never share a comparison."""
    metrics: tuple[Any, ...] = ([{}], 3, ["recall"], [None])
    lines: list[Any] = [[], "", {}, {"judge": "v1"}, *({"judge": "v1", "metrics": one} for one in metrics)]
    for line in lines:
        with pytest.raises(ValueError, match="is not the JSON that `ragwatch gate --json` prints"):
            baseline_of(line, "v1")
    with pytest.raises(ValueError, match="was made by the judge v1, and this one is v2"):
        baseline_of(as_json(forty_of(1, 0)), "v2")


def reported(*evidence: object, limits: tuple[MetricLimit, ...] = LIMITS, times: int = 40) -> GateReport:
    """The gate's reported_forty on each evidence so many times."""
    return gate([a_verdict(evidence=part) for part in evidence for _ in range(times)], GateRules(limits))  # type: ignore[arg-type]


def test_the_recommendation_names_the_stage() -> None:
    """Retrieval first; else what most faulty samples name; else the metric's; PASS hides no warning."""
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
    good, unfound = an_evidence((1, 0)), an_evidence((1, 0), relevant=(False, False))
    assert recommendation(reported(good)) == "Every metric that blocks is on the right side of its threshold."
    assert "Warning: context precision failed; retrieval:" in recommendation(reported(unfound))
    few = recommendation(reported(good, times=3))
    assert "Not enough data for faithfulness (3 scores, fewer than the 30 needed)" in few
    assert recommendation(reported(good, limits=())) == "Not enough data for a verdict: no metric blocks."
