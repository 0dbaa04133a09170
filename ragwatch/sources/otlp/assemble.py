"""Assembles one record in the canonical format for each RAG request in the spans of a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragwatch.core.sample import RejectReason
from ragwatch.formats import history
from ragwatch.sources.otlp.attributes import decoded, first, plain_text
from ragwatch.sources.otlp.capture import LIMIT_ADVICE, SWITCHES, instrumentation_of
from ragwatch.sources.otlp.kinds import Kind
from ragwatch.sources.otlp.messages import (
    ASSISTANT,
    USER,
    Message,
    last_text,
    messages_in,
    messages_out,
    value_in,
    value_out,
)
from ragwatch.sources.otlp.prompt_contexts import question_among, question_in, variables
from ragwatch.sources.otlp.retrieval import Contexts, Resolve, contexts_of
from ragwatch.sources.otlp.span import Span
from ragwatch.sources.otlp.tree import Request, Step, requests
from ragwatch.sources.otlp.values import answer_of, conversation, question_of

NO_NAMES: Mapping[str, str] = {}
_MODEL_MARKS = ("llm.model_name", "llm.invocation_parameters", "gen_ai.request.model", "gen_ai.response.model",
                "llm.prompts", "llm.token_count.total", "gen_ai.usage.input_tokens", "ai.model.id",
                "langfuse.observation.model.name", "gen_ai.operation.name", "mlflow.spanType",
                "langfuse.observation.type", "langsmith.span.kind", "haystack.component.type")  # fmt: skip
_QUERY_KEYS = ("gen_ai.retrieval.query.text", "gen_ai.retrieval.query", "db.vector.query.content", "reranker.query",
               "retrieval.query")  # fmt: skip
_SESSION_KEYS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id",
                 "traceloop.association.properties.session_id", "mlflow.trace.session")  # fmt: skip
_MODEL_KEYS = ("gen_ai.response.model", "llm.model_name", "gen_ai.request.model", "ai.response.model", "ai.model.id")
_CANARY_KEYS = ("ragwatch.canary", "http.request.header.x-ragwatch-canary", "http.request.header.x_ragwatch_canary")
_SECTION = re.compile(r"\[\[ ## (\w+) ## \]\]")
_THOUGHTS = frozenset({"reasoning", "rationale", "completed"})


@dataclass(frozen=True, slots=True)
class Naming:
    """Which attributes become fields of a record.

    Attributes:
        route: Attributes that hold the route; the first that the request has.
        metadata: Attribute of each field of the metadata.
    """

    route: tuple[str, ...] = ("service.name",)
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be judged.

    Attributes:
        reason: Reason that is counted.
        field: The field of a record that is missing or incomplete.
        detail: What happened, and what to do.
        silent: The instrumentation that sends no texts; empty if that is not the reason.
    """

    reason: RejectReason
    field: str
    detail: str
    silent: str = ""


@dataclass(slots=True)
class Assembled:
    """What the spans of one trace were.

    Attributes:
        records: In the canonical format.
        refused: Requests that cannot be judged.
        unrelated: Requests that generate nothing.
        ungrounded: Requests that generate, without any retrieval or context.
        failed: Requests that ended with an error, without an answer.
        incomplete: Requests whose first span is missing, with too little to judge them.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    unrelated: int = 0
    ungrounded: int = 0
    failed: int = 0
    incomplete: int = 0


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
    rows: list[tuple[Step, dict[str, Any]]] = []
    for request in requests(spans):
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
) -> tuple[Step, dict[str, Any]] | None:
    """The record of one request; None if there is none, which is then counted in `result`."""
    if all(step.kind is Kind.OTHER for step in request.steps):
        result.unrelated += 1
        return None
    answering, answer = _answer(request)
    if answer is None:
        _count_unanswered(request, result)
        return None
    contexts = contexts_of(request, answering, resolve)
    if contexts.problem is not None:
        detail = f"{contexts.problem}: its contexts would be incomplete; {LIMIT_ADVICE}"
        result.refused.append(Refused(RejectReason.TRUNCATED, "contexts", detail))
        return None
    if not contexts.documents and contexts.textless:
        result.refused.append(_textless(contexts))
        return None
    if request.root is None and not contexts.documents:
        result.incomplete += 1
        return None
    if not contexts.retrieved and not ungrounded:
        if _has_retriever(request):
            result.refused.append(_silent(request, "contexts", "the retriever's span does not say what it returned"))
        else:
            result.ungrounded += 1
        return None
    return request.root or request.steps[0], _record(request, answering, answer, contexts, naming)


def _has_retriever(request: Request) -> bool:
    return bool(request.of_kind(Kind.RETRIEVER, Kind.RERANKER))


def _count_unanswered(request: Request, result: Assembled) -> None:
    """Count a request without an answer by the reason for that."""
    if request.root is None:
        result.incomplete += 1
    elif any(step.span.failed for step in request.steps):
        result.failed += 1
    elif not request.of_kind(Kind.LLM):
        result.unrelated += 1
    elif _is_silent(request):
        result.refused.append(_silent(request, "answer", "the spans of this trace hold no texts"))
    else:
        detail = "no span of this trace holds an answer in text"
        result.refused.append(Refused(RejectReason.MISSING_FIELD, "answer", detail))


def _silent(request: Request, missing: str, what: str) -> Refused:
    name = instrumentation_of(step.span for step in request.steps if step.kind is not Kind.OTHER)
    detail = f"{what}: content capture is off; {SWITCHES[name]}"
    return Refused(RejectReason.NO_CONTENT, missing, detail, name)


def _is_silent(request: Request) -> bool:
    """Whether no call of a model holds any text."""
    return not any(
        message.text.strip()
        for step in request.of_kind(Kind.LLM)
        for message in (*messages_out(step.span), *messages_in(step.span))
    )


def _textless(contexts: Contexts) -> Refused:
    names = ", ".join(sorted({step.span.name for step in contexts.steps}))
    instrumentation = instrumentation_of(step.span for step in contexts.steps)
    detail = (
        f"{contexts.textless} documents of {names} have no text, only ids: let the retriever's span or the prompt hold "
        f"the texts ({SWITCHES[instrumentation]}), or set `resolve` of this source"
    )
    return Refused(RejectReason.NO_CONTENT, "contexts", detail, instrumentation)


def _answer(request: Request) -> tuple[Step | None, str | None]:
    """The call of a model that has answered, and the answer as the user got it."""
    candidates = _candidates(request)
    finals = [
        text
        for step in request.of_kind(Kind.CHAIN)
        if not any(outer.kind is Kind.CHAIN for outer in _outer(step))
        for text in [_answer_of_chain(step)]
        if text
    ]
    answering = None
    for step, text in reversed(candidates):
        if any(_same(text, final) for final in finals):
            answering = (step, text)
            break
    answering = answering or (candidates[-1] if candidates else None)
    if answering is None:
        return None, finals[-1] if finals and not _is_only_retrieval(request) else None
    step, text = answering
    for chain in step.chains():
        final = _answer_of_chain(chain)
        if final:
            return step, final
    return step, text


def _is_only_retrieval(request: Request) -> bool:
    """Whether nothing but a chain around a retriever is known, such as a service that only searches."""
    return not request.of_kind(Kind.LLM) and not request.of_kind(Kind.PROMPT) and len(request.of_kind(Kind.CHAIN)) < 2


def _outer(step: Step) -> list[Step]:
    path = []
    while step.parent is not None:
        step = step.parent
        path.append(step)
    return path


def _same(text: str, final: str) -> bool:
    text, final = text.strip(), final.strip()
    return bool(text) and (text in final or (bool(final) and final in text))


def _candidates(request: Request) -> list[tuple[Step, str]]:
    """Calls of models that have answered in text, in the order in which they ended; those in tools if none else."""
    answered = []
    for step in request.of_kind(Kind.LLM):
        if step.retrieval is None:
            text = _text_of(step.span)
            if text and not any(outer.kind is Kind.LLM and _text_of(outer.span) for outer in _outer(step)):
                answered.append((step, text))
    answered.sort(key=lambda pair: (pair[0].span.end, pair[0].span.start))
    return [pair for pair in answered if pair[0].tool is None] or answered


def _text_of(span: Span) -> str | None:
    """The text with which a model has answered; None if it called a tool, or if this is no call of a model."""
    messages = messages_out(span)
    if messages:
        if messages[-1].calls:
            return None
        text = plain_text(last_text(messages, ASSISTANT))
        return text if text is None else _without_sections(text)
    if not any(key in span.attributes for key in _MODEL_MARKS) and not messages_in_list(span):
        return None  # a builder of prompts, which some instrumentations mark as a call of a model
    text = answer_of(value_out(span)) or last_text(_of_value(span), ASSISTANT)
    return None if text is None else _without_sections(text)


def messages_in_list(span: Span) -> bool:
    """Whether a span holds messages to a model, rather than any input."""
    return any(
        key.startswith(("llm.input_messages", "gen_ai.input.messages", "ai.prompt.messages")) for key in span.attributes
    )


def _of_value(span: Span) -> list[Message]:
    value = value_out(span)
    return conversation(value) if isinstance(value, (dict, list)) else []


def _without_sections(text: str) -> str:
    r"""The last section of an answer that is written in sections, as DSPy asks for; the text itself if it is not.

    >>> _without_sections("[[ ## reasoning ## ]]\nBig.\n\n[[ ## answer ## ]]\nParis.\n\n[[ ## completed ## ]]")
    'Paris.'
    """
    parts = _SECTION.split(text)
    sections = [body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True) if name not in _THOUGHTS]
    return next((body for body in reversed(sections) if body), text)


def _answer_of_chain(step: Step) -> str | None:
    text = answer_of(value_out(step.span))
    if text is None and step.span.attributes.keys() & {"gen_ai.output.messages", "gen_ai.completion"}:
        text = last_text(messages_out(step.span), ASSISTANT)
    return text


def _record(
    request: Request, answering: Step | None, answer: str, contexts: Contexts, naming: Naming
) -> dict[str, Any]:
    question = _question(request, answering, contexts)
    root = request.root or request.steps[0]
    head = root if answering is None else (*answering.chains(), answering)[0]
    end = root.span.end if request.root is not None or answering is None else answering.span.end
    turns = _history(request, answering, question, answer)
    record: dict[str, Any] = {
        "at": (end or root.span.start) / 1e9 or None,
        "question": question,
        "contexts": [{"id": one.id, "text": one.text, "score": one.score} for one in contexts.documents],
        "answer": answer,
        "route": _route(request, head, naming),
        "trace_id": root.span.trace_id,
        "metadata": _metadata(request, head, answering, contexts, naming),
    }
    if turns:
        record["history"] = [{"role": str(turn.role), "text": turn.text} for turn in turns]
    return record


def _question(request: Request, answering: Step | None, contexts: Contexts) -> str | None:
    """The question: of the outermost chain, of the prompt's variables, of the retriever, or the user's last message."""
    chains = request.of_kind(Kind.CHAIN) if answering is None else answering.chains()
    for step in chains:
        text = _question_of_chain(step)
        if text:
            return text
    named = {} if answering is None else variables(answering.span.attributes)
    asked = last_text(messages_in(answering.span), USER) if answering is not None else None
    retrieved = [step for step in contexts.steps if step.kind is not Kind.TOOL]
    queries = [text for step in retrieved for text in [_query(step.span)] if text]
    of_prompt = question_among(named)
    if of_prompt:
        return of_prompt
    exact = asked is not None and (not queries or any(_same(asked, query) for query in queries))
    if asked is not None and exact and len(asked) <= 2 * max(map(len, queries), default=len(asked)):
        return question_in(asked) or asked
    return (queries[0] if queries else None) or (asked and (question_in(asked) or asked))


def _question_of_chain(step: Step) -> str | None:
    text = question_of(value_in(step.span))
    if text is None and step.span.attributes.keys() & {"gen_ai.input.messages", "gen_ai.prompt"}:
        text = last_text(messages_in(step.span), USER)
    return text


def _query(span: Span) -> str | None:
    return plain_text(first(span.attributes, _QUERY_KEYS)) or question_of(value_in(span))


def _history(request: Request, answering: Step | None, question: str | None, answer: str) -> tuple[Any, ...]:
    """The turns before the question: logged by a chain, in its messages, or in the messages to the model."""
    chains = request.of_kind(Kind.CHAIN)[:1] if answering is None else answering.chains()
    for step in chains:
        value = decoded(value_in(step.span))
        if isinstance(value, dict):
            turns = history.logged(value, question=question, answer=answer)
            if turns:
                return turns
        turns = _turns(conversation(value), question, answer)
        if turns:
            return turns
    return () if answering is None else _turns(messages_in(answering.span), question, answer)


def _turns(messages: Sequence[Message], question: str | None, answer: str) -> tuple[Any, ...]:
    last = max((index for index, one in enumerate(messages) if one.role == USER and one.text.strip()), default=0)
    before = [
        {"role": one.role, "content": one.text}
        for one in messages[:last]
        if one.role in (USER, ASSISTANT) and one.text.strip() and not one.calls
    ]
    return history.turns(before, question=question, answer=answer) if before else ()


def _route(request: Request, head: Step, naming: Naming) -> str:
    for key in naming.route:
        value = _attribute(request, head, key)
        if isinstance(value, str) and value:
            return value
    return ""


def _attribute(request: Request, head: Step, key: str) -> Any:  # noqa: ANN401  a JSON value is any value
    """An attribute of a span, of another one of the request, or of the first one's process; None if there is none."""
    for step in (head, *request.steps):
        if key in step.span.attributes:
            return step.span.attributes[key]
    return head.span.resource.get(key)


def _metadata(
    request: Request, head: Step, answering: Step | None, contexts: Contexts, naming: Naming
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"span_id": head.span.span_id}
    if answering is not None:
        metadata["answer_span_id"] = answering.span.span_id
        model = first(answering.span.attributes, _MODEL_KEYS)
        if isinstance(model, str):
            metadata["model"] = model
    if len(contexts.steps) > 1:
        metadata["retrievals"] = [step.span.name for step in contexts.steps]
    if request.root is None:
        metadata["root"] = "missing"
    for name, keys in (("session", _SESSION_KEYS), ("canary", _CANARY_KEYS)):
        value = next((one for key in keys if (one := _attribute(request, head, key)) is not None), None)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, (str, int)):
            metadata[name] = value
    for name, key in naming.metadata.items():
        value = _attribute(request, head, key)
        if value is not None:
            metadata[name] = value
    return metadata
