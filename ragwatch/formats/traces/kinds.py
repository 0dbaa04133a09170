"""What a span does in a RAG request, as the conventions of several instrumentations say it.

The first convention that knows a span decides. To support another one, add a row to `_BY_VALUE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from ragwatch.formats.traces.span import Span


class Kind(Enum):
    """What a span does. OTHER: it has nothing to do with generation, such as an HTTP request."""

    LLM = "llm"
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    EMBEDDING = "embedding"
    TOOL = "tool"
    PROMPT = "prompt"
    EVALUATOR = "evaluator"
    GUARDRAIL = "guardrail"
    CHAIN = "chain"
    OTHER = "other"


def _by_name(names: Mapping[Kind, str]) -> Mapping[str, Kind]:
    return MappingProxyType({name: kind for kind, some in names.items() for name in some.split()})


_KINDS = _by_name(
    {
        Kind.LLM: "llm generation chat_model completion",
        Kind.RETRIEVER: "retriever retrieval",
        Kind.RERANKER: "reranker rerank reranking",
        Kind.EMBEDDING: "embedding",
        Kind.TOOL: "tool function tool_call",
        Kind.PROMPT: "prompt",
        Kind.EVALUATOR: "evaluator evaluation score",
        Kind.GUARDRAIL: "guardrail",
        Kind.CHAIN: "chain agent workflow task step pipeline parser program module span",
    }
)
_OPERATIONS = _by_name(
    {
        Kind.LLM: "chat generate_content text_completion completion generate_text generate responses",
        Kind.RETRIEVER: "retrieval retrieve vector_db_retrieve search_memory search",
        Kind.RERANKER: "rerank reranking",
        Kind.EMBEDDING: "embeddings embedding embed",
        Kind.TOOL: "execute_tool tool",
        Kind.EVALUATOR: "evaluate evaluation",
        Kind.GUARDRAIL: "guardrail apply_guardrail",
        Kind.CHAIN: "invoke_agent invoke_workflow execute_task create_agent framework agent workflow",
    }
)
_SPRING = _by_name({Kind.RETRIEVER: "vector_store", Kind.CHAIN: "chat_client advisor", Kind.TOOL: "tool_call"})
_BY_VALUE = (
    ("openinference.span.kind", _KINDS),
    ("spring.ai.kind", _SPRING),
    ("langfuse.observation.type", _KINDS),
    ("langsmith.span.kind", _KINDS),
    ("mlflow.spanType", _KINDS),
    ("gen_ai.operation.name", _OPERATIONS),
    ("llm.request.type", _OPERATIONS),
    ("traceloop.span.kind", _KINDS),
)
"""Attributes that hold a kind, and what their values mean."""

_WRITES = frozenset({"add", "delete", "insert", "update", "upsert", "create"})
_VERCEL = re.compile(r"ai\.(?P<name>\w+)(?P<inner>\.do\w+)?")
_COMPONENTS = (
    (re.compile(r"(?i)(?:re-?rank|ranker(?![a-z]))"), Kind.RERANKER),
    (re.compile(r"(?i)retriev"), Kind.RETRIEVER),
    (re.compile(r"(?i)embed"), Kind.EMBEDDING),
    (re.compile(r"(?i)evaluat"), Kind.EVALUATOR),
    (re.compile(r"(?i)guard ?rail"), Kind.GUARDRAIL),
    (re.compile(r"(?i)prompt_?(?:template|builder)"), Kind.PROMPT),
    (re.compile(r"LLM|ChatModel|(?:Chat)?Generator(?![a-z])|OpenAI|Anthropic|Ollama"), Kind.LLM),
)
"""Names of components of frameworks whose instrumentation marks every component as the same kind."""

_RERANKS = re.compile(r"postprocess_nodes|[Rr]e-?rank|Ranker(?![a-z])")
"""Components that choose among documents and that OpenInference marks as a chain."""

_ANSWERS = ("gen_ai.output.messages", "gen_ai.completion")
_ENGINES = re.compile(r"(?i)engine|pipeline|chain|workflow|program|synthesi")


def kind_of(span: Span) -> Kind:
    """Return what a span does.

    >>> kind_of(Span("t", "s", "", "R", 0, 1, {"openinference.span.kind": "RETRIEVER"}))
    <Kind.RETRIEVER: 'retriever'>
    >>> kind_of(Span("t", "s", "", "GET /chat", 0, 1, {"http.request.method": "GET"}))
    <Kind.OTHER: 'other'>
    """
    attributes = span.attributes
    if not attributes and not span.events:
        return Kind.OTHER
    for key, meanings in _BY_VALUE:
        value = attributes.get(key)
        if isinstance(value, str):
            kind = meanings.get(value.strip('"').lower())
            if kind is not None:
                return _refined(kind, span)
    return _by_framework(span) or _by_content(span)


def _refined(kind: Kind, span: Span) -> Kind:
    """Return the kind of a component behind a kind that says little."""
    attributes = span.attributes
    if kind is Kind.RETRIEVER and attributes.get("db.operation.name") in _WRITES:
        return Kind.OTHER
    if kind is Kind.CHAIN and _RERANKS.search(span.name):
        return Kind.RERANKER
    if kind is Kind.CHAIN and ("traceloop.span.kind" in attributes or "openinference.span.kind" not in attributes):
        name = str(attributes.get("traceloop.entity.name") or span.name)
        component = _component(name)
        if component is None and attributes.get("traceloop.span.kind") == "task" and not _ENGINES.search(name):
            return Kind.LLM if any(key.startswith(_ANSWERS) for key in attributes) else kind  # a model of any name
        return component or kind
    return kind


def _component(name: str) -> Kind | None:
    """Return the kind of a component by its class name; None for one that only calls others.

    >>> [_component(name) for name in ("VectorIndexRetriever.task", "RetrieverQueryEngine.workflow")]
    [<Kind.RETRIEVER: 'retriever'>, None]
    """
    if _ENGINES.search(name):
        return None
    return next((kind for pattern, kind in _COMPONENTS if pattern.search(name)), None)


def _by_framework(span: Span) -> Kind | None:
    """Return the kind by conventions without an attribute for it; None if no such convention applies."""
    attributes = span.attributes
    component = attributes.get("haystack.component.type")
    if isinstance(component, str):
        return _component(component) or Kind.CHAIN
    operation = attributes.get("ai.operationId") or (span.name if span.name.startswith("ai.") else "")
    vercel = _VERCEL.match(operation) if isinstance(operation, str) else None
    if vercel is None:
        return None
    name = vercel["name"].lower()
    if name == "toolcall":
        return Kind.TOOL
    if name.startswith(("embed", "rerank")):
        return Kind.EMBEDDING if name.startswith("embed") else Kind.RERANKER
    return Kind.LLM if vercel["inner"] else Kind.CHAIN


def _by_content(span: Span) -> Kind:
    """Return the kind by what a span holds."""
    names = frozenset(event.name for event in span.events)
    if "db.query.result" in names:
        return Kind.RETRIEVER
    kind = Kind.OTHER
    for key in span.attributes:
        if key.startswith(("retrieval.documents", "gen_ai.retrieval.documents", "db.vector.query.")):
            return Kind.RETRIEVER
        if key.startswith("reranker."):
            return Kind.RERANKER
        if key.startswith(("gen_ai.tool.call.", "gen_ai.tool.name")):
            return Kind.TOOL
        if key.startswith(
            ("llm.output_messages", "gen_ai.completion", "gen_ai.output.messages", "gen_ai.request.model")
        ):
            kind = Kind.LLM
        elif key in _CHAIN_KEYS and kind is Kind.OTHER:
            kind = Kind.CHAIN
    if kind is not Kind.LLM and not names.isdisjoint(_LLM_EVENTS):
        return Kind.LLM
    return kind


_CHAIN_KEYS = frozenset({
    "input.value", "output.value", "pydantic_ai.all_messages", "all_messages_events",
    "haystack.pipeline.input_data", "langfuse.trace.input", "mlflow.spanInputs", "gen_ai.agent.name", "agent_name",
})  # fmt: skip
_LLM_EVENTS = frozenset({"gen_ai.choice", "gen_ai.content.completion", "gen_ai.user.message", "gen_ai.system.message",
                         "gen_ai.assistant.message", "gen_ai.tool.message", "gen_ai.content.prompt",
                         "gen_ai.client.inference.operation.details"})  # fmt: skip
