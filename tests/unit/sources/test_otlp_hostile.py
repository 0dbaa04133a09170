"""Whatever spans hold, in known attributes too: they are assembled without an error, whatever their order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spans import TRACE, as_json, as_protobuf

from ragwatch.errors import FormatError
from ragwatch.formats import canonical
from ragwatch.formats.traces.assemble import assemble
from ragwatch.formats.traces.messages import INPUT_KEYS, OUTPUT_KEYS, VALUE_INPUTS, VALUE_OUTPUTS
from ragwatch.formats.traces.span import Event, Span, packed, unpacked
from ragwatch.sources.otlp import json_request, protobuf_request

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
def test_any_spans_are_assembled(spans: list[Span], rng: Any, ungrounded: bool) -> None:  # noqa: FBT001
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
