"""The record of a request, in the canonical format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragwatch.formats import history
from ragwatch.formats.traces.answer import conversation, question_of, same_text
from ragwatch.formats.traces.attributes import decoded, first, plain_text
from ragwatch.formats.traces.kinds import Kind
from ragwatch.formats.traces.messages import ASSISTANT, USER, Message, last_text, messages_in, value_in
from ragwatch.formats.traces.prompt_contexts import question_among, question_in, variables
from ragwatch.formats.traces.retrieval import Contexts
from ragwatch.formats.traces.span import EARLIEST
from ragwatch.formats.traces.tree import Request, Step
from ragwatch.model.sample import Turn

_QUERY_KEYS = ("gen_ai.retrieval.query.text", "gen_ai.retrieval.query", "db.vector.query.content", "reranker.query",
               "retrieval.query")  # fmt: skip
_SESSION_KEYS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id",
                 "traceloop.association.properties.session_id", "mlflow.trace.session")  # fmt: skip
_MODEL_KEYS = ("gen_ai.response.model", "llm.model_name", "gen_ai.request.model", "ai.response.model", "ai.model.id")
_CANARY_KEYS = ("ragwatch.canary", "http.request.header.x-ragwatch-canary", "http.request.header.x_ragwatch_canary")


@dataclass(frozen=True, slots=True)
class Naming:
    """Which attributes become fields of a record."""

    route: tuple[str, ...] = ("service.name",)  # attributes that hold the route; the first that the request has
    metadata: Mapping[str, str] = field(default_factory=dict)  # attribute of each field of the metadata

    @property
    def attributes(self) -> frozenset[str]:
        """All attributes of any span that become fields."""
        return frozenset((*self.route, *self.metadata.values(), *_SESSION_KEYS, *_CANARY_KEYS))


def record_of(
    request: Request, answering: Step | None, answer: str, contexts: Contexts, naming: Naming
) -> dict[str, object]:
    """Return the record of a request, still without its id."""
    question = _question(request, answering, contexts)
    root = request.root or request.steps[0]
    head = root if answering is None else (*answering.callers(), answering)[0]
    end = root.span.end if request.root is not None or answering is None else answering.span.end
    at = end or root.span.start
    turns = _history(request, answering, question, answer)
    routes = (_attribute(request, head, key) for key in naming.route)
    record: dict[str, object] = {
        "at": at / 1e9 if at >= EARLIEST else None,
        "question": question,
        "contexts": [one.to_context() for one in contexts.documents],
        "answer": answer,
        "route": next((one for one in routes if isinstance(one, str) and one), ""),
        "trace_id": root.span.trace_id,
        "metadata": _metadata(request, head, answering, contexts, naming),
    }
    if turns:
        record["history"] = [{"role": str(turn.role), "text": turn.text} for turn in turns]
    return record


def _question(request: Request, answering: Step | None, contexts: Contexts) -> str | None:
    """The question: of the outermost chain, of the prompt's variables, of the retriever, or the user's last message."""
    callers = request.of_kind(Kind.CHAIN) if answering is None else answering.callers()
    for step in callers:
        text = question_of(value_in(step.span))
        if text is None and step.span.attributes.keys() & {"gen_ai.input.messages", "gen_ai.prompt"}:
            text = question_of(last_text(messages_in(step.span), USER))
        if text:
            return text
    asked = None if answering is None else last_text(messages_in(answering.span), USER)
    spans = [step.span for step in contexts.steps if step.kind is not Kind.TOOL]
    found_by = (plain_text(first(span.attributes, _QUERY_KEYS)) or question_of(value_in(span)) for span in spans)
    queries = [query for query in found_by if query]
    if answering is not None and (of_prompt := question_among(variables(answering.span.attributes))):
        return of_prompt
    exact = asked is not None and (not queries or any(same_text(asked, query) for query in queries))
    if asked is not None and exact and len(asked) <= 2 * max(map(len, queries), default=len(asked)):
        return question_in(asked) or asked
    return (queries[0] if queries else None) or (asked and (question_in(asked) or asked))


def _history(request: Request, answering: Step | None, question: str | None, answer: str) -> tuple[Turn, ...]:
    """The turns before the question: logged by a chain, in its messages, or in the messages to the model."""
    callers = request.of_kind(Kind.CHAIN)[:1] if answering is None else answering.callers()
    for step in callers:
        value = decoded(value_in(step.span))
        turns = history.logged(value, question=question, answer=answer) if isinstance(value, dict) else ()
        if turns := turns or _turns(conversation(value) or messages_in(step.span), question, answer):
            return turns
    return () if answering is None else _turns(messages_in(answering.span), question, answer)


def _turns(messages: Sequence[Message], question: str | None, answer: str) -> tuple[Turn, ...]:
    last = max((index for index, one in enumerate(messages) if one.role == USER and one.text.strip()), default=0)
    before = [
        {"role": one.role, "content": one.text}
        for one in messages[:last]
        if one.role in (USER, ASSISTANT) and one.text.strip() and not one.calls
    ]
    return history.turns(before, question=question, answer=answer) if before else ()


def _attribute(request: Request, head: Step, key: str) -> object:
    """An attribute of a span, of another one of the request, or of the first one's process; None if there is none."""
    for step in (head, *request.steps):
        if key in step.span.attributes:
            return step.span.attributes[key]
    return head.span.resource.get(key)


def _metadata(
    request: Request, head: Step, answering: Step | None, contexts: Contexts, naming: Naming
) -> dict[str, object]:
    metadata: dict[str, object] = {"span_id": head.span.span_id}
    if answering is not None:
        metadata["answer_span_id"] = answering.span.span_id
        attributes = answering.span.attributes
        named = {"model": first(attributes, _MODEL_KEYS), "response_id": attributes.get("gen_ai.response.id")}
        metadata |= {name: value for name, value in named.items() if isinstance(value, str)}
    steps = list(dict.fromkeys(one.step for one in contexts.documents if one.step))
    if steps:
        metadata["steps"] = " + ".join(steps)
    if request.root is None:
        metadata["root"] = "missing"
    for name, keys in (("session", _SESSION_KEYS), ("canary", _CANARY_KEYS)):
        value = next((one for key in keys if (one := _attribute(request, head, key)) is not None), None)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, (str, int)):
            metadata[name] = value
    configured = {name: _attribute(request, head, key) for name, key in naming.metadata.items()}
    return metadata | {name: value for name, value in configured.items() if value is not None}
