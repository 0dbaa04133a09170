"""Spans whose SDK has dropped or cut attributes are refused, unless nothing is missing; any spans are assembled."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    flat,
    genai_ids_only,
    model,
    only,
    openinference,
    replaced,
    said,
    texts,
)

from ragwatch.errors import FormatError
from ragwatch.formats import canonical
from ragwatch.formats.traces.assemble import assemble
from ragwatch.formats.traces.messages import INPUT_KEYS, OUTPUT_KEYS, VALUE_INPUTS, VALUE_OUTPUTS
from ragwatch.formats.traces.span import Event, Span, packed, unpacked
from ragwatch.model.sample import RejectReason
from ragwatch.sources.otlp import json_request, protobuf_request


@pytest.mark.parametrize(
    ("language", "kept", "complete"),
    [("python", 0, True), ("python", 3, False), ("nodejs", 0, False)],
    ids=["python, first kept", "python, first dropped", "another SDK"],
)
def test_dropped_documents_are_refused(language: str, kept: int, complete: bool) -> None:
    """Python drops the oldest attributes, so that a first document proves that all are there; others prove nothing."""
    rows = [{"content": text} for text in (*["x"] * kept, *TEXTS)]
    attributes = {OI: "RETRIEVER"} | {
        key: value
        for key, value in flat("retrieval.documents", rows, "document.").items()
        if int(key.split(".")[2]) >= kept
    }
    spans = replaced(
        openinference(), "retrieve", dropped=7, attributes=attributes, resource={"telemetry.sdk.language": language}
    )
    result = assemble(spans)
    assert bool(result.records) == complete
    if not complete:
        (refused,) = result.refused
        assert (refused.reason, refused.field) == (RejectReason.TRUNCATED, "contexts")
        assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in refused.detail


@pytest.mark.parametrize("language", ["python", "nodejs"])
@pytest.mark.parametrize(
    ("written", "complete"),
    [
        ([{"page_content": text} for text in TEXTS], True),
        ([{"page_content": TEXTS[0]}], False),
        ([{"page_content": text} for text in TEXTS[::-1]], False),
        ([{"page_content": TEXTS[0]}, {"id": "d1"}], False),
        (TEXTS[0], False),
    ],
    ids=["all", "too few", "another order", "a text is missing", "text"],
)
def test_documents_are_complete_where_one_attribute_has_them_all(language: str, written: Any, complete: bool) -> None:
    """What was dropped is not missed if JSON beside it has every text, and agrees with each document that is left."""
    kept = {key: value for key, value in documents(*TEXTS).items() if ".1." in key}
    attributes = {OI: "RETRIEVER", "output.value": json.dumps(written)} | kept
    spans = replaced(
        openinference(), "retrieve", dropped=3, attributes=attributes, resource={"telemetry.sdk.language": language}
    )
    result = assemble(spans)
    if complete:
        assert texts(result) == list(TEXTS)
        assert only(result)["contexts"][1]["id"] == "d1"
    else:
        assert [one.reason for one in result.refused] == [RejectReason.TRUNCATED]


@pytest.mark.parametrize(
    ("language", "passages", "complete"),
    [("python", TEXTS, True), ("python", ("Other.", TEXTS[1]), True), ("python", TEXTS[1:], False),
     ("python", (TEXTS[1], TEXTS[0]), False), ("nodejs", TEXTS, False)],
    ids=["all", "what is not left is not compared", "too few", "another order", "another SDK"],
)  # fmt: skip
def test_documents_are_complete_where_the_prompt_has_them_all(
    language: str, passages: tuple[str, ...], *, complete: bool
) -> None:
    """Python keeps the newest attributes, so that the last rank tells how many there were; the prompt has so many."""
    kept = {key: value for key, value in documents(*TEXTS).items() if ".1." in key}
    prompt = "Context:\n" + "\n\n".join(passages) + f"\n\nQuestion: {QUESTION}"
    spans = [
        a_span("chain", attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}, end=99),
        a_span(
            "retrieve", "chain", 1, dropped=3, attributes={OI: "RETRIEVER"} | kept,
            resource={"telemetry.sdk.language": language},
        ),
        model(parent="chain", attributes=said("llm.input_messages", ("user", prompt))),
    ]  # fmt: skip
    result = assemble(spans)
    if complete:
        assert texts(result) == list(passages)
        assert [context.get("id") for context in only(result)["contexts"]] == [None, "d1"]
    else:
        assert [one.reason for one in result.refused] == [RejectReason.TRUNCATED]


@pytest.mark.parametrize(("left", "complete"), [("b", True), ("z", False)])
def test_what_was_lost_before_a_reranker_is_not_missed(left: str, complete: bool) -> None:
    """A reranker that was given a document of an incomplete list says itself which ones were used."""
    kept = {"retrieval.documents.1.document.content": left, "retrieval.documents.1.document.id": left}
    reranked = documents("b", "a", prefix="reranker.output_documents")
    spans = [
        a_span("chain", attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}, end=99),
        a_span("retrieve", "chain", 1, dropped=3, attributes={OI: "RETRIEVER"} | kept),
        a_span("rerank", "chain", 3, attributes={OI: "RERANKER"} | reranked),
        model(parent="chain"),
    ]
    result = assemble(spans)
    if complete:
        assert texts(result) == ["b", "a"]
    else:
        assert [one.reason for one in result.refused] == [RejectReason.TRUNCATED]


def test_a_document_missing_in_the_middle_is_refused() -> None:
    """Indices with a gap prove that documents are missing, even if the SDK does not say so."""
    attributes = {OI: "RETRIEVER"} | documents("a", "b", "c")
    spans = replaced(
        openinference(), "retrieve", attributes={key: value for key, value in attributes.items() if ".1." not in key}
    )
    assert [one.reason for one in assemble(spans).refused] == [RejectReason.TRUNCATED]


def test_documents_that_are_cut_off_are_refused() -> None:
    """JSON that the limit on characters has cut is no list of documents; a prompt that holds them all says them."""
    cut = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "d0", "text": "Par'}
    spans = replaced(genai_ids_only(), "retrieval", attributes=cut)
    assert texts(assemble(spans)) == ["\n\n".join(TEXTS)]
    prompt = said("llm.input_messages", ("user", QUESTION)) | said("llm.output_messages", ("assistant", ANSWER))
    spans = replaced(
        openinference(), "retrieve", attributes={OI: "RETRIEVER", "output.value": '[{"id": "d0", "text": "P'}
    )
    for some in (replaced(spans, "model", attributes={OI: "LLM"} | prompt), spans[:3]):  # with a model, and without
        (refused,) = assemble(some).refused
        assert (refused.reason, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in refused.detail) == (RejectReason.TRUNCATED, True)


TOO_LONG = [f"{text} {'and so on ' * 9}"[:90] for text in ("Paris is big.", "Lyon is old.", "Nice is warm.")]


@pytest.mark.parametrize("question", [QUESTION, QUESTION + " " * 90], ids=["cut", "a longer text beside them"])
def test_texts_of_one_length_are_refused(question: str) -> None:
    """Where the longest texts are all of one length, a limit has cut them: what was in the rest is unknown."""
    attributes = {OI: "RETRIEVER"} | documents(*TOO_LONG)
    spans = replaced(openinference(), "retrieve", attributes=attributes)[:2]
    spans = replaced(spans, "chain", attributes={OI: "CHAIN", "input.value": question, "output.value": ANSWER})
    result = assemble(spans)
    if question != QUESTION:
        assert texts(result) == TOO_LONG
    else:
        (refused,) = result.refused
        assert (refused.reason, refused.field) == (RejectReason.TRUNCATED, "contexts")
        assert "cut at 90 characters" in refused.detail


@pytest.mark.parametrize("key", ["gen_ai.output.messages", "traceloop.entity.output", "output.value"])
def test_an_answer_that_is_cut_off_is_refused(key: str) -> None:
    """JSON that ends too early is not taken for the answer itself."""
    cut = '[{"role": "assistant", "parts": [{"type": "text", "content": "Paris is the cap'
    spans = [
        a_span("retrieve", attributes={OI: "RETRIEVER"} | documents(*TEXTS)),
        a_span("model", "retrieve", 1, attributes={OI: "LLM", "llm.model_name": "m", key: cut}),
    ]
    (refused,) = assemble(spans).refused
    assert (refused.reason, refused.field) == (RejectReason.TRUNCATED, "answer")


KINDS = ("CHAIN", "LLM", "RETRIEVER", "RERANKER", "TOOL", "AGENT", "PROMPT", "EVALUATOR", "?")
KEYS = (
    *INPUT_KEYS, *OUTPUT_KEYS, *VALUE_INPUTS, *VALUE_OUTPUTS, "llm.input_messages.0.message.content",
    "llm.output_messages.0.message.content", "llm.output_messages.0.message.contents.0.message_content.text",
    "retrieval.documents.0.document.content", "retrieval.documents.1.document.id", "gen_ai.retrieval.documents",
    "reranker.input_documents.0.document.content", "llm.prompt_template.variables", "gen_ai.prompt.variable.context",
    "gen_ai.operation.name", "ai.operationId", "haystack.component.type", "session.id", "gen_ai.completion.0.content",
)  # fmt: skip
WORDS = st.sampled_from(
    ("", "x", "Paris.", "user", "assistant", "retrieval", "chat", "<context>a</context>", "Context:\n[1] a\n[2] b", "{",
     "ai.toolCall", "PromptBuilder", "Question: why?", "<X(id_=1)>", "[[ ## answer ## ]]\nyes",
     "\u2028", "__REDACTED__")
)  # fmt: skip
NAMES = st.sampled_from(
    ("role", "content", "text", "parts", "messages", "documents", "id", "score", "metadata", "node", "kwargs", "args",
     "inputs", "outputs", "answer", "question", "type", "message", "choices", "prompt", "ids", "context", "tool_calls")
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 2**62),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        WORDS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(KEYS), st.one_of(WORDS, VALUES, VALUES.map(json.dumps)), max_size=5
).flatmap(lambda attributes: st.sampled_from(KINDS).map(lambda kind: attributes | {"openinference.span.kind": kind}))
EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(("gen_ai.choice", "gen_ai.user.message", "db.query.result", "gen_ai.content.prompt")),
        st.dictionaries(st.sampled_from(("gen_ai.event.content", "content", "message", "gen_ai.prompt")), WORDS),
    ),
    max_size=2,
).map(tuple)
IDS = st.integers(1, 5).map(lambda number: f"{number:016x}")
SPANS = st.lists(
    st.builds(
        Span,
        st.just(TRACE),
        IDS,
        st.one_of(st.just(""), IDS),
        st.sampled_from(("a", "ai.generateText", "Rerank", "search")),
        st.integers(0, 50),
        st.integers(0, 100),
        ATTRIBUTES,
        EVENTS,
        remote=st.sampled_from((None, False, True)),
        dropped=st.sampled_from((0, 0, 1)),
        scope=st.just(""),
        failed=st.booleans(),
        resource=st.just({}),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda span: span.span_id,
)


@pytest.mark.costly
@given(SPANS, st.randoms(use_true_random=False), st.booleans())
def test_any_spans_are_assembled(spans: list[Span], rng: Any, ungrounded: bool) -> None:
    """No error, the same result in any order, and records that are valid in the canonical format."""
    result = assemble(spans, ungrounded=ungrounded)
    assert assemble(rng.sample(spans, len(spans)), ungrounded=ungrounded) == result
    assert unpacked(packed(spans)) == spans
    for record in result.records:
        try:
            sample = canonical.read(json.loads(json.dumps(record)), "fallback")
        except FormatError as error:
            raise AssertionError(f"{record} is no record: {error}") from error
        assert sample.answer
        assert all(context.text.strip() for context in sample.contexts)


@pytest.mark.costly
@given(SPANS)
def test_any_spans_pass_both_encodings(spans: list[Span]) -> None:
    """What is sent in protobuf and in JSON is read alike."""
    assert protobuf_request.spans_of(as_protobuf(spans)).spans == json_request.spans_of(as_json(spans)).spans
