"""Answered canaries as samples."""

from __future__ import annotations

from typing import Any

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_text
from support.kit import AT

from ragwatch.core.canary.answer import GOLD, RETRIEVED, JudgedAnswer, answers_line, faults, gold_texts, sample_of
from ragwatch.core.canary.definition import Category, Expected, Hit, Retrieved
from ragwatch.core.sample import Context

CANARY = a_canary(Expected("a", "Text of a."), reference="A good answer.")


def test_an_answer_is_a_sample_with_its_reference() -> None:
    """Contexts in the order of the reply, and a mark that keeps it apart from live traffic."""
    sample = sample_of(CANARY, a_reply("a", answer="Yes."), suite="docs", at=AT)
    assert sample is not None
    assert (sample.question, sample.answer, sample.reference, sample.at) == (
        "What about refunds?",
        "Yes.",
        "A good answer.",
        AT,
    )
    assert sample.contexts == (Context("Text of a.", "a", 0.9),)
    assert sample.metadata == {"canary": "refunds", "suite": "docs", "run": "canary"}


def test_an_oracle_run_has_the_contexts_it_was_given() -> None:
    """And an id of its own, so that both answers to one canary can be kept."""
    gold = gold_texts(CANARY)
    oracle = sample_of(CANARY, Retrieved(answer="No."), suite="docs", at=AT, gold=gold)
    plain = sample_of(CANARY, a_reply("x", answer="Yes."), suite="docs", at=AT)
    assert oracle is not None
    assert plain is not None
    assert (oracle.contexts, oracle.metadata["run"]) == ((Context("Text of a."),), "oracle")
    assert oracle.id != plain.id


@pytest.mark.parametrize("retrieved", [a_reply("a"), a_failure(), Retrieved((Hit("a", None),), answer="Yes.")])
def test_half_a_sample_is_none(retrieved: Retrieved) -> None:
    """No answer, or a context without its text: a judge would misread it."""
    assert sample_of(CANARY, retrieved, suite="docs", at=AT) is None


def test_gold_is_whole_or_none() -> None:
    """An id alone is no context that a generator could be given."""
    assert gold_texts(a_canary(Expected("a", "One."), a_text("Two."))) == ("One.", "Two.")
    assert gold_texts(a_canary(Expected("a", "One."), "b")) is None
    assert gold_texts(a_canary(category=Category.NEGATIVE)) is None


def judged(contexts: str, correctness: float | None, **parts: Any) -> JudgedAnswer:
    """An answer to one canary; None: not judged."""
    scores = None if correctness is None else {"correctness": correctness}
    return JudgedAnswer("c", contexts, "Yes.", scores, **parts)


@pytest.mark.parametrize(
    ("gold", "retrieved", "fault"),
    [
        (0.0, 0.0, "generator"),
        (0.49, 1.0, "generator"),
        (1.0, 0.0, "retriever"),
        (None, 0.0, "unknown"),
        (1.0, 1.0, None),
        (0.0, None, "generator"),
        (None, None, None),
    ],
)
def test_the_stage_at_fault(gold: float | None, retrieved: float | None, fault: str | None) -> None:
    """Wrong with the right contexts: the generator. Right with them alone: the retriever. Not asked: unknown."""
    answers = judged(GOLD, gold), judged(RETRIEVED, retrieved)
    assert faults(answers) == ({} if fault is None else {"c": fault})
    line = answers_line(answers)
    assert line is not None
    assert line["correctness"] == {"gold": gold, "retrieved": retrieved}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (JudgedAnswer("c", GOLD, "I do not know.", {"correctness": None}, abstained=True), True),
        (JudgedAnswer("c", GOLD, "Bees.", {"faithfulness": 0.0}), True),
        (JudgedAnswer("c", GOLD, "Bees.", {"faithfulness": 0.0, "correctness": 1.0}), False),
        (JudgedAnswer("c", GOLD, "Bees.", {"faithfulness": None}), None),
        (JudgedAnswer("c", GOLD, "Bees.", None, "timeout"), None),
    ],
)
def test_what_is_a_wrong_answer(answer: JudgedAnswer, expected: object) -> None:
    """An abstention is one. Without a reference faithfulness decides, and nothing does where no judge has read it."""
    assert answer.wrong is expected
    assert answer.unread is (answer.why == "timeout")
