"""Spellings of documents, messages, questions and answers inside of JSON values."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.spans import ANSWER, OI, QUESTION, TEXTS, a_span, documents, flat, said

from ragwatch.formats.traces.assemble import assemble
from ragwatch.formats.traces.documents import Document, documents_in
from ragwatch.formats.traces.messages import messages_of, unwrapped
from ragwatch.formats.traces.prompt_contexts import blocks, of_variables
from ragwatch.formats.traces.record import answer_of, question_of
from ragwatch.formats.traces.span import Span
from ragwatch.formats.traces.steps import Kind, kind_of
from ragwatch.sources.otlp.options import Options

AB = (Document("a", "1", 0.5), Document("b", "2", 0.25))
LANGCHAIN = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"ids": [["1", "2"]], "documents": [["a", "b"]], "scores": [[0.5, 0.25]]}, AB),
        ({"ids": ["1", "2"], "documents": ["a", "b"]}, (Document("a", "1"), Document("b", "2"))),
        ([[{"text": "a", "id": 1}, 0.5], [{"text": "b", "id": 2}, 0.25]], AB),
        ([[{"text": "a", "id": "1", "score": "0.5"}]], AB[:1]),
        ({"matches": [{"id": "1", "score": 0.5, "metadata": {"text": "a"}}]}, AB[:1]),
        ({"points": [{"id": "1", "score": 0.5, "payload": {"text": "a"}}]}, AB[:1]),
        ({"hits": {"hits": [{"_id": "1", "_score": 0.5, "_source": {"body": "a"}}]}}, AB[:1]),
        ({"retrievalResults": [{"content": {"text": "a"}, "score": 0.5}]}, (Document("a", None, 0.5),)),
        ({"anything": {"results": [{"content": [{"text": "a"}, "b"], "id": "1"}]}}, (Document("ab", "1"),)),
        (
            [{"id": "1"}, {"id": True, "score": float("inf")}, 3, "", {"other": 1}],
            (Document(None, "1"), *[Document(None)] * 4),
        ),
        ([{"text": "a", "score": "no number"}, {"text": "b", "score": "x" * 50}], (Document("a"), Document("b"))),
        (["Document(id=d1, content: 'a', score: 0.5)"], (Document(None, "d1", 0.5),)),
        ("text", None),
        ({"answer": {"documents": 3}}, None),
        ([3, None], None),
        ([], ()),
        ({"documents": []}, ()),
    ],
)
def test_documents(value: Any, expected: Any) -> None:
    """Lists, columns, pairs and nested results of databases; what is no document has no text."""
    assert documents_in(value) == expected
    assert documents_in(
        json.dumps(value) if not isinstance(value, str) else value
    ) == expected or "Infinity" in json.dumps(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([LANGCHAIN | {"kwargs": {"content": "a", "type": "human"}}], [("user", "a")]),
        ([{"type": "ai", "data": {"content": "a", "tool_calls": [{"name": "x"}]}}], [("assistant", "a")]),
        ([["human", "a"], ["ai", "b"]], [("user", "a"), ("assistant", "b")]),
        ({"system": "s", "messages": [{"role": "user", "content": "a"}]}, [("system", "s"), ("user", "a")]),
        ({"system": "s", "prompt": "a"}, [("system", "s"), ("user", "a")]),
        ({"contents": [{"role": "model", "parts": [{"text": "a"}]}]}, [("assistant", "a")]),
        ({"_role": "assistant", "_content": [{"text": "a"}]}, [("assistant", "a")]),
        ([{"role": "tool", "parts": [{"type": "tool_call_response", "result": "x"}]}, 5, None], []),
        ([{"role": "assistant", "content": [{"type": "tool_use", "name": "x"}]}], [("assistant", "")]),
        ({"generations": [[{"text": "a", "message": {"content": "a", "type": "ai"}}]]}, [("assistant", "a")]),
        ("__REDACTED__", []),
        ([[[[[[[[[["deep"]]]]]]]]]], []),
    ],
)
def test_messages(value: Any, expected: list[tuple[str, str]]) -> None:
    """Each spelling of a message, with its role."""
    assert [(one.role, one.text) for one in messages_of(value, "user")] == expected


def test_arguments_of_functions() -> None:
    """One argument, by position or by name, is the input; several stay as they are."""
    assert unwrapped({"args": ["a"], "kwargs": {}}) == "a"
    assert unwrapped({"args": "a"}) == "a"
    assert unwrapped({"args": [], "kwargs": {"question": "a"}}) == {"question": "a"}
    assert unwrapped({"args": ["a", "b"], "kwargs": {}}) == {"args": ["a", "b"], "kwargs": {}}
    assert unwrapped({"inputs": '{"question": "a"}', "tags": []}) == {"question": "a"}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (question_of, "Why?", "Why?"),
        (question_of, '{"question": "Why?"}', "Why?"),
        (question_of, '{"question": "Why \\ud83d?"}', "Why \ufffd?"),
        (question_of, {"inputs": {"user_query": "Why?"}}, "Why?"),
        (question_of, {"input": [{"role": "user", "content": "Why?"}]}, "Why?"),
        (question_of, {"messages": [{"role": "assistant", "content": "x"}, ["user", "Why?"]]}, "Why?"),
        (question_of, [{"role": "user", "content": "Why?"}], "Why?"),
        (question_of, {"k": 3, "filters": None}, None),
        (question_of, ["x"], None),
        (question_of, 3, None),
        (answer_of, {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, "a"),
        (answer_of, {"outputs": {"answer": "a"}}, "a"),
        (answer_of, {"output": {"text": "a"}}, "a"),
        (answer_of, [{"role": "assistant", "content": "a"}], "a"),
        (answer_of, "<generator object f at 0x7f>", None),
        (answer_of, {"count": 3}, None),
        (answer_of, None, None),
    ],
)
def test_questions_and_answers(read: Callable[[Any], str | None], value: Any, expected: str | None) -> None:
    """Inputs and outputs of chains, from plain text to conversations; what Python prints of a stream is no answer."""
    assert read(value) == expected


def test_contexts_of_variables() -> None:
    """Lists of documents, texts with as many blocks as documents, or marked blocks."""
    assert of_variables({"documents": [{"content": "a"}]}) == (Document("a"),)
    assert of_variables({"context": {"x": 1}, "passages": "a"}) == (Document("a"),)
    assert of_variables({"question": "a"}) is None
    assert blocks("Source: 1\na\n\nb\n\nSource: 2\nc", 2) == ["Source: 1\na\n\nb", "Source: 2\nc"]
    assert blocks("a\nb", 2) == ["a", "b"]
    assert blocks("a\n---\nb", 2) == ["a", "b"]
    assert blocks("<doc>a</doc><doc>b</doc>", 0) == ["a", "b"]
    assert blocks("1. a\n2. b", 0) == ["a", "b"]
    assert blocks("<docs><doc>a</x></doc></docs></doc><doc>", 0) == ["a</x>"]


@pytest.mark.parametrize(
    ("attributes", "name", "kind"),
    [
        ({"traceloop.span.kind": "task"}, "SentenceTransformerRerank.task", Kind.RERANKER),
        ({"traceloop.span.kind": "task"}, "OpenAIEmbedding.task", Kind.EMBEDDING),
        ({"traceloop.span.kind": "task"}, "OurModel.task", Kind.CHAIN),
        ({"traceloop.span.kind": "task", "gen_ai.output.messages": "[]"}, "OurModel.task", Kind.LLM),
        ({"traceloop.span.kind": "task", "gen_ai.output.messages": "[]"}, "QueryEngine.task", Kind.CHAIN),
        ({"traceloop.span.kind": "workflow", "gen_ai.output.messages": "[]"}, "ours.workflow", Kind.CHAIN),
        ({"ai.operationId": "ai.embed"}, "x", Kind.EMBEDDING),
        ({"ai.operationId": "ai.rerank"}, "x", Kind.RERANKER),
        ({"ai.operationId": "ai.streamText"}, "x", Kind.CHAIN),
        ({"ai.operationId": 3}, "x", Kind.OTHER),
        ({"reranker.query": "x"}, "x", Kind.RERANKER),
        ({"gen_ai.tool.name": "x"}, "x", Kind.TOOL),
        ({"haystack.component.type": "Joiner"}, "x", Kind.CHAIN),
        ({"langfuse.observation.type": "unknown"}, "x", Kind.OTHER),
        ({}, "ai.generateText", Kind.OTHER),
    ],
)
def test_kinds(attributes: dict[str, Any], name: str, kind: Kind) -> None:
    """What a span does, from its name where nothing else says it."""
    assert kind_of(Span("t", "s", "", name, 0, 1, attributes)) is kind


@pytest.mark.parametrize("named", [True, False], ids=["ids outside", "nothing outside"])
def test_texts_of_a_retriever_inside_of_a_retriever(named: bool) -> None:
    """If the outer retriever has no texts, those of the inner ones are taken: in its order where it has ids."""
    ids = flat("retrieval.documents", [{"id": "d1"}, {"id": "d0"}], "document.") if named else {}
    result = assemble([
        a_span("chain", end=90, attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}),
        a_span("outer", "chain", 1, 10, attributes={OI: "RETRIEVER"} | ids),
        a_span("inner", "outer", 2, attributes={OI: "RETRIEVER"} | documents(*TEXTS)),
        a_span("model", "chain", 20, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", ANSWER))),
    ])  # fmt: skip
    (record,) = result.records
    assert [one["text"] for one in record["contexts"]] == list(TEXTS[::-1] if named else TEXTS)


@pytest.mark.parametrize(
    ("name", "result", "texts"),
    [
        ("search_docs", "Paris is big.", ["Paris is big."]),
        ("search_docs", "[1] Paris.\n[2] Lyon.", ["[1] Paris.\n[2] Lyon."]),
        ("lookup", json.dumps([{"content": "Paris."}]), ["Paris."]),
        ("tickets", json.dumps([{"content": "Paris.", "id": "t1"}]), ["Paris."]),
        ("tickets", json.dumps([{"content": "Paris."}]), None),
        ("calculator", "42", None),
        ("search_docs", "  ", None),
    ],
)
def test_tools_that_search(name: str, result: str, texts: list[str] | None) -> None:
    """Without a retriever, a tool counts that returns documents, or anything under the name of a search."""
    spans = [
        a_span("agent", end=90, attributes={OI: "AGENT", "input.value": QUESTION, "output.value": ANSWER}),
        a_span("tool", "agent", 1, attributes={OI: "TOOL", "tool.name": name, "output.value": result}),
        a_span("inner", "tool", 1, attributes={OI: "TOOL", "tool.name": name, "output.value": result}),
        a_span("model", "agent", 20, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", ANSWER))),
        a_span("later", "agent", 50, attributes={OI: "TOOL", "tool.name": "search", "output.value": "late"}),
    ]
    assembled = assemble(spans)
    if texts is None:
        assert (assembled.records, assembled.ungrounded) == ([], 1)
    else:
        assert [one["text"] for one in assembled.records[0]["contexts"]] == texts


def test_options() -> None:
    """Records are canonical; one attribute or several hold the route."""
    options = Options(name="traces", route=["a", "b"], metadata={"x": "c"})
    assert (options.rules.format, options.rules.mapping) == ("canonical", {})
    assert options.naming.route == ("a", "b")
    assert {"a", "b", "c"} <= options.naming.attributes
    assert Options(name="traces").naming.route == ("service.name",)
