"""Assembles one record in the canonical format for each RAG request in the spans of a trace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ragwatch.formats.traces.flow import documents_given
from ragwatch.formats.traces.messages import OUTPUT_KEYS, VALUE_OUTPUTS, messages_in, messages_out
from ragwatch.formats.traces.record import (
    Answer,
    Naming,
    answer_in,
    candidates_of,
    record_of,
    several_texts,
    several_turns,
    unclear,
)
from ragwatch.formats.traces.retrieval import Contexts, Resolve, contexts_of
from ragwatch.formats.traces.span import Span, cut_length, first, is_torn, with_events
from ragwatch.formats.traces.steps import Kind, Request, Step, requests
from ragwatch.model.sample import RejectReason

ANSWERS = (*OUTPUT_KEYS, *VALUE_OUTPUTS)
_MAX_REST = 0.2
"""Share of an output besides the documents in it, below which the output is what was retrieved, not an answer."""
LIMIT_ADVICE = (
    "raise the limits of the SDK that sends it: OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 (128 by default), and no "
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
)
_CUT_ADVICE = "raise or unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT in the service that sends it"
_SEVERAL = (
    "{}, and no span says which text the user got: let the span around them hold it (output.value or "
    "gen_ai.output.messages)"
)
_FAILED = "the retrieval failed, and no span says from which contexts the model has answered"
_OTEL = "opentelemetry"
SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        "openinference": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other "
        "OPENINFERENCE_HIDE_* variables",
        "traceloop": "set TRACELOOP_TRACE_CONTENT=true",
        "spring_ai": "set spring.ai.chat.client.observations.log-prompt, spring.ai.chat.observations.log-prompt, "
        "spring.ai.chat.observations.log-completion and spring.ai.vectorstore.observations.log-query-response to true, "
        "and add their texts to the spans",
        "semantic_kernel": "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
        "agent_framework": "set ENABLE_SENSITIVE_DATA=true",
        "pydantic_ai": "use InstrumentationSettings(include_content=True)",
        "haystack": "set HAYSTACK_CONTENT_TRACING_ENABLED=true",
        "azure": "set AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true",
        "vercel": "set recordInputs and recordOutputs of experimental_telemetry to true",
        _OTEL: "set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    }
)
"""What to set, by instrumentation. The keys are label values."""

_SCOPES = (
    ("openinference", "openinference"),
    ("pydantic", "pydantic_ai"),
    ("haystack", "haystack"),
    ("semantic", "semantic_kernel"),
    ("agent_framework", "agent_framework"),
    ("azure", "azure"),
    ("spring", "spring_ai"),
)
_KEYS = (
    (("openinference.",), "openinference"),
    (("traceloop.", "llm.request.", "llm.is_streaming"), "traceloop"),
    (("spring.ai.",), "spring_ai"),
    (("ai.operationId",), "vercel"),
    (("haystack.",), "haystack"),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be judged."""

    reason: RejectReason  # reason that is counted
    field: str  # the field of a record that is missing or incomplete
    detail: str  # what happened, and what to do
    silent: str = ""  # the instrumentation that sends no texts; empty if that is not the reason


@dataclass(slots=True)
class Assembled:
    """What the spans of one trace were."""

    records: list[dict[str, object]] = field(default_factory=list)  # in the canonical format
    refused: list[Refused] = field(default_factory=list)  # requests that cannot be judged
    unrelated: int = 0  # requests that generate nothing
    ungrounded: int = 0  # requests that generate, without any retrieval or context
    failed: int = 0  # requests that ended with an error, without an answer
    incomplete: int = 0  # requests whose first span is missing, with too little to judge them


def assemble(
    spans: Iterable[Span],
    naming: Naming | None = None,
    resolve: Resolve | None = None,
    *,
    ungrounded: bool = False,
    continued: bool = False,
) -> Assembled:
    """Assemble the requests of one trace.

    Args:
        spans: All spans of the trace, in any order.
        naming: Which attributes become fields of a record.
        resolve: Finds texts of documents that are known by id only.
        ungrounded: Whether requests without any retrieval are recorded too, with no contexts.
        continued: Whether another request of this trace was assembled before, so that the id names the first span too.
    """
    result = Assembled()
    rows: list[tuple[Step, dict[str, object]]] = []
    for request in requests(with_events(spans)):
        made = _assembled(request, naming or Naming(), resolve, result, ungrounded=ungrounded)
        if made is not None:
            rows.append(made)
    for step, record in rows:
        trace_id = record["trace_id"]
        record["id"] = trace_id if len(rows) == 1 and not continued else f"{trace_id}-{step.span.span_id}"
        result.records.append(record)
    return result


def _assembled(  # noqa: PLR0911 - one return for each outcome
    request: Request, naming: Naming, resolve: Resolve | None, result: Assembled, *, ungrounded: bool
) -> tuple[Step, dict[str, object]] | None:
    """The record of one request; None if there is none, which is then counted in `result`."""
    if all(step.kind is Kind.OTHER for step in request.steps):
        result.unrelated += 1
        return None
    candidates = candidates_of(request)
    answering, answer = answer_in(request, candidates)
    if answer is None:
        _count_unanswered(request, result)
        return None
    contexts = contexts_of(request, answering, resolve)
    if answering is None and not contexts.lost and _only_retrieves(answer, contexts):
        result.unrelated += 1
        return None
    refused = _uncertain(request, answering, candidates, contexts)
    if refused is None:
        _keep_given(answering, candidates, contexts)
        refused = _unreadable(request, answer, contexts)
    if refused is not None:
        result.refused.append(refused)
        return None
    if request.root is None and not contexts.documents:
        result.incomplete += 1
        return None
    if not contexts.retrieved and not ungrounded:
        result.ungrounded += 1
        return None
    return request.root or request.steps[0], record_of(request, answering, answer, contexts, naming)


def _uncertain(
    request: Request, answering: Step | None, candidates: Sequence[Answer], contexts: Contexts
) -> Refused | None:
    """Why nobody can say what was retrieved, or which call has answered; None if the spans say both."""
    if contexts.lost:
        advice = _CUT_ADVICE if contexts.lost[0].torn else LIMIT_ADVICE
        detail = f"{contexts.lost[0].problem}: its contexts would be incomplete; {advice}"
        return Refused(RejectReason.TRUNCATED, "contexts", detail)
    if answering is None:
        return None
    if several_texts(answering):
        return Refused(RejectReason.MISSING_FIELD, "answer", _SEVERAL.format("a call of a model has several outputs"))
    if len(candidates) > 1 and several_turns(request, answering, candidates):
        return Refused(RejectReason.MISSING_FIELD, "answer", _SEVERAL.format("several chains retrieve and answer"))
    if len(candidates) > 1 and unclear(answering, candidates, contexts.documents):
        return Refused(RejectReason.MISSING_FIELD, "answer", _SEVERAL.format("several calls of a model have answered"))
    return None


def _keep_given(answering: Step | None, candidates: Sequence[Answer], contexts: Contexts) -> None:
    """Drop the documents that no prompt behind the answer holds: a grader or a later search has replaced them."""
    if answering is not None and contexts.steps:
        calls = [(step.span, text) for step, text in candidates if step is not answering]
        kept = documents_given(answering.span, calls, contexts.documents, several=len(contexts.steps) > 1)
        if kept != contexts.documents:
            names = {one.step for one in kept}
            contexts.documents = kept
            contexts.steps = [one for one in contexts.steps if one.span.name in names] or contexts.steps


def _unreadable(request: Request, answer: str, contexts: Contexts) -> Refused | None:
    """Why a request cannot be judged by the contexts that the model was given; None if it can."""
    if (cut := _cut_field(request, answer, contexts)) is not None:
        return cut
    if not contexts.documents and contexts.textless:
        return _textless(contexts)
    retrievals = () if contexts.retrieved else request.of_kind(Kind.RETRIEVER, Kind.RERANKER)
    if request.root is None or not retrievals:
        return None
    if any(step.span.failed for step in retrievals):
        return Refused(RejectReason.MISSING_FIELD, "contexts", _FAILED)
    return _silent(request, "contexts", "the retriever's span does not say what it returned")


def _cut_field(request: Request, answer: str, contexts: Contexts) -> Refused | None:
    """Why answer or contexts are known to be cut; None if they are not."""
    length = cut_length(step.span.attributes for step in request.steps)
    texts = {"answer": [answer], "contexts": [document.text or "" for document in contexts.documents]}
    for name, some in texts.items() if length else ():
        if any(len(text) == length for text in some):
            detail = f"the texts of this trace are cut at {length} characters; {_CUT_ADVICE}"
            return Refused(RejectReason.TRUNCATED, name, detail)
    return None


def _only_retrieves(answer: str, contexts: Contexts) -> bool:
    """Whether the output of a chain without any call of a model is all that was retrieved, and little more.

    An answer may well be one of the documents.
    """
    rest = answer
    for document in contexts.documents:
        if (document.text or "") not in answer:
            return False
        rest = rest.replace(document.text or "", "")
    return not contexts.retrieved or len(rest.strip()) < len(answer) * _MAX_REST


def _count_unanswered(request: Request, result: Assembled) -> None:
    """Count a request without an answer by the reason for that."""
    if request.root is None:
        result.incomplete += 1
    elif any(is_torn(first(step.span.attributes, ANSWERS)) for step in request.of_kind(Kind.LLM, Kind.CHAIN)):
        detail = f"an answer of this trace is cut off; {_CUT_ADVICE}"
        result.refused.append(Refused(RejectReason.TRUNCATED, "answer", detail))
    elif any(step.span.failed for step in request.steps):
        result.failed += 1
    elif not request.of_kind(Kind.LLM):
        result.unrelated += 1
    elif any(
        message.text.strip()
        for step in request.of_kind(Kind.LLM)
        for message in (*messages_out(step.span), *messages_in(step.span))
    ):
        detail = "no span of this trace holds an answer in text"
        result.refused.append(Refused(RejectReason.MISSING_FIELD, "answer", detail))
    else:
        result.refused.append(_silent(request, "answer", "the spans of this trace hold no texts"))


def _silent(request: Request, missing: str, what: str) -> Refused:
    name = _instrumentation_of(step.span for step in request.steps if step.kind is not Kind.OTHER)
    detail = f"{what}: content capture is off; {SWITCHES[name]}"
    return Refused(RejectReason.NO_CONTENT, missing, detail, name)


def _textless(contexts: Contexts) -> Refused:
    names = ", ".join(sorted({step.span.name for step in contexts.steps}))
    instrumentation = _instrumentation_of(step.span for step in contexts.steps)
    detail = (
        f"{contexts.textless} documents of {names} have no text, only ids: let the retriever's span or the prompt hold "
        f"the texts ({SWITCHES[instrumentation]}), or set `resolve` of this source"
    )
    return Refused(RejectReason.NO_CONTENT, "contexts", detail, instrumentation)


def _instrumentation_of(spans: Iterable[Span]) -> str:
    """Which instrumentation sends spans: a key of `SWITCHES`."""
    for span in spans:
        for prefixes, name in _KEYS:
            if any(key.startswith(prefixes) for key in span.attributes):
                return name
        for mark, name in _SCOPES:
            if mark in span.scope.lower():
                return name
    return _OTEL
