"""Guessing: known shapes are named, unknown ones get a proposal that says so."""

from __future__ import annotations

import json

import pytest
from support.logged import ANSWER, FULL, QUESTION, records

from ragwatch.formats import FORMATS, build
from ragwatch.formats.guess import FormatGuess, guess, propose


@pytest.mark.parametrize("name", FORMATS)
def test_names_known_shapes(name: str) -> None:
    """A file of one shape is read whole by that shape, and its mapping is shown."""
    assert guess(records(name)) == FormatGuess(name, 1.0, (), FORMATS[name].MAPPING, certain=True)


def test_counts_what_it_cannot_read() -> None:
    """The share is that of the records read, with the first errors of the others."""
    guessed = guess([*records("ragas"), {"x": 1}, {"user_input": "q", "response": None, "retrieved_contexts": []}])
    assert (guessed.format, guessed.share) == ("ragas", 0.5)
    assert guessed.errors == ("user_input: is missing", "response: must be text, not null")


def test_proposes_a_mapping() -> None:
    """An unknown shape gets expressions of likely fields, and is not called certain."""
    rows = [
        {
            "event": {"request-id": f"r{n}", "payload": json.dumps({"user_query": QUESTION})},
            "uuid": f"u{n}",
            "rag": {"chunks": [{"chunk_id": c.id, "body": c.text, "score": c.score} for c in FULL]},
            "turns": [{"reply": ANSWER}],
        }
        for n in range(3)
    ]
    guessed = guess(rows)
    assert (guessed.format, guessed.share, guessed.certain) == ("custom", 1.0, False)
    assert guessed.mapping == {
        "id": "uuid",
        "question": "from_json(event.payload).user_query",
        "contexts": "rag.chunks[].{id: chunk_id, text: body, score: score}",
        "answer": "turns[0].reply",
    }
    sample = build("custom", guessed.mapping).read(rows[0], "x")
    assert (sample.id, sample.question, sample.answer, sample.contexts) == ("u0", QUESTION, ANSWER, FULL)


def test_proposes_relevance_judgements() -> None:
    """A list of ids under one of its usual names; any other value under that name is none."""
    row = {"req": {"q": QUESTION}, "chunks": [FULL[0].text], "reply": ANSWER, "eval": {"gold_ids": ["c1", "c2"]}}
    mapping = propose([row])
    assert mapping["relevant_ids"] == "eval.gold_ids"
    assert [one.id for one in build("custom", mapping).read(row, "x").relevant or ()] == ["c1", "c2"]
    assert "relevant_ids" not in propose([row | {"eval": {"gold_ids": "c1"}}])


def test_quotes_odd_keys() -> None:
    """Keys that are no identifiers are quoted, so that the expression compiles."""
    row = {'a "b" \\': {"answer": "yes", "my-list": ["one passage"]}}
    mapping = propose([row])
    assert build("custom", mapping).read(row, "x").contexts[0].text == "one passage"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], FormatGuess(None, None)),
        ([{"level": "info"}], FormatGuess(None, 0.0, ("no field looks like answer or contexts",))),
        (
            [{"answer": "a", "tags": [], "n": [3], "turns": [{"role": "user", "content": "q"}], "o": [{"x": 1}]}],
            FormatGuess(None, 0.0, ("no field looks like contexts",), {"answer": "answer"}),
        ),
    ],
)
def test_says_when_it_does_not_know(rows: list[dict[str, object]], expected: FormatGuess) -> None:
    """No hint, no format: of no records not even a share."""
    assert guess(rows) == expected


def test_close_shape_is_named_with_its_errors() -> None:
    """A shape that fits by its keys and reads nothing says why."""
    guessed = guess([{"user_input": "q", "response": "a"}])
    assert (guessed.format, guessed.share, guessed.errors) == ("ragas", 0.0, ("retrieved_contexts: is missing",))


def test_a_conversation_is_proposed_as_the_history() -> None:
    """A list of messages beside question and answer, wherever it stands, holds the turns before."""
    messages = [{"role": "user", "content": "How much is a ticket?"}, {"role": "assistant", "content": "Ten euros."}]
    record = {"q": "And for students?", "hits": [{"snippet": "x", "text": "Five euros."}], "reply": {"answer": "Five."}}
    proposed = guess([record | {"state": {"messages": messages}}] * 3)
    assert (proposed.share, proposed.mapping["history"]) == (1.0, "state.messages")
    assert "history" not in guess([record] * 3).mapping
