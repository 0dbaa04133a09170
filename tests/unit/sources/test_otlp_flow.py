"""Which contexts, question and answer a trace of several steps has: those of the call that the user was answered by."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.spans import OI, a_span, as_text, documents, flat, parts, said

from ragwatch.formats.traces.assemble import Assembled, assemble
from ragwatch.formats.traces.span import Span

Q = "How long does the kettle warranty last?"
A = "The kettle warranty lasts two years, and claims need the receipt."
D1 = "The kettle warranty lasts two years from the day of purchase."
D2 = "Warranty claims are accepted only with the original receipt."
D3 = "Kettles are descaled every month with a spoon of citric acid."
D4 = "Shipping inside the country takes between two and four days."
Q2, A2 = "How long does shipping take?", "It takes between two and four days."
SYSTEM = "You are a helpful assistant of the shop."
PART = "The kettle warranty lasts two years."
PROMPT = f"Answer from the context.\nContext:\n{D1}\n{D2}\n\nQuestion: {Q}"
NUMBERED = f"Context:\n[1] {D1}\n[2] {D2}\n\nQuestion: {Q}"
GIVEN = ("system", f"Use this:\n{D1}\n{D2}")
Outcome = tuple[str | None, list[str], str] | str
OK: Outcome = (Q, [D1, D2], A)
UNCLEAR = "no span says which text the user got"


def chain(asked: Any = None, answer: Any = None, name: str = "chain", parent: str = "", **parts_: Any) -> Span:
    """A chain with these values."""
    values = {"input.value": asked, "output.value": answer}
    values = {key: one if isinstance(one, str) else as_text(one) for key, one in values.items() if one is not None}
    at = parts_.pop("at", 0)
    return a_span(name, parent, at, parts_.pop("end", at + 99), attributes={OI: "CHAIN"} | values, **parts_)


def found(name: str, at: int, *texts: str, query: str = Q, parent: str = "chain", **parts_: Any) -> Span:
    """A retriever that returned these texts."""
    items = flat("retrieval.documents", [{"content": text} for text in texts], "document.")
    return a_span(name, parent, at, attributes={OI: "RETRIEVER", "input.value": query} | items, **parts_)


def call(name: str, at: int, *messages: tuple[str, str], says: str = A, parent: str = "chain", **parts_: Any) -> Span:
    """A call of a model."""
    texts = said("llm.input_messages", *messages) | said("llm.output_messages", ("assistant", says))
    return a_span(name, parent, at, attributes={OI: "LLM", "llm.model_name": "m"} | texts, **parts_)


def tool(name: str, at: int, returned: Any, **attributes: Any) -> Span:
    """A step that returned a value."""
    return a_span(name, "chain", at, attributes={"output.value": as_text(returned)} | attributes)


def behind(name: str, *messages: tuple[str, str], says: str) -> list[Span]:
    """A workflow without values, and a call of a model behind the one that has answered."""
    return [
        a_span("chain", end=99, attributes={"gen_ai.operation.name": "invoke_workflow"}),
        found("r", 1, D1, D2),
        call("m", 30, GIVEN, ("user", Q)),
        call(name, 60, *messages, says=says),
    ]


def turns(**attributes: Any) -> list[Span]:
    """A span around two turns."""
    return [
        a_span("all", end=299, attributes=attributes),
        chain(Q, A, "turn 1", "all", at=1),
        found("r1", 2, D1, D2, parent="turn 1"),
        call("m1", 5, ("user", PROMPT), parent="turn 1"),
        chain(Q2, A2, "turn 2", "all", at=101),
        found("r2", 102, D4, query=Q2, parent="turn 2"),
        call("m2", 105, ("user", f"Context:\n{D4}\n\nQuestion: {Q2}"), says=A2, parent="turn 2"),
    ]


def chat(*out: dict[str, Any]) -> list[Span]:
    """A retrieval and a call of a model of OTel GenAI, which sent these messages."""
    values = {"gen_ai.input.messages": as_text([parts("user", Q)]), "gen_ai.output.messages": as_text(out)}
    return [
        a_span("chain", end=99, attributes={"http.request.method": "POST"}),
        found("r", 1, D1, D2),
        a_span("chat", "chain", 2, attributes={"gen_ai.operation.name": "chat"} | values),
    ]


ROWS = [{"chunk": text, "score": 0.9} for text in (D1, D2)]
QUOTED = json.dumps([{"text": "Küche: " + D1}, {"text": D2}])
HYDE = "The warranty of the kettle is a period of three years during which the maker repairs it free of charge."
TRACES: dict[str, tuple[Callable[[], list[Span]], Outcome]] = {
    "retrieved again after a rewrite": (
        lambda: [
            chain({"question": Q}, {"generation": A}),
            found("r1", 1, D3, D4),
            call("grade", 5, ("user", f"Is it relevant? {D3}\n{D4} {Q}"), says="no, it is not about the question"),
            call("rewrite", 10, ("user", f"Improve the question: {Q}"), says="kettle warranty length in years"),
            found("r2", 20, D1, D2, query="kettle warranty length in years"),
            call("m", 30, ("user", PROMPT)),
        ],
        OK,
    ),
    "a grader drops a document": (
        lambda: [
            chain({"question": Q}, {"generation": A}),
            found("r", 1, D1, D3, D2),
            *[call(f"grade {one}", 5, ("user", one), says="yes") for one in (D1, D2)],
            call("m", 30, ("user", PROMPT)),
        ],
        OK,
    ),
    "refined over two calls": (
        lambda: [
            chain(Q, A),
            found("r", 1, D1, D2, D3),
            call("m1", 5, ("user", f"Context: {D1}\n{D2}\nQuery: {Q}"), says=PART),
            call("m2", 9, ("user", f"New Context: {D3}\nQuery: {Q}\nOriginal Answer: {PART}")),
        ],
        (Q, [D1, D2, D3], A),
    ),
    "two retrievals fused without a span": (
        lambda: [
            chain(Q, A),
            found("words", 1, D3, D2),
            found("vectors", 5, D1, D4, D2),
            call("m", 30, ("user", f"Context:\n[1] {D2}\n[2] {D1}\n\nQuestion: {Q}")),
        ],
        (Q, [D2, D1], A),
    ),
    "escapes and other marks in the prompt": (
        lambda: [
            chain(Q, A),
            found("r", 1, "Küche:\n\n" + D1, D2, D4),
            call("m", 30, ("user", f"{Q} Results: {QUOTED} end")),
        ],
        (Q, ["Küche:\n\n" + D1, D2], A),
    ),
    "a prompt that was cut says nothing": (
        lambda: [chain(Q, A), found("r", 1, D1, D2, D3), call("m", 30, ("user", f"{D1}\n{D2}\nKettles are..."))],
        (Q, [D1, D2, D3], A),
    ),
    "one passage in the prompt may be a quotation": (
        lambda: [chain(Q, A), found("r", 1, D1, D2), call("m", 30, ("user", f"{Q} {D1}"))],
        OK,
    ),
    "a conversation without values": (lambda: turns(**{OI: "CHAIN"}), "2 records"),
    "an agent without values": (lambda: turns(**{"gen_ai.operation.name": "invoke_agent"}), "2 records"),
    "turns without spans": (
        lambda: [
            a_span("chain", end=199, attributes={"app": "x"}),
            found("r1", 1, D1, D2),
            call("m1", 5, ("user", PROMPT)),
            found("r2", 102, D4, D3, query=Q2),
            call("m2", 105, ("user", f"Context:\n{D4}\n{D3}\n\nQuestion: {Q2}"), says=A2),
        ],
        (Q2, [D4, D3], A2),
    ),
    "a verdict": (lambda: behind("grade", ("user", f"Facts: {D1}\n{D2}\nAnswer: {A}"), says="yes"), UNCLEAR),
    "a verdict in JSON": (lambda: behind("grade", ("user", f"{D1}\nAnswer: {A}"), says='{"score": 1}'), OK),
    "further questions": (lambda: behind("more", ("user", Q), ("assistant", A), says="Who repairs it?"), UNCLEAR),
    "a title": (lambda: behind("title", ("user", f"Name this chat: {Q}"), says="Kettle warranty"), UNCLEAR),
    "a title beside the output of the chain": (
        lambda: [chain(Q, A), *behind("title", ("user", f"Name this: {Q}"), says="Kettle warranty")[1:]],
        OK,
    ),
    "streaming broke off": (
        lambda: [
            chain(Q, failed=True),
            found("r", 1, D1, D2),
            call("m", 5, ("user", PROMPT), says="The kettle", failed=True),
        ],
        "failed",
    ),
    "the retriever failed": (
        lambda: [
            chain(Q, A),
            a_span("r", "chain", 1, attributes={OI: "RETRIEVER", "input.value": Q}, failed=True),
            call("m", 5, ("user", Q)),
        ],
        "the retrieval failed",
    ),
    "the query was rewritten": (
        lambda: [
            chain(),
            call("rewrite", 1, ("user", Q), says="kettle warranty duration claims"),
            found("r", 2, D1, D2, query="kettle warranty duration claims"),
            call("m", 5, GIVEN, ("user", Q)),
        ],
        OK,
    ),
    "the query is a made up passage": (
        lambda: [chain(), found("r", 2, D1, D2, query=HYDE), call("m", 5, ("user", PROMPT))],
        OK,
    ),
    "keywords of the query stand in the prompt": (
        lambda: [chain(), found("r", 2, D1, D2, query="kettle warranty"), call("m", 5, ("user", PROMPT))],
        OK,
    ),
    "a prompt without labels": (
        lambda: [
            a_span("chain", end=99, attributes={"http.request.method": "POST"}),
            a_span("r", "chain", 1, attributes={OI: "RETRIEVER"} | documents(D1, D2)),
            call("m", 5, ("user", f"Answer only from these passages.\n\n{D1}\n\n{D2}\n\n{Q}")),
        ],
        OK,
    ),
    "a question among the passages": (
        lambda: [
            chain(),
            found("r", 2, f"Question: What is a kettle?\nAnswer: {D3}", D2, query="kettle"),
            call("m", 5, ("user", f"{Q}\n\nContext:\nQuestion: What is a kettle?\nAnswer: {D3}\n\n{D2}")),
        ],
        (Q, [f"Question: What is a kettle?\nAnswer: {D3}", D2], A),
    ),
    "answers in JSON": (
        lambda: [
            a_span("chain", end=99, attributes={"http.request.method": "POST"}),
            found("r", 1, D1, D2),
            call("m", 5, ("user", PROMPT), says=as_text({"answer": A, "sources": [1]})),
        ],
        OK,
    ),
    "an object of the AI SDK": (
        lambda: [
            a_span("ai.generateObject", end=99, attributes={
                "ai.operationId": "ai.generateObject", "ai.prompt": as_text({"system": SYSTEM, "prompt": NUMBERED}),
                "ai.response.object": as_text({"answer": A})}),
            a_span("do", "ai.generateObject", 1, attributes={
                "ai.operationId": "ai.generateObject.doGenerate", "ai.response.object": as_text({"answer": A}),
                "ai.prompt.messages": as_text([{"role": "user", "content": NUMBERED}])}),
        ],
        OK,
    ),
    "a search that is a task": (
        lambda: [
            chain(Q, A),
            tool("search_kb", 1, ROWS, **{"traceloop.span.kind": "task"}),
            call("m", 5, ("user", PROMPT)),
        ],
        OK,
    ),
    "a search that is a plain span": (
        lambda: [
            chain(Q, A),
            tool("vector-search", 1, ROWS, **{"langfuse.observation.type": "span"}),
            call("m", 5, ("user", PROMPT)),
        ],
        OK,
    ),
    "two outputs, of which nobody says which was used": (
        lambda: chat(parts("assistant", A), parts("assistant", "No.")),
        UNCLEAR,
    ),
    "two choices as keys": (
        lambda: [
            chain(),
            found("r", 1, D1, D2),
            a_span("m", "chain", 5, attributes={OI: "LLM"} | said("llm.input_messages", ("user", PROMPT)) | flat(
                "llm.output_messages",
                [{"role": "assistant", "content": one, "finish_reason": "stop"} for one in (A, "No.")], "message.")),
        ],
        OK,
    ),
    "two outputs below a chain that says the answer": (
        lambda: [
            chain(Q, A),
            found("r", 1, D1, D2),
            a_span("m", "chain", 5, attributes={OI: "LLM"} | said("llm.input_messages", ("user", PROMPT))
                   | said("llm.output_messages", ("assistant", A), ("assistant", "No."))),
        ],
        OK,
    ),
    "a conversation that says its input only": (
        lambda: turns(**{OI: "CHAIN", "input.value": "hello"}), UNCLEAR,
    ),
    "lists in which nothing is escaped": (
        lambda: [
            chain(Q, A),
            a_span("store", "chain", 1, attributes={"spring.ai.kind": "vector_store", "db.operation.name": "query",
                   "db.vector.query.response.documents": f'["The "kettle".\n{D1}", "{D2}"]'}),
            call("m", 5, ("user", f'{Q} The "kettle".\n{D1} {D2}')),
        ],
        (Q, [f'The "kettle".\n{D1}', D2], A),
    ),
    "a list in which nobody knows where a text ends": (
        lambda: [
            chain(Q, A),
            a_span("store", "chain", 1, attributes={"spring.ai.kind": "vector_store", "db.operation.name": "query",
                   "db.vector.query.response.documents": f'["It says "a", "b".\n{D1}", "{D2}"]'}),
            call("m", 5, ("user", Q)),
        ],
        "is cut off",
    ),
    "two choices": (lambda: chat(*[parts("assistant", one) | {"finish_reason": "stop"} for one in (A, "No.")]), OK),
}  # fmt: skip


def outcome(result: Assembled) -> Outcome:
    """What has become of a trace."""
    if len(result.records) == 1:
        record: dict[str, Any] = result.records[0]
        return record["question"], [one["text"] for one in record["contexts"]], record["answer"]
    if result.records:
        return f"{len(result.records)} records"
    return result.refused[0].detail if result.refused else "failed" if result.failed else str(result)


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_read_rightly_or_refused(name: str) -> None:
    """One record with its own question, contexts and answer, or a reason; never those of another step."""
    make, meant = TRACES[name]
    seen = outcome(assemble(make()))
    assert seen == meant or (isinstance(meant, str) and isinstance(seen, str) and meant in seen)


def test_turns_keep_their_own_contexts() -> None:
    """Two turns below one span are two records, each with what its own call was given."""
    records: list[dict[str, Any]] = assemble(turns(**{OI: "CHAIN"})).records
    assert [(one["question"], [text["text"] for text in one["contexts"]], one["answer"]) for one in records] == [
        (Q, [D1, D2], A),
        (Q2, [D4], A2),
    ]
