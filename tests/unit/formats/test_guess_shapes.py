"""Shapes of logs that no format knows: read rightly at the first try, or a question."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragwatch.errors import ConfigError
from ragwatch.formats import build
from ragwatch.formats.guessing.guess import FormatGuess, guess, holds_answer
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import Record
from ragwatch.model.sample import Sample

DOCUMENTS = {
    "kb/warranty.md": "The warranty of all kettles lasts two years from the day of purchase.",
    "kb/returns.md": "Goods can be returned within 30 days. The customer pays the return shipping.",
    "kb/shipping.md": "Standard shipping takes three to five working days and costs 4.90 EUR.",
    "kb/payment.md": "We accept credit cards, PayPal and bank transfer.",
}
ASKED = {
    "kb/warranty.md": ("How long is the warranty?", "It lasts two years from the day of purchase."),
    "kb/returns.md": ("Can I return goods?", "Yes, you can return goods within 30 days."),
    "kb/shipping.md": ("How long does shipping take?", "Standard shipping takes three to five working days."),
    "kb/payment.md": ("Which payments do you accept?", "You can pay by card, PayPal and bank transfer."),
}
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
MAX_CONTEXTS = 3
Context = tuple[str, str]
Shape = Callable[[datetime, str, str, list[Context]], Record]


def records(shape: Shape) -> tuple[list[Record], list[Sample]]:
    """Records of a shape, and the samples in them."""
    logged, meant = [], []
    for number, (name, (question, answer)) in enumerate(ASKED.items()):
        others = [one for one in DOCUMENTS if one != name]
        contexts = [(one, DOCUMENTS[one]) for one in (name, *others[: MAX_CONTEXTS - 1 - number % 2])]
        at = START + timedelta(seconds=37 * number)
        logged.append(shape(at, question, answer, contexts))
        row = {"at": at.timestamp(), "question": question, "answer": answer}
        row["contexts"] = [{"id": one, "text": text} for one, text in contexts]
        meant.append(build("canonical").read(row, "x"))
    return logged, meant


def read(guessed: FormatGuess, logged: list[Record]) -> list[Sample]:
    """What a guess reads."""
    mapping = guessed.mapping if guessed.format == "custom" else guessed.added
    split = None if guessed.split is None else guessed.split.option
    reader = LogReader(RecordRules(str(guessed.format), mapping, split=split))
    return [reader.read(record, "x") for record in logged]


def objects(contexts: list[Context], *, name: str = "id", text: str = "text", **more: Any) -> list[dict[str, Any]]:
    """Contexts as objects with a place in the list, which starts with 1."""
    rows = ({name: one, text: said} for one, said in contexts)
    return [row | {key: value(place) for key, value in more.items()} for place, row in enumerate(rows, start=1)]


SHAPES: dict[str, Shape] = {
    "results of Chroma": lambda at, q, a, c: {
        "timestamp": at.isoformat(),
        "input": {"question": q},
        "retrieval": {"ids": [[one for one, _ in c]], "documents": [[text for _, text in c]], "distances": [[0.1] * 3]},
        "output": {"answer": a},
    },
    "texts and ids side by side": lambda at, q, a, c: {
        "ts": at.timestamp(),
        "user_query": q,
        "doc_ids": [one for one, _ in c],
        "doc_texts": [text for _, text in c],
        "response_text": a,
    },
    "objects by id": lambda at, q, a, c: {
        "when": at.isoformat(),
        "userMessage": q,
        "evidence": {one: {"text": text, "tokens": 9} for one, text in c},
        "botMessage": a,
    },
    "the top-ranked one last, with ranks": lambda at, q, a, c: {
        "start_ns": int(at.timestamp() * 1e9),
        "query": q,
        "results": objects(c, rank=lambda place: place)[::-1],
        "reply": a,
    },
    "a conversation beside passages and answer": lambda at, q, a, c: {
        "asctime": at.strftime("%Y-%m-%d %H:%M:%S,000"),
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "How can I help?"},
            {"role": "user", "content": q},
        ],
        "references": objects(c, text="excerpt"),
        "assistant": {"content": a},
    },
    "a conversation that ends with the answer": lambda at, q, a, c: {
        "unixtime": str(at.timestamp()),
        "messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}],
        "sources": objects(c, text="snippet"),
    },
    "short names": lambda at, q, a, c: {
        "t": at.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "data": {"q": q, "ctx": objects(c, text="txt"), "ans": a},
    },
    "a known format with a time and an id of other names": lambda at, q, a, c: {
        "logged": at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "question": q,
        "contexts": objects(c),
        "answer": a,
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_read_at_the_first_try(shape: str) -> None:
    """Question, passages with their ids in the order of their ranks, answer and time are those that were logged."""
    logged, meant = records(SHAPES[shape])
    guessed = guess(logged)
    assert not guessed.is_doubtful, (guessed.problems, guessed.decisions)
    assert [(one.at, one.question, one.answer) for one in read(guessed, logged)] == [
        (one.at, one.question, one.answer) for one in meant
    ]
    passages = [[(one.id, one.text) for one in sample.contexts] for sample in read(guessed, logged)]
    assert passages == [[(one.id, one.text) for one in sample.contexts] for sample in meant]


def test_a_document_with_its_score_is_a_passage() -> None:
    """Pairs, as a search with scores returns them, under a name that says so or not: then a question."""

    def shape(at: datetime, q: str, a: str, c: list[Context]) -> Record:
        pairs = [[{"page_content": text, "metadata": {}}, 0.5] for _, text in c]
        return {"at": at.timestamp(), "query": q, "docs_and_scores": pairs, "answer": a}

    logged, meant = records(shape)
    guessed = guess(logged)
    assert [*guessed.decisions] == ["contexts"]
    assert [[one.text for one in sample.contexts] for sample in read(guessed, logged)] == [
        [one.text for one in sample.contexts] for sample in meant
    ]


@pytest.mark.parametrize(
    ("name", "sign", "asked"),
    [("score", -1, False), ("score", 1, True), ("distance", 1, False), ("distance", -1, True)],
)
def test_scores_that_improve_are_a_question(name: str, sign: int, asked: bool) -> None:  # noqa: FBT001 - a parameter
    """The first passage counts as the top-ranked one, though the last one has the best score."""
    value = {name: lambda place: sign * place}
    logged, _ = records(lambda _, q, a, c: {"query": q, "hits": objects(c, **value), "reply": a})
    listed = [one.expression for one in guess(logged).decisions.get("contexts", ())]
    projection = f"[].{{id: id, text: text, score: {name}}}"
    assert listed == ([f"hits{projection}", f"reverse(hits){projection}"] if asked else [])


@pytest.mark.parametrize(("mark", "kind"), [("\n---\n", "rules"), ("\n\n---\n\n", "rules"), ("\n\n", "paragraphs")])
def test_contexts_joined_to_one_text_are_cut(mark: str, kind: str) -> None:
    """At rules, else at blank lines; a text with one passage is that passage."""
    logged, meant = records(
        lambda _, q, a, c: {"question": q, "context": mark.join(text for _, text in c), "answer": a}
    )
    guessed = guess(logged)
    assert guessed.split is not None
    assert guessed.split.kind == kind
    alone = {**logged[0], "context": DOCUMENTS["kb/payment.md"]}
    texts = [[one.text for one in sample.contexts] for sample in read(guessed, [*logged, alone])]
    assert texts == [*([one.text for one in sample.contexts] for sample in meant), [DOCUMENTS["kb/payment.md"]]]


def test_a_day_is_no_time_of_an_answer() -> None:
    """All answers of a day would be given at midnight."""
    logged, _ = records(lambda at, q, a, c: {"date": f"{at:%Y-%m-%d}", "query": q, "docs": objects(c), "reply": a})
    assert "at" not in guess(logged).mapping


def test_the_number_of_a_turn_is_no_id() -> None:
    """Each conversation has a turn of that number, so that all answers but one would be rejected."""
    logged, _ = records(lambda at, q, a, c: {"turn_id": at.second, "query": q, "docs": objects(c), "reply": a})
    assert "id" not in guess(logged).mapping


def test_one_of_several_answers_is_a_question() -> None:
    """It stands in a list, and nothing says which one was shown; passages in a list like it do not hide it."""
    logged, _ = records(
        lambda _, q, a, c: {
            "request": {"text": q},
            "response": {"answers": [{"text": a}, {"text": "I do not know."}], "passages": objects(c)},
        }
    )
    guessed = guess(logged)
    assert guessed.share == 0.0
    assert [one.expression for one in guessed.missing["answer"]] == ["response.answers[].text | [-1]"]


def test_expressions_with_a_format_replace_what_it_reads() -> None:
    """Fields for which they yield null are the format's; `auto` takes none, because a whole mapping may be meant."""
    mapping = {"at": "date", "metadata.tenant": "tenant", "answer": "shown"}
    reader = build("langchain", mapping)
    record = {"input": "q", "context": ["A text."], "answer": "a", "date": "2026/11/20 09:00:00", "tenant": "acme"}
    one, other = (reader.read(row, "x") for row in (record, record | {"shown": "b"}))
    assert (one.at, one.answer, other.answer, one.metadata["tenant"]) == (START.timestamp(), "a", "b", "acme")
    assert [context.text for context in one.contexts] == ["A text."]
    with pytest.raises(ConfigError, match="mapping: format auto takes none"):
        build("auto", mapping)
    with pytest.raises(ConfigError, match=r"mapping\.at: unexpected"):
        build("langchain", {"at": "]"})


def test_short_names_of_an_answer_are_recognised() -> None:
    """The word is compared as a whole: `ans` is no plural."""
    assert holds_answer({"q": "Why?", "ans": "So."})
    assert json.dumps(guess([{"q": "Why?", "ctx": ["A text of some words."], "ans": "So."}]).mapping)
