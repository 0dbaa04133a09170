"""Shapes of logs that no format knows: read rightly at the first try, or a question."""

import json
from collections.abc import Callable
from datetime import datetime

import pytest
from support.shapes import ASKED, DOCUMENTS, START, Context, Shape, objects, read, records

from ragwatch.errors import ConfigError
from ragwatch.formats import build
from ragwatch.formats.fields import embedded
from ragwatch.formats.guessing.guess import guess, holds_answer
from ragwatch.formats.record import Record

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
    "German names": lambda at, q, a, c: {
        "zeitstempel": at.isoformat(),
        "frage": q,
        "fundstellen": objects(c, text="inhalt"),
        "antwort": a,
    },
    "Spanish names": lambda at, q, a, c: {
        "fecha": at.isoformat(),
        "pregunta": q,
        "fragmentos": objects(c, text="contenido"),
        "respuesta": a,
    },
    "French names": lambda at, q, a, c: {
        "horodatage": at.isoformat(),
        "question": q,
        "extraits": objects(c, text="texte"),
        "réponse": a,
    },
    "a draft before what was sent": lambda at, q, a, c: {
        "ts": at.isoformat(),
        "question": q,
        "draft": {"answer": f"Let me think. {c[1][1]}"},
        "final": {"text": a},
        "chunks": objects(c),
    },
    "results of two searches, and both fused": lambda at, q, a, c: {
        "ts": at.isoformat(),
        "query": q,
        "dense_results": objects([*c[::-1], ("x", "Our office is closed on Sundays.")]),
        "fused_results": objects(c),
        "reply": a,
    },
    "a chat whose tool returned the passages": lambda at, q, a, c: {
        "ts": at.isoformat(),
        "messages": [
            {"role": "user", "content": q},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "function": {"name": "search"}}]},
            {"role": "tool", "tool_call_id": "t", "content": json.dumps({"results": objects(c)})},
        ],
        "completion": {"choices": [{"message": {"role": "assistant", "content": a}}]},
    },
    "steps of an agent": lambda at, q, a, c: {
        "time": at.isoformat(),
        "prompt": q,
        "steps": [{"text": "", "toolResults": [{"result": objects(c)}]}, {"text": a, "toolResults": []}],
        "text": a,
    },
    "documents of a retriever of LangGraph beside what the model was given": lambda at, q, a, c: {
        "created_at": at.isoformat(),
        "messages": [
            {"type": "human", "content": q},
            {"type": "tool", "content": str(c), "artifact": objects(c, text="page_content")},
            {"type": "ai", "content": a},
        ],
    },
    "a response of Gemini beside its prompt": lambda at, q, a, c: {
        "time": at.isoformat(),
        "prompt": q,
        "documents": objects(c),
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": a}]}}]},
    },
    "an answer in JSON": lambda at, q, a, c: {
        "at": at.isoformat(),
        "question": q,
        "contexts": objects(c),
        "answer": json.dumps({"answer": a, "confidence": 0.8}),
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


def chat(question: str, answer: object) -> list[dict[str, object]]:
    """A conversation whose last message has parts."""
    return [{"role": "user", "content": question}, {"role": "assistant", "parts": answer}]


TEXTS: dict[str, Callable[[str, list[str], str], Record]] = {
    "numbered names": lambda q, c, a: {"query": q, **{f"context_{n}": text for n, text in enumerate(c)}, "reply": a},
    "numbered names in an object": lambda q, c, a: {
        "query": q, "docs": {f"doc{n}": text for n, text in enumerate(c)}, "reply": a},
    "objects by rank": lambda q, c, a: {
        "query": q, "docs": {str(n): {"text": text} for n, text in enumerate(c)}, "reply": a},
    "citations of Azure in a message of a tool": lambda q, c, a: {"messages": [
        {"role": "user", "content": q},
        {"role": "tool", "content": json.dumps({"citations": [{"content": text} for text in c], "intent": "[]"})},
        {"role": "assistant", "content": a}]},
    "parts of Vercel's SDK": lambda q, c, a: {"messages": chat(q, [
        {"type": "tool-search", "output": [{"name": text, "similarity": 0.5} for text in c]},
        {"type": "text", "text": a}])},
    "parts of its version 4": lambda q, c, a: {"messages": chat(q, [
        {"type": "tool-invocation", "toolInvocation": {"result": [{"content": text} for text in c]}},
        {"type": "text", "text": a}])},
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_passages_without_ids_are_read_at_the_first_try(name: str) -> None:
    """Question, passages in their order, and answer are those that were logged."""
    logged, meant = records(lambda _, q, a, c: TEXTS[name](q, [text for _, text in c], a))
    assert not (guessed := guess(logged)).is_doubtful, (guessed.problems, guessed.decisions)
    assert [(one.question, [x.text for x in one.contexts], one.answer) for one in read(guessed, logged)] == [
        (one.question, [x.text for x in one.contexts], one.answer) for one in meant
    ]


def test_one_text_beside_passages_that_are_not_in_it_is_a_question() -> None:
    """Both are named as contexts, and a known format would take the text: who asked, say."""
    logged, _ = records(
        lambda at, q, a, c: {
            "question": q,
            "context": f"The customer number {at.second} writes from the app. He pays by card.",
            "chunks": objects(c),
            "answer": a,
        }
    )
    assert [one.field.path for one in guess(logged).decisions["contexts"]] == ["chunks", "context"]


def test_a_chunk_and_its_parent_are_a_question() -> None:
    """Both have a text of the same name, and the model may have read either."""
    logged, _ = records(
        lambda _, q, a, c: {
            "query": q,
            "hits": [{"chunk": {"text": f"Short: {one[:20]}."}, "parent": {"text": one}} for _, one in c],
            "reply": a,
        }
    )
    texts = [one.expression for one in guess(logged).decisions["contexts"]]
    assert texts == ["hits[].{text: chunk.text}", "hits[].{text: parent.text}"]


def test_records_without_a_known_question_are_a_question() -> None:
    """Half of the records have it under a name that says little: they are not read without it silently."""

    def shape(at: datetime, q: str, a: str, c: list[Context]) -> Record:
        if at.second % 2:
            return {"chat": {"userText": q, "botText": a, "snippets": objects(c)}}
        return {"question": q, "answer": a, "contexts": objects(c)}

    assert [one.expression for one in guess(records(shape)[0]).missing["question"]] == ["chat.userText"]


@pytest.mark.parametrize(
    "text", [r"['\d+']", r"['\x']", r"['\ud83d']", "[" + "''," * 5000 + "]", "[array(['a'])]", "['a] b"]
)
def test_what_is_no_printed_list_of_texts_stays_a_text(text: str) -> None:
    """Without a warning of the interpreter, whatever it holds."""
    assert embedded(text) == text


@pytest.mark.parametrize("printed", [repr, lambda texts: "[" + "\n ".join(map(repr, texts)) + "]"])
def test_a_list_of_texts_that_was_printed_is_that_list(printed: Callable[[list[str]], str]) -> None:
    """As Python and numpy print it, in columns of CSV; it is no single passage."""
    logged, meant = records(
        lambda _, q, a, c: {
            "user_input": q,
            "retrieved_contexts": printed([f"'{text}'" for _, text in c]),
            "response": a,
        }
    )
    assert [[one.text for one in sample.contexts] for sample in read(guess(logged), logged)] == [
        [f"'{one.text}'" for one in sample.contexts] for sample in meant
    ]


PRINTED = "[Document(metadata={}, page_content='%s')]"
SUSPECTED: dict[str, tuple[Callable[[str, str, str], list[Record]], str]] = {
    "pieces of one answer": (
        lambda q, a, c: [{"question": q, "contexts": [c], "answer": a[:end]} for end in (9, 18, None)],
        "8 of 12 answers follow another one to the same question from the same contexts",
    ),
    "attempts, of which users saw the last": (
        lambda q, a, c: [{"question": q, "contexts": [c], "answer": one} for one in ("I sell cheese.", a)],
        "4 of 8 answers follow another one",
    ),
    "fenced JSON": (
        lambda q, a, c: [{"question": q, "contexts": [c], "answer": f"```json\n{json.dumps({'answer': a})}\n```"}],
        "the answer is JSON, in which answer is the answer",
    ),
    "a list of objects that Python printed": (
        lambda q, a, c: [{"question": q, "contexts": PRINTED % c, "answer": a}],
        "contexts are a list as Python prints it",
    ),
}


@pytest.mark.parametrize("name", SUSPECTED)
def test_what_would_give_wrong_figures_is_suspected(name: str) -> None:
    """The reason says what the values are."""
    shape, reason = SUSPECTED[name]
    logged = [record for name, asked in ASKED.items() for record in shape(*asked, DOCUMENTS[name])]
    assert [problem for problem in guess(logged).problems if problem.startswith(reason)]


@pytest.mark.parametrize("name", ["suggested_questions", "reasoning", "rejected"])
def test_lists_of_other_things_are_no_contexts(name: str) -> None:
    """They are not even asked about."""
    logged, _ = records(lambda _, q, a, c: {"question": q, "docs": {name: [text for _, text in c]}, "answer": a})
    assert guess(logged).share == 0.0


def test_lists_without_telling_names_are_all_shown() -> None:
    """The first one may be a part of what was retrieved."""
    logged, _ = records(
        lambda _, q, a, c: {"question": q, "docs": {"faq": objects(c[:1]), "manual": objects(c[1:])}, "answer": a}
    )
    assert [one.field.path for one in guess(logged).decisions["contexts"]] == ["docs.faq", "docs.manual"]


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
