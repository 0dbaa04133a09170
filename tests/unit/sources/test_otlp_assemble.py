"""Traces of many conventions become the same record; what is refused and why, broken trees, texts in prompts."""

import json
import random
from typing import Any

import pytest
from support.framework_traces import TRACES
from support.spans import (
    ANSWER,
    OI,
    QUESTION,
    TEXTS,
    TRACE,
    a_span,
    as_json,
    as_protobuf,
    documents,
    genai_ids_only,
    model,
    only,
    openinference,
    replaced,
    said,
    span_id,
    texts,
)

from ragwatch.formats import canonical
from ragwatch.formats.traces.assemble import assemble
from ragwatch.formats.traces.record import Naming
from ragwatch.formats.traces.span import Span
from ragwatch.model.sample import RejectReason
from ragwatch.sources.otlp import json_request, protobuf_request


@pytest.mark.parametrize(
    ("attributes", "scope", "switch"),
    [
        ({"gen_ai.operation.name": "chat"}, "", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        ({"traceloop.span.kind": "task", "gen_ai.operation.name": "chat"}, "", "TRACELOOP_TRACE_CONTENT"),
        ({OI: "LLM", "input.value": "__REDACTED__"}, "", "OPENINFERENCE_HIDE_INPUTS"),
        ({"spring.ai.kind": "advisor", "gen_ai.operation.name": "chat"}, "", "spring.ai.chat.observations.log-prompt"),
        ({"ai.operationId": "ai.generateText.doGenerate"}, "", "recordInputs"),
        ({"haystack.component.type": "OpenAIGenerator"}, "", "HAYSTACK_CONTENT_TRACING_ENABLED"),
        ({"gen_ai.operation.name": "chat"}, "pydantic-ai", "include_content=True"),
        ({"gen_ai.operation.name": "chat"}, "Microsoft.SemanticKernel", "SEMANTICKERNEL_EXPERIMENTAL"),
        ({"gen_ai.operation.name": "chat"}, "azure.ai.inference", "AZURE_TRACING_GEN_AI"),
        ({"gen_ai.operation.name": "chat"}, "agent_framework", "ENABLE_SENSITIVE_DATA"),
    ],
)
def test_content_capture_that_is_off_names_the_switch(attributes: dict[str, str], scope: str, switch: str) -> None:
    """Spans that hold names only are refused with the setting of their instrumentation."""
    result = assemble([a_span("chat", attributes={"gen_ai.request.model": "m"} | attributes, scope=scope)])
    if attributes.get("spring.ai.kind"):
        assert result.records == []
        return
    (refused,) = result.refused
    assert (refused.reason, switch in refused.detail, bool(refused.silent)) == (RejectReason.NO_CONTENT, True, True)


def test_answers_without_contexts() -> None:
    """An empty list is known to be empty; with the option, an answer without any retrieval is a record."""
    spans = replaced(openinference(), "retrieve", attributes={OI: "RETRIEVER", "output.value": "[]"})
    assert texts(assemble(spans)) == texts(assemble([model()], ungrounded=True)) == []


def test_a_retriever_that_says_nothing_is_refused() -> None:
    """The answer is there, the retriever's span holds no documents: judged without contexts it would look invented."""
    spans = replaced(openinference(), "retrieve", attributes={OI: "RETRIEVER", "input.value": QUESTION})
    spans = [span for span in spans if span.name not in ("model", "prompt")] + [model(parent="chain")]
    (refused,) = assemble(spans).refused
    assert (refused.reason, refused.field) == (RejectReason.NO_CONTENT, "contexts")


def test_a_model_that_only_calls_tools_has_not_answered() -> None:
    """Spans with prompts, but without an answer in text, are refused as such."""
    attributes = {OI: "LLM", "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search"}
    (refused,) = assemble([a_span("m", attributes=attributes | said("llm.input_messages", ("user", "Why?")))]).refused
    assert (refused.reason, refused.field) == (RejectReason.MISSING_FIELD, "answer")


def test_ids_without_texts_are_resolved_or_refused() -> None:
    """Texts come from the resolver; without one, and without a prompt that holds them, the request is refused."""
    spans = genai_ids_only()
    spans[2] = model("chat", "invoke_workflow")
    (refused,) = assemble(spans).refused
    assert (refused.reason, "resolve" in refused.detail) == (RejectReason.NO_CONTENT, True)
    asked: list[str] = []

    def resolve(ids: Any) -> dict[str, str]:
        asked.extend(ids)
        return dict(zip(("d0", "d1"), TEXTS, strict=True))

    assert texts(assemble(spans, None, resolve)) == list(TEXTS)
    assert asked == ["d0", "d1"]


@pytest.mark.parametrize(
    ("prompt", "contexts"),
    [
        ("<context>\nParis is big.\n</context>\nHow big?", ["Paris is big."]),
        ('<documents><document id="1">A.</document><document id="2">B.</document></documents>', ["A.", "B."]),
        ("<document index='1'><source>s</source><document_content>A.</document_content></document>", ["A."]),
        (
            (
                "<documents><document index='1'><source>s</source><document_content>A.</document_content></document>"
                "<document><document_content>B.</document_content></document></documents>"
            ),
            ["A.", "B."],
        ),
        ("Context:\n[1] A.\n[2] B.\n\nQuestion: Why?", ["A.", "B."]),
        ("Context information is below.\n----------\nA.\n----------\nQuery: Why?", ["A."]),
        ("Retrieved documents:\n\n===== Document 0 =====\nA.\n===== Document 1 =====\nB.\n", ["A.", "B."]),
        ("Sources:\n\nTitle: x\nA.\n\nA2.\n\nTitle: y\nB.", ["Title: x\nA.\n\nA2.\n\nTitle: y\nB."]),
        ("<context>" * 5_000, None),
        ("You are helpful.", None),
    ],
)
def test_contexts_in_a_prompt(prompt: str, contexts: list[str] | None) -> None:
    """Marked blocks of the prompt are the contexts where nothing else says what was retrieved."""
    attributes = said("llm.input_messages", ("system", prompt), ("user", "Why?"))
    result = assemble([model(attributes=attributes)])
    if contexts is None:
        assert (result.records, result.ungrounded) == ([], 1)
    else:
        assert texts(result) == contexts
        assert only(result)["question"] == "Why?"


def test_the_question_inside_of_a_prompt() -> None:
    """The last message holds contexts and question: only the question is taken."""
    prompt = "Context: Paris is big.\nQuestion: How big is Paris?\nAnswer:"
    record = only(assemble([model(attributes=said("llm.input_messages", ("user", prompt)))]))
    assert (record["question"], record["contexts"][0]["text"]) == ("How big is Paris?", "Paris is big.")


def test_retrievals_of_an_agent_are_joined() -> None:
    """Several retrievals before the answer, in their order, a document that comes twice once; the spans are named."""
    spans = [
        a_span("agent", end=99, attributes={OI: "AGENT", "input.value": QUESTION}),
        a_span("tool", "agent", 1, 9, attributes={OI: "TOOL", "output.value": "text of a tool"}),
        a_span("first", "tool", 2, attributes={OI: "RETRIEVER"} | documents("a", "b")),
        a_span("second", "agent", 20, attributes={OI: "RETRIEVER"} | documents("b", "c")),
        model(parent="agent"),
        a_span("afterwards", "agent", 80, attributes={OI: "RETRIEVER"} | documents("z")),
    ]
    result = assemble(spans)
    assert texts(result) == ["a", "b", "c"]
    assert only(result)["metadata"]["steps"] == "first + second"
    assert [context["step"] for context in only(result)["contexts"]] == ["first", "first", "second"]


def test_each_reranker_replaces_what_it_was_given() -> None:
    """An agent that retrieves and reranks twice keeps both results; a retrieval without reranker stays."""
    spans = [
        a_span("agent", end=99, attributes={OI: "AGENT", "input.value": QUESTION}),
        a_span("r1", "agent", 1, attributes={OI: "RETRIEVER"} | documents("a", "b", "c")),
        a_span("k1", "agent", 2, attributes={OI: "RERANKER"} | documents("c", "a", prefix="reranker.output_documents")),
        a_span("r2", "agent", 3, attributes={OI: "RETRIEVER"} | documents("x", "y")),
        a_span("k2", "agent", 4, attributes={OI: "RERANKER"} | documents("y", prefix="reranker.output_documents")),
        a_span("r3", "agent", 5, attributes={OI: "RETRIEVER"} | documents("q")),
        model(parent="agent"),
    ]
    assert texts(assemble(spans)) == ["c", "a", "y", "q"]


def asked(name: str, parent: str, **parts: Any) -> list[Span]:
    """The spans of a request with this name."""
    return [
        a_span(name, parent, 1, 90, attributes={OI: "CHAIN", "input.value": f"{name}?"}, **parts),
        a_span(f"{name} retrieve", name, 2, attributes={OI: "RETRIEVER"} | documents(name)),
        model(f"{name} model", name),
    ]


def test_two_requests_in_one_trace_get_ids_of_their_own() -> None:
    """Two services that retrieve and generate in one trace are two records; the caller that does neither is none."""
    gateway = a_span("gateway", end=999, attributes={"http.request.method": "GET"})
    one, other = (asked(name, "gateway", remote=True) for name in "ab")
    result = assemble([gateway, *one, *other])
    ids = [f"{TRACE}-{span_id(name)}" for name in "ab"]
    assert {record["id"]: record["question"] for record in result.records} == dict(zip(ids, ("a?", "b?"), strict=True))
    assert result.unrelated == 1
    (later,) = assemble(one, continued=True).records
    assert later["id"] == ids[0]


@pytest.mark.parametrize(
    ("attributes", "ids"),
    [({}, {f"{TRACE}-{span_id(name)}" for name in "ab"}), ({OI: "CHAIN", "output.value": ANSWER}, {TRACE})],
)
def test_several_chains_of_one_job_are_several_requests(attributes: dict[str, str], ids: set[str]) -> None:
    """Below a span that is no chain, each chain that retrieves and generates is a record; below a chain, none is."""
    job, chains = a_span("job", end=999, attributes=attributes), [*asked("a", "job"), *asked("b", "job")]
    assert {record["id"] for record in assemble([job, *chains]).records} == ids
    assert len(assemble(chains).records) == 2


def test_without_the_first_span() -> None:
    """Spans whose root is missing are a record only if contexts and answer are there, and say so."""
    spans = [span for span in openinference() if span.name != "chain"]
    record = only(assemble(spans))
    assert (record["metadata"]["root"], record["question"], record["answer"]) == ("missing", QUESTION, ANSWER)
    assert assemble([span for span in spans if span.name not in {"retrieve", "prompt"}]).incomplete == 1
    assert assemble([span for span in spans if span.name == "retrieve"]).incomplete == 1


def test_spans_whose_caller_is_missing_belong_to_the_root() -> None:
    """A lost span in the middle does not take what is below it away."""
    spans = [span._replace(parent_id=span_id("lost")) if span.name == "retrieve" else span for span in openinference()]
    assert texts(assemble(spans)) == list(TEXTS)


def test_loops_are_no_end() -> None:
    """Spans that call each other, or themselves, end."""
    loop = [a_span("a", "b"), a_span("b", "a"), a_span("c", "c", attributes={OI: "CHAIN"}), a_span("d", "b")]
    result = assemble(loop)
    assert (result.records, result.refused) == ([], [])
    chain = [a_span("0", attributes={OI: "CHAIN"})] + [a_span(str(n), str(n - 1), remote=True) for n in range(1, 3000)]
    assert assemble(chain).records == []


@pytest.mark.parametrize(
    ("spans", "outcome"),
    [
        ([a_span("GET /", attributes={"http.request.method": "GET"})], "unrelated"),
        ([a_span("chain", attributes={OI: "CHAIN", "input.value": "x"})], "unrelated"),
        ([model()], "ungrounded"),
        ([model(attributes={"llm.output_messages.0.message.content": ""}, failed=True)], "failed"),
    ],
)
def test_what_is_no_rag_request_is_counted(spans: list[Span], outcome: str) -> None:
    """Other traffic is neither a record nor refused."""
    result = assemble(spans)
    assert (result.records, result.refused, getattr(result, outcome)) == ([], [], 1)


def test_the_answer_is_what_the_user_got() -> None:
    """The chain's output wins over that of the model, and of a later one that suggests questions; ids are kept."""
    spans = openinference()
    assert "response_id" not in only(assemble(spans))["metadata"]
    answering = next(span for span in spans if span.name == "model")
    spans = replaced(spans, "model", attributes=answering.attributes | {"gen_ai.response.id": "chatcmpl-7"})
    spans = replaced(spans, "chain", attributes=spans[0].attributes | {"output.value": f"{ANSWER} [1]"})
    suggested = said("llm.output_messages", ("assistant", "What about Lyon?"))
    record = only(assemble([*spans, model("suggest", "chain", at=80, attributes=suggested)]))
    kept = {key: record["metadata"][key] for key in ("answer_span_id", "response_id")}
    assert (record["answer"], kept) == (
        f"{ANSWER} [1]",
        {"answer_span_id": span_id("model"), "response_id": "chatcmpl-7"},
    )


def test_names_of_attributes_become_fields() -> None:
    """Route and metadata come from the attributes that the options name; the mark of a canary and the session too."""
    spans = openinference()
    more = {"tenant.id": 7, "rag.route": "billing", "session.id": "s1", "ragwatch.canary": "mark"}
    spans = replaced(spans, "chain", attributes=spans[0].attributes | more)
    naming = Naming(("nothing", "rag.route"), {"tenant": "tenant.id", "none": "missing", "host": "service.name"})
    record = only(assemble(spans, naming))
    kept = {key: record["metadata"].get(key) for key in ("tenant", "none", "host", "session", "canary")}
    assert (record["route"], kept) == (
        "billing",
        {"tenant": 7, "none": None, "host": "shop", "session": "s1", "canary": "mark"},
    )
    assert only(assemble(spans, Naming(("nothing",))))["route"] == ""


def test_hostile_values_are_data() -> None:
    """Names of Python, huge indices, deep JSON and lists where objects belong change nothing."""
    deep: Any = "x"
    for _ in range(60):
        deep = {"documents": [deep]}
    noise = {
        "__class__": "x",
        "retrieval.documents.99999999999.document.content": "y",
        "llm.input_messages.x.message": "z",
        "gen_ai.input.messages": json.dumps([[[[1]]], {"role": {"a": 1}, "content": [None, {"text": 4}]}]),
        "gen_ai.retrieval.documents": json.dumps([deep, 5, None, [], [1, 2]]),
        "metadata": json.dumps(deep),
        "input.value": json.dumps(deep),
    }
    spans = [span._replace(attributes=noise | span.attributes) for span in openinference()]
    assert texts(assemble(spans)) == list(TEXTS)
    for kind in ("RETRIEVER", "LLM", "CHAIN", "TOOL", "RERANKER"):
        assert assemble([a_span("x", attributes=noise | {OI: kind, "output.value": json.dumps(deep)})]).records == []


@pytest.mark.parametrize(("output", "answers"), [(ANSWER, 1), (TEXTS[0], 1), ("\n\n".join(TEXTS), 0), ("", 0)])
def test_a_chain_around_a_retriever(output: str, answers: int) -> None:
    """Without any call of a model, a chain has answered if its output is not all that was retrieved."""
    spans = [
        a_span("ask", end=9, attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": output}),
        a_span("retrieve", "ask", 1, attributes={OI: "RETRIEVER"} | documents(*TEXTS)),
    ]
    result = assemble(spans)
    assert (len(result.records), result.unrelated) == (answers, 1 - answers)


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_becomes_its_record(name: str) -> None:
    """Field by field, from either encoding, whatever the order of the spans."""
    make, expected = TRACES[name]
    spans = make()
    decoded = [protobuf_request.spans_of(as_protobuf(spans)).spans, json_request.spans_of(as_json(spans)).spans]
    random.Random(1).shuffle(decoded[1])
    records = []
    for some in decoded:
        result = assemble(some)
        assert (result.refused, len(result.records)) == ([], 1)
        records.append(result.records[0])
    assert records[0] == records[1]
    sample = canonical.read(records[0], "fallback")
    assert (sample.id, sample.trace_id, sample.question, sample.answer) == (TRACE, TRACE, QUESTION, ANSWER)
    assert tuple(context.text for context in sample.contexts) == expected.texts
    assert tuple(context.id for context in sample.contexts) == expected.ids
    assert tuple(context.score for context in sample.contexts) == expected.scores
    assert tuple((str(turn.role), turn.text) for turn in sample.history) == expected.history
    assert sample.route == "shop"
