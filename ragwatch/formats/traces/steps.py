"""The spans of a trace as the steps of one or several RAG requests, and what each of them does.

The first convention of an instrumentation that knows a span decides what it does. To support another one, add a row to
`_BY_VALUE`.

A request starts at a local root: a span without parent, or one whose parent is in another process. What another
process has done for it belongs to it, unless that process has retrieved and generated itself: that is a request of its
own. So are several chains that retrieve and generate below one span that is no chain, such as a job.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from ragwatch.formats.traces.messages import INPUT_KEYS, OUTPUT_KEYS, VALUE_INPUTS, VALUE_OUTPUTS
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
    """Return what a span does."""
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
    """Return the kind of a component by its class name; None for one that only calls others."""
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


_IGNORED = frozenset({Kind.EVALUATOR, Kind.GUARDRAIL})
_RETRIEVALS = frozenset({Kind.RETRIEVER, Kind.RERANKER})
_INPUTS, _OUTPUTS = frozenset((*INPUT_KEYS, *VALUE_INPUTS)), frozenset((*OUTPUT_KEYS, *VALUE_OUTPUTS))
_SILENT = "silent"  # a first chain that says neither what was asked nor what was answered
Children = dict[str, list[Span]]
"""The spans that a span has called, by its id."""


@dataclass(slots=True, eq=False)
class Step:
    """A span, and where it is in its request."""

    span: Span  # the span
    kind: Kind  # what it does
    parent: Step | None = None  # the span that called it; None for the first one
    ignored: bool = False  # whether it is a part of an evaluator or a guardrail
    retrieval: Step | None = None  # the outermost retriever or reranker that it is a part of, None if it is none's part
    tool: Step | None = None  # the outermost tool that it is a part of

    def outer(self) -> list[Step]:
        """All that it is a part of, outermost first."""
        path = []
        step = self.parent
        while step is not None:
            path.append(step)
            step = step.parent
        return path[::-1]

    def callers(self) -> list[Step]:
        """Chains and agents that it is a part of, outermost first."""
        return [step for step in self.outer() if step.kind is Kind.CHAIN]


@dataclass(slots=True)
class Request:
    """Steps of one request, sorted by time."""

    root: Step | None  # the first span; None if it is missing
    steps: list[Step] = field(default_factory=list)  # all steps

    def of_kind(self, *kinds: Kind) -> list[Step]:
        """Steps of these kinds, sorted by start."""
        return [step for step in self.steps if step.kind in kinds and not step.ignored]


def requests(spans: Iterable[Span]) -> list[Request]:
    """Return the requests in the spans of one trace, by their start. The order of the spans does not matter."""
    distinct = {span.span_id: span for span in spans}
    ordered = sorted(distinct.values(), key=lambda span: (span.start, -span.end, span.span_id))
    children, tops = _children(ordered, distinct)
    kinds = {span.span_id: kind_of(span) for span in ordered}
    own = _starts_of_requests(tops, children, kinds)
    rooted = [span for span in tops if span.is_local_root]
    by_root: dict[str, Request] = {}
    for top in tops:
        owner = top if top.is_local_root or not rooted else _enclosing(top, rooted)
        waiting: list[tuple[Span, Step | None, str]] = [(top, None, owner.span_id if owner.is_local_root else "")]
        while waiting:
            span, parent, name = waiting.pop()
            if span.span_id in own:
                parent, name = None, span.span_id
            step = _step(span, kinds[span.span_id], parent)
            request = by_root.setdefault(name, Request(None))
            request.steps.append(step)
            if name == span.span_id:
                request.root = step
            waiting += [(child, step, name) for child in children.get(span.span_id, ())]
    for request in by_root.values():
        request.steps.sort(key=lambda step: (step.span.start, -step.span.end, step.span.span_id))
    return sorted(by_root.values(), key=lambda request: request.steps[0].span.start)


def _children(ordered: Sequence[Span], distinct: Container[str]) -> tuple[Children, list[Span]]:
    """The spans that each span has called, and those that no known span has called. Loops are cut at their start."""
    children: dict[str, list[Span]] = {}
    for span in ordered:
        if span.parent_id in distinct and span.parent_id != span.span_id:
            children.setdefault(span.parent_id, []).append(span)
    called = {span.span_id for some in children.values() for span in some}
    tops = [span for span in ordered if span.span_id not in called]
    reached: set[str] = set()
    for span in (*tops, *ordered):
        if span.span_id in reached:
            continue
        if span.span_id in called:  # a part of a loop: hostile or broken
            children[span.parent_id].remove(span)
            tops.append(span)
        waiting = [span]
        while waiting:
            one = waiting.pop()
            reached.add(one.span_id)
            waiting += [child for child in children.get(one.span_id, ()) if child.span_id not in reached]
    return children, tops


def _starts_of_requests(tops: Sequence[Span], children: Children, kinds: Mapping[str, Kind]) -> set[str]:
    """Spans that start a request of their own.

    Local roots with a known caller in whose process a retrieval and a generation happened; and chains below one span
    that is no chain, such as a job, or a conversation without texts of its own, if several retrieve and generate.
    """
    first = {span.span_id for span in tops}

    def process(span: Span, name: str) -> str:
        return span.span_id if span.remote is True and span.span_id not in first else name

    def chain(span: Span, name: str) -> str:
        if name not in ("", _SILENT) or kinds[span.span_id] is not Kind.CHAIN:
            return name
        keys = span.attributes.keys()
        if name == "" and span.span_id in first and keys.isdisjoint(_INPUTS | _OUTPUTS):
            return _SILENT
        return span.span_id if name == "" or not (keys.isdisjoint(_INPUTS) or keys.isdisjoint(_OUTPUTS)) else name

    several = [*kinds.values()].count(Kind.LLM) > 1  # without it no walk is needed
    below = _whole(tops, children, kinds, chain) if several else set()
    times = Counter(root for root, _ in below)
    starts = {name for root, name in below if times[root] > 1 and (root, _SILENT) not in below}
    called = (span for some in children.values() for span in some)
    if any(span.remote is True for span in called):
        starts |= {name for _, name in _whole(tops, children, kinds, process)}
    return starts


def _whole(
    tops: Sequence[Span], children: Children, kinds: Mapping[str, Kind], group: Callable[[Span, str], str]
) -> set[tuple[str, str]]:
    """The groups of spans that retrieve and generate, behind the root that they are below.

    `group` gives the name of the group of a span, from that of the span that called it.
    """
    happened: dict[tuple[str, str], set[Kind]] = {}
    for top in tops:
        root = top.span_id if top.is_local_root else ""
        waiting = [(top, "")]
        while waiting:
            span, outer = waiting.pop()
            name = group(span, outer)
            if name:
                happened.setdefault((root, name), set()).add(kinds[span.span_id])
            waiting += [(child, name) for child in children.get(span.span_id, ())]
    return {key for key, inside in happened.items() if Kind.LLM in inside and _RETRIEVALS & inside}


def _enclosing(span: Span, roots: Sequence[Span]) -> Span:
    """The local root during which a span without known caller began: of its process if possible, the latest."""
    during = [root for root in roots if root.start <= span.start <= root.end]
    same = [root for root in during if root.resource == span.resource]
    return (same or during or list(roots))[-1]


def _step(span: Span, kind: Kind, parent: Step | None) -> Step:
    step = Step(span, kind, parent)
    step.ignored = kind in _IGNORED
    if parent is not None:
        step.ignored |= parent.ignored
        step.retrieval = parent.retrieval or (parent if parent.kind in _RETRIEVALS else None)
        step.tool = parent.tool or (parent if parent.kind is Kind.TOOL else None)
    return step
