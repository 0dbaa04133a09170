"""Runs of a trace: the question and the answer in the forms in which they are logged, and retrievers in order."""

from __future__ import annotations

from typing import Any

import pytest

from ragwatch.core.sample import Context
from ragwatch.formats import FORMATS, build
from ragwatch.formats.traced_runs import TracedRun, answer_of, contexts_of, documents_of, question_of, root_of

HUMAN = {"role": "user", "content": "q"}
CONSTRUCTED = {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "q"}}
REPLY = {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "a"}}


@pytest.mark.parametrize(
    ("value", "question"),
    [
        ("q", "q"),
        ('{"input": "q"}', "q"),
        ({"query": {"text": "q"}}, "q"),
        ([{"role": "system", "content": "x"}, HUMAN], "q"),
        ({"messages": [HUMAN]}, "q"),
        ({"messages": [[HUMAN]]}, "q"),
        ({"messages": [[CONSTRUCTED]]}, "q"),
        ({"messages": [CONSTRUCTED]}, "q"),
        ({"messages": [["user", "q"]]}, "q"),
        ({"input": CONSTRUCTED}, "q"),
        ({"messages": [{"type": "human", "data": {"content": "q"}}]}, "q"),
        ({"messages": []}, None),
        ({"x": "q"}, None),
        ({"input": {"input": {"input": {"input": {"input": "q"}}}}}, None),
        (3, None),
    ],
)
def test_questions(value: object, question: str | None) -> None:
    """Text, messages, or an object with one of the usual keys, down to a few levels."""
    assert question_of(value) == question


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("a", "a"),
        ('{"answer": "a"}', "a"),
        ({"generations": [[{"text": "a"}]]}, None),
        ({"generations": [{"text": "a"}]}, "a"),
        ({"messages": [HUMAN, {"role": "assistant", "content": "a"}]}, "a"),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}]}, "a"),
        ({"messages": [CONSTRUCTED, REPLY, {"type": "tool", "content": "d"}]}, "a"),
        ({"messages": [HUMAN, {"type": "ai", "data": {"content": "a"}}]}, "a"),
        ({"output": REPLY}, "a"),
        ({"answer": "a", "data": {"content": "d"}}, "a"),
        (["x", "a"], "xa"),
        ({"output": {"output": {"output": {"output": {"output": "a"}}}}}, None),
        (3, None),
        ({}, None),
    ],
)
def test_answers(value: object, answer: str | None) -> None:
    """Text, the last message of the assistant, or an object with one of the usual keys."""
    assert answer_of(value) == answer


def run(identity: str, parent: str | None, output: object, start: int, kind: str = "retriever") -> TracedRun:
    """A run."""
    return TracedRun(identity, parent, kind, "search", None, output, str(start))


def test_contexts_of_several_retrievers() -> None:
    """Outermost retrievers in the order of their start, each passage once; what cannot be read is no retrieval."""
    runs = [
        run("root", None, "a", 0, "chain"),
        run("second", "root", {"documents": ["c", "b"]}, 3),
        run("first", "root", ["a", "b"], 1),
        run("inner", "middle", ["z"], 2),
        run("middle", "first", "x", 2, "chain"),
        run("empty", "root", {"documents": 3}, 0),
        run("loop", "loop", ["d"], 9),
    ]
    assert [context.text for context in contexts_of(runs, ("retriever",)) or ()] == ["a", "b", "c", "d"]
    assert contexts_of(runs[:1], ("retriever",)) is None
    assert documents_of('[{"page_content": "c", "id": 7}]') == (Context("c", "7"),)
    root = root_of(runs)
    assert root is not None
    assert (root.id, root_of([])) == ("root", None)


@pytest.mark.parametrize(
    "starts", [("2026-05-01T10:00:01Z", "2026-05-01T10:00:01.5Z"), ("9990", "10000"), ("", "9"), ("a", "b")]
)
def test_starts_are_times(starts: tuple[str, str]) -> None:
    """Times are sorted as such, however they are written; what is none comes first, as text."""
    first, second = (
        TracedRun(name, "root", "retriever", "search", None, [text], start)
        for name, text, start in zip("zy", ("c", "d"), starts, strict=True)
    )
    assert [context.text for context in contexts_of([second, first], ("retriever",)) or ()] == ["c", "d"]


@pytest.mark.parametrize("name", ["azure", "bedrock", "file_search", "langfuse", "langserve", "langsmith", "vertex"])
def test_biases_are_stated(name: str) -> None:
    """What the records of these services do not hold is known, and printed with a proposal."""
    assert len(FORMATS[name].KNOWN_BIAS) > 40


def test_azure_passages_have_the_name_of_their_file() -> None:
    """The number of a chunk counts within its file only; text citations are read too."""
    citations: list[Any] = [{"content": "c", "filepath": "a.md", "chunk_id": "0"}, "plain"]
    message = {"content": "a", "context": {"citations": citations}}
    record = {"messages": [HUMAN], "choices": [{"message": message}]}
    assert build("auto").read(record, "x").contexts == (Context("c", "a.md#0"), Context("plain"))
