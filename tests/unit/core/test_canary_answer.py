"""Answered canaries as samples."""

from __future__ import annotations

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_text
from support.kit import AT

from ragwatch.core.canary.answer import gold_texts, sample_of
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
