"""Guessing: known shapes are named, unknown ones get a proposal that says so."""

from __future__ import annotations

import json

import pytest
from support.logged import ANSWER, FULL, QUESTION, records

from ragwatch.formats import build
from ragwatch.formats.guess import FormatGuess, guess, propose


def test_counts_what_it_cannot_read() -> None:
    """The share is that of the records read, with the first errors of the others."""
    guessed = guess([*records("ragas"), {"x": 1}, {"user_input": "q", "response": None, "retrieved_contexts": []}])
    assert (guessed.format, guessed.share) == ("ragas", 0.5)
    assert guessed.errors == (
        "contexts: is missing: log retrieved_contexts",
        "answer: is missing: nothing can be read at response",
    )


def test_proposes_a_mapping() -> None:
    """An unknown shape gets expressions of likely fields; an answer inside a list is none."""
    rows = [
        {
            "event": {"request-id": f"r{n}", "payload": json.dumps({"user_query": QUESTION})},
            "uuid": f"u{n}",
            "rag": {"chunks": [{"chunk_id": c.id, "body": c.text, "score": c.score} for c in FULL]},
            "turns": [{"reply": "Not this one."}],
            "llm": {"reply": ANSWER},
        }
        for n in range(3)
    ]
    guessed = guess(rows)
    assert (guessed.format, guessed.share, guessed.problems) == ("custom", 1.0, ())
    assert guessed.mapping == {
        "id": "uuid",
        "question": "from_json(event.payload).user_query",
        "contexts": "rag.chunks[].{id: chunk_id, text: body, score: score}",
        "answer": "llm.reply",
    }
    sample = build("custom", guessed.mapping).read(rows[0], "x")
    assert (sample.id, sample.question, sample.answer, sample.contexts) == ("u0", QUESTION, ANSWER, FULL)


def test_proposes_relevance_judgements() -> None:
    """A list of ids under one of its usual names; any other value under that name is none."""
    row = {"req": {"q": QUESTION}, "chunks": [FULL[0].text], "reply": ANSWER, "eval": {"gold_ids": ["c1", "c2"]}}
    mapping = propose([row]).mapping
    assert mapping["relevant_ids"] == "eval.gold_ids"
    assert [one.id for one in build("custom", mapping).read(row, "x").relevant or ()] == ["c1", "c2"]
    assert "relevant_ids" not in propose([row | {"eval": {"gold_ids": "c1"}}]).mapping


def test_proposes_dates_of_documents() -> None:
    """From the object or its metadata; a version that is no date is none."""
    chunk = {"body": FULL[0].text, "meta": {"version": "3", "modified_at": "2026-05-01"}}
    row = {"req": {"q": QUESTION}, "rag": {"chunks": [chunk, chunk | {"meta": {"version": "4"}}]}, "reply": ANSWER}
    mapping = propose([row]).mapping
    assert mapping["contexts"] == "distinct(rag.chunks[].{text: body, updated_at: meta.modified_at})"
    assert build("custom", mapping).read(row, "x").contexts[0].updated_at == 1777593600.0
    row["rag"] = {"chunks": [chunk | {"meta": {"version": "4"}}]}
    assert "updated_at" not in propose([row]).mapping["contexts"]


def test_quotes_odd_keys() -> None:
    """Keys that are no identifiers are quoted, so that the expression compiles."""
    row = {'a "b" \\': {"answer": "yes", "my-list": ["This is one passage."]}}
    mapping = propose([row]).mapping
    assert build("custom", mapping).read(row, "x").contexts[0].text == "This is one passage."


@pytest.mark.parametrize(
    ("rows", "errors", "mapping", "missing"),
    [
        (
            [{"level": "info"}],
            ("no field looks like answer", "no field looks like contexts"),
            {},
            {"answer": (), "contexts": ()},
        ),
        (
            [{"answer": "a", "tags": [], "n": [3], "turns": [{"role": "user", "content": "q"}], "o": [{"x": 1}]}],
            ("answer is logged, but no field looks like contexts",),
            {"answer": "answer", "history": "turns"},
            {"contexts": ()},
        ),
        (
            [{"query": "How so?", "note": "It is green, because.", "hits": [{"text": "It is green."}]}],
            ("question and contexts are logged, but no field looks like answer",),
            {"question": "query", "contexts": "hits[].{text: text}"},
            {"answer": ('note  "It is green, because."',)},
        ),
    ],
)
def test_says_what_is_missing_and_what_it_may_be(
    rows: list[dict[str, object]],
    errors: tuple[str, ...],
    mapping: dict[str, str],
    missing: dict[str, tuple[str, ...]],
) -> None:
    """What was recognised is a draft; for the rest the likely fields are shown, with a value."""
    guessed = guess(rows)
    shown = {part: tuple(one.shown for one in listed) for part, listed in guessed.missing.items()}
    assert (guessed.format, guessed.errors, guessed.mapping, shown) == (None, errors, mapping, missing)


def test_of_no_records_not_even_a_share_is_known() -> None:
    """Nothing is guessed from nothing."""
    assert guess([]) == FormatGuess(None, None)


def test_close_shape_is_named_with_its_errors() -> None:
    """A shape that fits by its keys and reads nothing says why."""
    guessed = guess([{"user_input": "q", "response": "a"}])
    assert (guessed.format, guessed.share, guessed.errors) == (
        "ragas",
        0.0,
        ("contexts: is missing: log retrieved_contexts",),
    )


def test_a_conversation_is_proposed_as_the_history() -> None:
    """A list of messages beside question and answer, wherever it stands, holds the turns before."""
    messages = [{"role": "user", "content": "How much is a ticket?"}, {"role": "assistant", "content": "Ten euros."}]
    record = {"q": "And for students?", "hits": [{"snippet": "x", "text": "Five euros."}], "reply": {"answer": "Five."}}
    proposed = guess([record | {"state": {"messages": messages}}] * 3)
    assert (proposed.share, proposed.mapping["history"]) == (1.0, "state.messages")
    assert "history" not in guess([record] * 3).mapping


def test_records_of_several_kinds_get_alternatives() -> None:
    """The same part under two names: both are read, and a list without passages stays one."""
    rows: list[dict[str, object]] = [
        {
            "question": f"How long does kettle {n} last?",
            "chunks": [{"text": f"It lasts {n} years."}],
            "answer": f"{n} y.",
        }
        for n in range(4)
    ]
    rows += [
        {"query": f"How long does jug {n} last?", "hits": [{"body": f"It lasts {n} months."}], "reply": f"{n} months."}
        for n in range(4)
    ]
    rows.append({"question": "Who are you?", "chunks": [], "answer": "A helper."})
    guessed = guess(rows)
    assert (guessed.share, guessed.mapping["question"], guessed.mapping["answer"]) == (
        1.0,
        "question || query",
        "answer || reply",
    )
    assert guessed.mapping["contexts"] == "not_null(chunks[].{text: text}, hits[].{text: body})"


def test_equally_likely_fields_are_a_decision() -> None:
    """Two answers with other texts, under names that are as good: a person says which it is."""
    rows = [
        {
            "question": f"How long does kettle {n} last?",
            "chunks": [{"text": f"It lasts {n} years."}],
            "bot_answer": f"It lasts {n} years.",
            "agent_answer": f"Please wait, customer {n}.",
        }
        for n in range(4)
    ]
    assert [one.expression for one in guess(rows).decisions["answer"]] == ["bot_answer", "agent_answer"]
    assert not guess([row | {"final_answer": f"Yes, {n}."} for n, row in enumerate(rows)]).decisions
