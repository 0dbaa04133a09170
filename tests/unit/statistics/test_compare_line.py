"""Two logs, or two runs of canaries, beside each other as JSON."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report
from support.kit import a_draw, a_record, a_verdict, an_evidence, an_unjudged

from ragwatch.model.quantities import ReferenceQuantity
from ragwatch.model.sample import Role, Turn
from ragwatch.statistics.canary.definition import Category
from ragwatch.statistics.compare_line import (
    ComparedAnswer,
    answer_of,
    compare_answers,
    compare_line,
    compare_reports,
    compare_verdicts,
)
from ragwatch.statistics.verdict import Verdict


def answered(question: str | None, *, good: bool, name: str = "r", route: str = "", **parts: Any) -> Verdict:
    """A faithful answer, or one that is not."""
    evidence = an_evidence((1, 0) if good else (0, 0))
    draw = a_draw(name, question=question, **parts)
    return a_verdict(replace(draw, sample=draw.sample._replace(route=route)), evidence)


def by_metric(line: dict[str, Any]) -> dict[str, Any]:
    """Metrics by name."""
    return {row["metric"]: row for row in line["metrics"]}


def test_two_logs_over_the_same_questions_are_paired() -> None:
    """Pairs by question, means per question, categories of the metadata; unjudged answers leave no trace."""
    questions = [f"What about {number}?" for number in range(40)]
    kinds = ["simple" if number < 10 else "hard" for number in range(40)]
    asked = list(zip(questions, kinds, strict=True))
    a = [answered(q, good=False, metadata={"category": kind}) for q, kind in asked]
    b = [answered(q.upper(), good=kind == "hard") for q, kind in asked]
    comparison = compare_verdicts([*a, an_unjudged(a_draw(question="Only A?"))], [*b, b[0]])
    line = json.loads(json.dumps(compare_line(comparison, "a.jsonl", "b.jsonl")))
    assert line.items() >= {"a": "a.jsonl", "b": "b.jsonl", "paired": True, "unit": "questions"}.items()
    assert (line["shared"], line["only_a"], line["only_b"]) == (40, 1, 0)
    faithful = by_metric(line)["faithfulness"]
    assert (faithful["difference"], faithful["n"], faithful["conclusion"]) == (0.75, 40, "better")
    assert (faithful["wins"], faithful["ties"], faithful["losses"]) == (30, 10, 0)
    by_category = {name: (part["difference"], part["n"]) for name, part in faithful["categories"].items()}
    assert by_category == {"hard": (1.0, 30), "simple": (0.0, 10)}
    assert faithful["categories"]["simple"]["warning"] == "only 10 questions, fewer than 30"
    assert "context_recall" not in by_metric(line)
    assert not comparison.worse
    told = {"context_recall": 0.5, "missing": []}  # of live variants: the same arithmetic, and what a reference tells
    sides = ([kept(one, metadata=one.draw.sample.metadata, reference=told) for one in side] for side in (a, b))
    rows = by_metric(compare_line(compare_answers(*sides), "a", "b"))
    assert rows["faithfulness"] == faithful
    assert rows[str(ReferenceQuantity.CONTEXT_RECALL)]["ties"] == 40


def test_logs_without_questions_are_paired_by_id() -> None:
    """The category is the route where the metadata names none."""
    names = [f"r{number}" for number in range(5)]
    a = [answered(None, good=True, name=name, route=name) for name in names]
    b = [answered(None, good=False, name=name) for name in names]
    comparison = compare_verdicts(a, b)
    assert (comparison.matched.keys, comparison.matched.enough) == (tuple(f"id:{name}" for name in names), True)
    assert set(comparison.rows[0].categories) == set(names)
    assert compare_line(compare_verdicts([], []), "a", "b")["metrics"] == []


def test_two_retrievers_asked_the_same_canaries() -> None:
    """Figures at each k; a canary that failed on one side is left out of both; a negative one has only its success."""
    canaries = [a_canary(f"d{number}", name=f"c{number}") for number in range(35)]
    a = [a_report(canary, a_reply(str(canary.expected[0].id), "x")) for canary in canaries]
    b = [a_report(canary, a_reply("x", str(canary.expected[0].id))) for canary in canaries]
    b[0] = a_report(canaries[0], a_failure())
    nothing = a_canary(category=Category.NEGATIVE, name="nothing")
    comparison = compare_reports([*a, a_report(nothing, a_reply())], [*b, a_report(nothing, a_reply("x"))], (1, 5))
    line = by_metric(compare_line(comparison, "old", "new"))
    at = {f"{name}@{k}" for name in ("recall", "precision", "f1", "ndcg") for k in (1, 5)}
    assert set(line) == at | {"mrr@5", "success"}
    assert (line["recall@1"]["difference"], line["recall@1"]["n"], line["recall@5"]["difference"]) == (-1.0, 34, 0.0)
    assert line["mrr@5"]["difference"] == pytest.approx(-0.5)
    assert (line["success"]["n"], line["success"]["losses"]) == (35, 1)
    assert line["recall@5"]["warning"] == "the interval contains 0"
    assert comparison.worse


def test_a_query_that_stands_in_two_suites_is_compared_in_each() -> None:
    """The first of one side with the first of the other: a loss is not covered by what comes behind it."""
    canaries = [a_canary(f"d{number}", query="What about it?", name=f"c{number}") for number in range(40)]
    a = [a_report(canary, a_reply(str(canary.expected[0].id))) for canary in canaries]
    b = [a_report(canary, a_reply("x")) for canary in canaries[:-1]] + a[-1:]
    line = compare_line(compare_reports(a, b, (1,)), "old", "new")
    assert (line["shared"], by_metric(line)["recall@1"]["losses"]) == (40, 39)


def kept(verdict: Verdict, *, reference: Any = None, metadata: Any = None, **place: Any) -> ComparedAnswer:
    """A verdict and its sample as a store keeps them, read back."""
    draw = verdict.draw
    record = a_record(verdict, **{"reference": reference} | place)
    return answer_of(record, draw.sample.to_record() | {"metadata": metadata})


def test_follow_ups_are_paired_by_their_conversation() -> None:
    """The same words after other turns of the user are another question; what the assistant said is the variant's."""

    def key(*history: Turn) -> str:
        draw = a_draw(question="And for students?", history=history)
        stored = kept(a_verdict(draw)).key
        line = compare_line(compare_verdicts([a_verdict(draw)], [a_verdict(draw)]), "a", "b")
        assert line["shared"] == 1
        return stored

    ticket, card = Turn(Role.USER, "How much is a ticket?"), Turn(Role.USER, "How much is a library card?")
    assert key(ticket, Turn(Role.ASSISTANT, "Ten euros.")) == key(ticket, Turn(Role.ASSISTANT, "9 euros."))
    assert len({key(), key(ticket), key(card)}) == 3


def test_live_variants_weigh_by_their_sampling() -> None:
    """What was drawn at 1/10 stands for ten; routes are the categories, also where questions are not shared."""
    a, b = [], []
    for number in range(80):
        rare = number < 40
        place = {"route": "rare" if rare else "often", "probability": 1.0 if rare else 0.1}
        a.append(kept(answered(f"a{number}", good=not rare), **place))
        b.append(kept(answered(f"b{number}", good=True), **place))
    line = compare_line(compare_answers(a, b), "old", "new")
    faithful = by_metric(line)["faithfulness"]
    assert (line["paired"], line["shared"], faithful["n"], faithful["wins"]) == (False, 0, 80, None)
    assert faithful["conclusion"] == "better"
    assert compare_answers(b, a).worse
    assert faithful["a"] == pytest.approx(400 / 440)
    assert {name: part["difference"] for name, part in faithful["categories"].items()} == {"often": 0.0, "rare": 1.0}
