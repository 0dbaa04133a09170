"""Samples, draws and sizes: what they hold goes out as it came in, and what they cannot hold is refused."""

from typing import Any

import pytest
from pydantic import ValidationError
from support.kit import a_draw, a_sample

from ragwatch.model.sample import Context, RelevantContext, Role, Sample, Turn
from ragwatch.model.units import size_bytes
from ragwatch.sources.tail.options import Options as TailOptions
from ragwatch.stores.sqlite.store import Options as StoreOptions


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
    turns = (Turn(Role.USER, "hi"), Turn(Role.ASSISTANT, "hello"))
    sample = Sample("7", "why", (Context("one"),), "yes", history=turns)
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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(("1B", 1), ("2", 2), (" 4096 ", 4096), ("2kb", 2000)),
        *(("1KiB", 1024), ("1.5 MiB", 1572864), ("2GiB", 2 << 30), ("1TB", 10**12)),
    ],
)
def test_sizes(value: str, expected: int) -> None:
    """Decimal and binary units in any case; digits alone are bytes."""
    assert size_bytes(value) == expected
    assert TailOptions(name="app", path="log", max_line_bytes=value).max_line_bytes == expected
    assert StoreOptions(min_free=value).min_free == expected
    assert (size_bytes(10), size_bytes(None), size_bytes([])) == (10, None, [])  # left to the validation of the model


@pytest.mark.parametrize("value", ["", "1.5", "GiB", "-1KB", "2 PB", "2M", "1e3 KB", "2 GiB foo", True, False])
def test_invalid_sizes(value: Any) -> None:
    """Anything else is rejected, by the options of the tail source and the store as well."""
    message = "is not a size; write one such as 500MB or 2GiB"
    with pytest.raises(ValueError, match=message):
        size_bytes(value)
    for name in ("max_line_bytes", "read_bytes"):
        with pytest.raises(ValidationError, match=message):
            TailOptions(name="app", path="log", **{name: value})
    with pytest.raises(ValidationError, match=message):
        StoreOptions(min_free=value)


def test_negative_sizes() -> None:
    """A source reads at least one byte; the store may have no limit, but no negative one."""
    with pytest.raises(ValidationError, match="greater than 0"):
        TailOptions(name="app", path="log", read_bytes=0)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        StoreOptions(min_free=-1)
