"""Samples and draws: what they hold goes out as it came in."""

from __future__ import annotations

import pytest
from support.kit import a_draw, a_sample

from ragwatch.model.sample import Context, RelevantContext, Role, Sample, Turn


def test_canonical_record() -> None:
    """A sample in the canonical shape holds every key of the contract, and contexts in order."""
    contexts = (Context("one", "a", 0.5), Context("two", step="web"))
    sample = Sample("7", None, contexts, "yes", 3.0, "search", {"k": [1]}, "ref")
    sample = sample._replace(history=(Turn(Role.USER, "hi"), Turn(Role.OTHER, "hm")))
    assert sample.to_record() == {
        "id": "7",
        "at": 3.0,
        "question": None,
        "contexts": [
            {"id": "a", "text": "one", "score": 0.5},
            {"id": None, "text": "two", "score": None, "step": "web"},
        ],
        "answer": "yes",
        "route": "search",
        "metadata": {"k": [1]},
        "reference": "ref",
        "history": [{"role": "user", "text": "hi"}, {"role": "other", "text": "hm"}],
    }


def test_relevance_judgements_are_part_of_the_record() -> None:
    """Relevant contexts are listed by id or else by text; a sample without judgements has neither list."""
    record = a_sample()._replace(relevant=(RelevantContext("a", grade=2), RelevantContext(text="one"))).to_record()
    assert record["relevant_ids"] == [{"id": "a", "grade": 2}]
    assert record["relevant_texts"] == [{"text": "one", "grade": 1}]
    assert not {"relevant_ids", "relevant_texts"} & a_sample().to_record().keys()


def test_size_includes_every_text_of_the_conversation() -> None:
    """Limits on samples count the turns; only the user's own are what the user said."""
    sample = Sample(
        "7", "why", (Context("one"),), "yes", history=(Turn(Role.USER, "hi"), Turn(Role.ASSISTANT, "hello"))
    )
    assert (sample.chars, sample.user_turns) == (3 + 3 + 3 + 2 + 5, ("hi",))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [({"trace_id": "4bf9"}, "4bf9"), ({"trace_id": ""}, None), ({"trace_id": 7}, None), ({}, None)],
)
def test_trace_id_is_a_text_or_nothing(metadata: dict[str, object], expected: str | None) -> None:
    """Only a text that is not empty names a trace."""
    assert a_sample(metadata=metadata).trace_id == expected


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.000001, float("nan")])
def test_draw_refuses_impossible_probability(probability: float) -> None:
    """A weight is 1 / p: p must be in (0, 1]."""
    with pytest.raises(ValueError, match=r"probability must be in \(0, 1\]"):
        a_draw(probability=probability)
