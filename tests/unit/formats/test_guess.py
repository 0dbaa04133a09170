"""Guessing: known shapes are named, unknown ones get a proposal: a mapping, a condition, marks of a prompt."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logged import ANSWER, FULL, QUESTION, TEXTS

from ragwatch.formats import build
from ragwatch.formats.expressions import predicate
from ragwatch.formats.guessing.guess import guess, propose
from ragwatch.formats.guessing.guess_options import Prompt, guess_prompt, propose_split, propose_where
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.split import Splitter


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


def test_close_shape_is_named_with_its_errors() -> None:
    """A shape that fits by its keys and reads nothing says why."""
    guessed = guess([{"user_input": "q", "response": "a"}])
    assert (guessed.format, guessed.share) == ("ragas", 0.0)
    assert guessed.errors == ("contexts: is missing: log retrieved_contexts",)


def test_a_conversation_is_proposed_as_the_history() -> None:
    """A list of messages beside question and answer, wherever it stands, holds the turns before."""
    messages = [{"role": "user", "content": "How much is a ticket?"}, {"role": "assistant", "content": "Ten euros."}]
    record = {"q": "And for students?", "hits": [{"snippet": "x", "text": "Five euros."}], "reply": {"answer": "Five."}}
    proposed = guess([record | {"state": {"messages": messages}}] * 3)
    assert (proposed.share, proposed.mapping["history"]) == (1.0, "state.messages")
    assert "history" not in guess([record] * 3).mapping


def test_records_of_several_kinds_get_alternatives() -> None:
    """The same part under two names: both are read, and a list without passages stays one."""
    rows: list[dict[str, object]] = []
    for n in range(4):
        lasts = {"chunks": [{"text": f"It lasts {n} years."}], "answer": f"{n} y."}
        rows.append({"question": f"How long does kettle {n} last?", **lasts})
        lasts = {"hits": [{"body": f"It lasts {n} months."}], "reply": f"{n} months."}
        rows.append({"query": f"How long does jug {n} last?", **lasts})
    rows.append({"question": "Who are you?", "chunks": [], "answer": "A helper."})
    guessed = guess(rows)
    assert (guessed.share, guessed.mapping["question"]) == (1.0, "question || query")
    assert guessed.mapping["answer"] == "answer || reply"
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


def texts(number: int) -> list[str]:
    """Passages that differ between records."""
    return [f"{text} Rule {number}." for text in TEXTS]


CASES = {
    "a deep list": (
        [{"q": {"question": QUESTION}, "steps": [{"details": {"calls": [{"search": {"results": [{"content": [
            {"type": "text", "text": text} for text in texts(n)]}]}}]}}], "reply": f"{ANSWER} {n}"} for n in range(3)],
        {"contexts": "steps[].details[].calls[].search[].results[].content[].text[]", "answer": "reply"},
    ),
    "texts in the metadata of matches": (
        [{"id": f"r{n}", "question": QUESTION, "answer": f"{ANSWER} {n}", "matches": [
            {"id": f"v{place}", "score": 0.5, "metadata": {"text": text}} for place, text in enumerate(texts(n))]}
         for n in range(3)],
        {"id": "id", "contexts": "matches[].{id: id, text: metadata.text, score: score}"},
    ),
    "columns with dots": (
        [{"inputs.question": f"{QUESTION} {n}", "outputs.answer": f"{ANSWER} {n}", "outputs.context": texts(n)}
         for n in range(3)],
        {"question": '"inputs.question"', "contexts": '"outputs.context"', "answer": '"outputs.answer"'},
    ),
    "an id that other events share": (
        [{"event": "start", "request_id": f"r{n}"} for n in range(3)]
        + [{"request_id": f"r{n}", "query": f"{QUESTION} {n}", "docs": texts(n), "reply": f"{ANSWER} {n}"}
         for n in range(3)],
        {"id": "request_id", "question": "query", "contexts": "docs", "answer": "reply"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_fields_where_frameworks_write_them(name: str) -> None:
    """What is proposed for shapes of Azure agents, vector databases, tables of experiments and mixed logs."""
    rows, expected = CASES[name]
    assert expected.items() <= propose(rows).mapping.items()


def test_documents_that_python_printed_are_read_by_their_text() -> None:
    """`str` and `repr` of a document of LangChain are not the passage itself."""
    printed = [f"page_content={TEXTS[0]!r} metadata={{'page': 1}}", f"Document(id='d2', page_content={TEXTS[1]!r})"]
    sample = build("langchain").read({"query": QUESTION, "result": ANSWER, "source_documents": printed}, "x")
    assert [(one.text, one.id) for one in sample.contexts] == [(TEXTS[0], None), (TEXTS[1], "d2")]


ROW = {"event": "request", "http": {"status": 200, "path": "/ask"}, "cached": False, "answer": "a", "took": 5}
ROWS = [{**ROW, "id": number, "at": f"12:00:{number}"} for number in range(8)]
HEALTH = {"event": "health", "http": {"status": 200, "path": "/healthz"}}
BAD_GATEWAY = {"event": "request", "http": {"status": 502, "path": "/ask"}, "error": "x"}


@pytest.mark.parametrize(
    ("answers", "others", "where"),
    [
        (ROWS, [HEALTH], "event == 'request'"),
        (ROWS, [BAD_GATEWAY], "http.status == `200`"),
        (ROWS, [HEALTH, HEALTH, BAD_GATEWAY], "event == 'request' && http.status == `200`"),
        (ROWS, [{"cached": True}], "event == 'request'"),
        ([{**row, "event": n} for n, row in enumerate(ROWS)], [{**HEALTH, "cached": True}], "http.path == '/ask'"),
        ([{"kind": "it's", "q": "y", "r": 1}], [{"kind": "x"}], "q != `null`"),
        ([{"answer": "x", "n": n} for n in "ab"], [{"level": "info"}], "answer != `null`"),
        # Nothing is proposed that hides an answer: one that lacks a field stays a rejection.
        (ROWS, [{**ROW, "answer": None}], None),
        ([{"a": "x", "b": 1, "c": 2}], [{"b": 1, "c": 2}], None),
        ([{"a b": "x"}], [{"c": 1}], None),
    ],
)
def test_what_tells_answers_apart_is_proposed(answers: Any, others: Any, where: str | None) -> None:
    """Fields of telling names first, then any constant field, then a field that only answers have."""
    assert propose_where(answers, others) == where


_RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["event", "status", "answer", "x"]), st.sampled_from([None, 1, True, "a", "b'"])),
    min_size=1,
    max_size=6,
)


@given(_RECORDS, _RECORDS)
def test_every_answer_fulfils_the_condition(answers: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Whatever the records: a proposed condition is valid and selects all answers."""
    where = propose_where(answers, others)
    if where is not None:
        assert all(map(predicate("where", where), answers))


PASSAGES = [[f"Mill {number} stands by the river.", f"It was built in 18{number:02}."] for number in range(12)]
QUESTIONS = [f"When was mill {number} built?" for number in range(12)]
HEAD = "You are a helpful assistant.\nRules:\n- Be brief.\n- Use only this context:\n"


def prompt(number: int, joined: str) -> str:
    """A prompt with instructions, passages and the question."""
    return f"{HEAD}\n{joined.format(*PASSAGES[number])}\n\nQuestion: {QUESTIONS[number]}\nAnswer:"


@pytest.mark.parametrize(
    ("joined", "option"),
    [
        ("[1] {}\n[2] {}", "numbered"),
        ("<doc>{}</doc>\n<doc>{}</doc>", "xml"),
        ("## One\n{}\n## Two\n{}", "headings"),
        ("{}\n---\n{}", {"by": "markdown", "after": "- Use only this context:", "before": "Question:"}),
        ("{}\n\n{}", {"by": "paragraphs", "after": "- Use only this context:", "before": "Question:"}),
        ("{}\n{}", {"by": "lines", "after": "- Use only this context:", "before": "Question:"}),
        ("{} {}", {"by": "whole", "after": "- Use only this context:", "before": "Question:"}),
    ],
)
def test_the_kind_and_its_marks_are_proposed(joined: str, option: Any) -> None:
    """The kind that cuts the prompts; marks only where the passages depend on them."""
    splitter = propose_split([Prompt(prompt(n, joined), question) for n, question in enumerate(QUESTIONS)])
    assert (None if splitter is None else splitter.option) == option
    if splitter is not None:
        cut = splitter.passages(prompt(3, joined), QUESTIONS[3])
        assert cut is not None
        assert " ".join(passage.split("\n")[-1] for passage in cut) == " ".join(PASSAGES[3])


def test_an_unknown_question_is_taken_from_behind_its_label() -> None:
    """`before` is proposed where only the prompt holds the question."""
    splitter = propose_split([Prompt(prompt(number, "1. {}\n2. {}")) for number in range(12)])
    assert splitter == Splitter("numbered", "", "Question:")
    assert splitter.question(prompt(4, "1. {}\n2. {}")) == QUESTIONS[4]


def test_a_question_without_a_label_is_what_varies_in_the_last_line() -> None:
    """Where no label stands before it, all prompts begin their last line with the same words."""
    rows = [
        f"<doc>{first}</doc><doc>{second}</doc>\nAnswer this: {q}"
        for (first, second), q in zip(PASSAGES, QUESTIONS, strict=True)
    ]
    splitter = propose_split([Prompt(row) for row in rows])
    assert splitter == Splitter("xml", "", "Answer this:")
    assert splitter.question(rows[2]) == QUESTIONS[2]


def test_empty_retrievals_do_not_hinder() -> None:
    """Prompts of requests for which nothing was retrieved: between the marks stands nothing."""
    rows = [f"You are a bot. Use the context:\n{'[1] a [2]' * 0}" for _ in range(3)]
    rows += [f"You are a bot. Use the context:\n[1] Mill {n}.\n[2] River {n}." for n in range(4)]
    splitter = propose_split([Prompt(row, "Where is the mill?") for row in rows])
    assert splitter == Splitter("numbered", "You are a bot. Use the context:")
    assert [len(splitter.passages(row) or ()) for row in rows] == [0] * 3 + [2] * 4


def test_a_long_line_is_a_mark_by_its_last_words() -> None:
    """The instructions that LangChain puts before its documents are one long line."""
    head = f"{'If you do not know the answer, say so. ' * 8}Do not make anything up."
    rows = [
        f"{head}\n\n{first}\n\n{second}\n\nQuestion: {q}\nHelpful Answer:"
        for (first, second), q in zip(PASSAGES, QUESTIONS, strict=True)
    ]
    splitter = propose_split([Prompt(row) for row in rows])
    assert splitter is not None
    assert (splitter.kind, splitter.before, len(splitter.after) <= 100) == ("paragraphs", "Question:", True)
    assert (splitter.passages(rows[1]), splitter.question(rows[1])) == (PASSAGES[1], QUESTIONS[1])


def test_a_prompt_in_a_field_is_cut() -> None:
    """It is not the question, which it holds beside the passages."""
    rows = [{"llm": {"prompt": prompt(n, "[1] {}\n[2] {}"), "completion": f"x {n}"}} for n in range(12)]
    assert "question" not in propose(rows).mapping
    guessed = guess_prompt([*rows, {"level": "info"}])
    assert guessed is not None
    assert guessed.split is not None
    sample = LogReader(RecordRules("custom", guessed.mapping, split=guessed.split.option)).read(rows[5], "x")
    assert (sample.question, [one.text for one in sample.contexts]) == (QUESTIONS[5], PASSAGES[5])


def test_equal_prompts_and_none_have_no_marks() -> None:
    """Nothing varies in a single prompt, so that nothing tells its instructions from its passages."""
    assert propose_split([]) is None
    same = propose_split([Prompt(prompt(1, "[1] {}\n[2] {}"), QUESTIONS[1])] * 3)
    assert same == Splitter("numbered")
