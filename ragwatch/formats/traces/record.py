"""The record of a request, in the canonical format.

The answer is that of the call of a model that the user got. Question, answer and history may stand inside of inputs and
outputs of functions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from ragwatch.formats.messages import logged_turns, turns
from ragwatch.formats.traces.documents import Document
from ragwatch.formats.traces.flow import builds_on, position_in, prompt_of
from ragwatch.formats.traces.messages import (
    ASSISTANT,
    USER,
    Message,
    last_text,
    messages_in,
    messages_of,
    messages_out,
    value_in,
    value_out,
)
from ragwatch.formats.traces.prompt_contexts import question_among, question_in, question_without_passages, variables
from ragwatch.formats.traces.retrieval import Contexts
from ragwatch.formats.traces.span import EARLIEST, Span, decoded, first, inside, is_torn, plain_text
from ragwatch.formats.traces.steps import Kind, Request, Step
from ragwatch.model.sample import Turn

_MODELS = ("llm.model_name", "gen_ai.request.model", "gen_ai.response.model")
_MODEL_MARKS = ("llm.model_name", "llm.invocation_parameters", "gen_ai.request.model", "gen_ai.response.model",
                "llm.prompts", "llm.token_count.total", "gen_ai.usage.input_tokens", "ai.model.id",
                "langfuse.observation.model.name", "gen_ai.operation.name", "mlflow.spanType",
                "langfuse.observation.type", "langsmith.span.kind", "haystack.component.type")  # fmt: skip
_PROMPTS = ("llm.input_messages", "gen_ai.input.messages", "ai.prompt.messages")
_SECTION = re.compile(r"\[\[ ## (\w+) ## \]\]")
QUESTION_KEYS = ("question", "query", "query_str", "user_input", "user_query", "user_question", "input", "user_message",
                 "user_prompt", "str_or_query_bundle", "query_bundle", "prompt", "message", "user_msg", "text", "q",
                 "topic", "task")  # fmt: skip
_ANSWER_KEYS = ("answer", "response", "final_answer", "final_output", "output_text", "result", "output", "reply",
               "completion", "generation", "text", "content", "raw", "response_text", "final_response")  # fmt: skip
_MESSAGE_KEYS = ("messages", "chat_history", "contents", "new_message")
_PLACES: Mapping[str, tuple[tuple[str, ...], tuple[type, ...], tuple[str, ...], tuple[str, ...]]] = {
    USER: (QUESTION_KEYS, (str, dict, list), _MESSAGE_KEYS, ("inputs", "args", "kwargs")),
    ASSISTANT: (
        _ANSWER_KEYS,
        (str, dict),
        (*_MESSAGE_KEYS, "choices", "generations", "replies"),
        ("data", "outputs", "return_value", "value", "_store"),
    ),
}
"""By who said a text: keys and types of the text, keys of lists of messages, and keys of what wraps them."""
Answer = tuple[Step, str]
"""A call of a model, and the text with which it has answered."""
_MAX_DEPTH = 4
_THOUGHTS = frozenset({"reasoning", "rationale", "completed"})


def answer_in(request: Request, candidates: Sequence[Answer]) -> tuple[Step | None, str | None]:
    """The call of a model that has answered, and the answer as the user got it."""
    outermost = (step for step in request.of_kind(Kind.CHAIN) if not step.callers())
    finals = [text for step in outermost if (text := _answer_of_chain(step))]
    if not candidates:
        return None, finals[-1] if finals else None
    given = (pair for pair in reversed(candidates) if any(same_text(pair[1], final) for final in finals))
    step, text = next(given, candidates[-1])
    return step, next((final for chain in step.callers() if (final := _answer_of_chain(chain))), text)


def same_text(text: str, final: str) -> bool:
    """Return whether one of two texts contains the other, apart from white space around them."""
    text, final = text.strip(), final.strip()
    return bool(text) and (text in final or (bool(final) and final in text))


def unclear(answering: Step, candidates: Sequence[Answer], documents: Sequence[Document]) -> bool:
    """Whether the last call may have graded, named or summarised the answer of one before it, or built on it.

    So it is if no chain around both says what the user got, and the call before was given the documents, but the last
    one was not, or was given the answer of that call too.
    """
    said = {id(step) for step in answering.callers() if _answer_of_chain(step)}
    others = [pair for pair in candidates if pair[0] is not answering and said.isdisjoint(map(id, pair[0].callers()))]
    prompt = prompt_of(answering.span) if others else ""
    grounded = any(position_in(prompt, one.text) >= 0 for one in documents)
    return any(
        (not grounded or builds_on(prompt, text)) and any(position_in(earlier, one.text) >= 0 for one in documents)
        for step, text in others
        for earlier in [prompt_of(step.span)]
    )


def several_texts(answering: Step) -> bool:
    """Whether a call ends with several texts and no chain around it says which of them the user got."""
    if any(_answer_of_chain(step) for step in answering.callers()):
        return False
    newest = reversed(messages_out(answering.span))
    said = takewhile(lambda message: message.role == ASSISTANT and not message.calls, newest)
    return len({text for message in said if (text := message.text.strip())}) > 1


def several_turns(request: Request, answering: Step, candidates: Sequence[Answer]) -> bool:
    """Whether another chain has retrieved and answered too, and no chain around both says what the user got."""
    own = answering.callers()
    if own and _answer_of_chain(own[0]):
        return False
    others = {chain for step, _ in candidates for chain in step.callers() if chain not in own}
    retrievers = request.of_kind(Kind.RETRIEVER, Kind.RERANKER)
    return any(_answer_of_chain(chain) and any(chain in step.callers() for step in retrievers) for chain in others)


def candidates_of(request: Request) -> list[Answer]:
    """Calls of models that have answered in text, in the order in which they ended; those in tools if none else."""
    answered = []
    for step in request.of_kind(Kind.LLM):
        if step.retrieval is None and not step.span.failed:
            text = _text_of(step.span)
            if text and not any(outer.kind is Kind.LLM and _text_of(outer.span) for outer in step.outer()):
                answered.append((step, text))
    answered = answered or [
        (step, text)
        for step in request.of_kind(Kind.RETRIEVER)
        if step.retrieval is None and not step.span.failed and first(step.span.attributes, _MODELS) is not None
        for text in [plain_text(value_out(step.span))]  # it retrieves and generates in one call
        if text
    ]
    answered.sort(key=lambda pair: (pair[0].span.end, pair[0].span.start))
    return [pair for pair in answered if pair[0].tool is None] or answered


def _text_of(span: Span) -> str | None:
    """The text with which a model has answered; None if it called a tool, or if this is no call of a model."""
    messages = messages_out(span)
    if messages:
        if messages[-1].calls:
            return None
        text = plain_text(last_text(messages, ASSISTANT))
        return text if text is None else _answer_of_text(text)
    if not any(key in _MODEL_MARKS or key.startswith(_PROMPTS) for key in span.attributes):
        return None  # a builder of prompts, which some instrumentations mark as a call of a model
    value = value_out(span)
    text = answer_of(value) or (last_text(conversation(value), ASSISTANT) if isinstance(value, (dict, list)) else None)
    return None if text is None else _answer_of_text(text)


def _answer_of_text(text: str) -> str | None:
    """The answer in a text: in an object in JSON, or the last of the sections that DSPy asks for; else the text."""
    value = decoded(text)
    if isinstance(value, (dict, list)):
        return answer_of(value) if isinstance(value, dict) else None
    parts = _SECTION.split(text)
    sections = [body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True) if name not in _THOUGHTS]
    return next((body for body in reversed(sections) if body), text)


def _answer_of_chain(step: Step) -> str | None:
    if step.span.failed:
        return None
    text = answer_of(value_out(step.span))
    if text is None and step.span.attributes.keys() & {"gen_ai.output.messages", "gen_ai.completion"}:
        text = last_text(messages_out(step.span), ASSISTANT)
    return text


def question_of(value: object) -> str | None:
    """Return the question in the input of a function: the text, the text under a known key, or the last of the user."""
    return _text_in(value, USER, _MAX_DEPTH)


def answer_of(value: object) -> str | None:
    """Return the answer in the output of a function; None if there is none."""
    return _text_in(value, ASSISTANT, _MAX_DEPTH)


def _text_in(value: object, role: str, depth: int) -> str | None:
    value = decoded(value)
    text = None if is_torn(value) else plain_text(value)
    if text is not None or depth == 0:
        return text
    if isinstance(value, list):
        return last_text(messages_of(value, ""), role)
    if not isinstance(value, dict):
        return None
    keys, kinds, lists, envelopes = _PLACES[role]
    for key in keys:
        part = decoded(value[key]) if key in value else None
        if isinstance(part, kinds) and (text := _text_in(part, role, depth - 1)) is not None:
            return text
    messages = inside(value, lists)
    if messages is not None and (role == ASSISTANT or conversation(value)):
        return last_text(messages_of(decoded(messages), role), role)
    envelope = inside(value, envelopes)
    return _text_in(envelope, role, depth - 1) if isinstance(envelope, (dict, list)) else None


def conversation(value: object) -> list[Message]:
    """Return the messages in the input or output of a function, oldest first; empty if it holds none."""
    value = decoded(value)
    messages = value if isinstance(value, list) else decoded(inside(value, _MESSAGE_KEYS))
    return [one for one in messages_of(messages, "" if messages is value else USER) if one.role]


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
    before = _history(request, answering, question, answer)
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
    if before:
        record["history"] = [{"role": str(turn.role), "text": turn.text} for turn in before]
    return record


def _question(request: Request, answering: Step | None, contexts: Contexts) -> str | None:
    """The question: of the outermost chain, of the prompt's variables, of the retriever, or the user's last message."""
    callers = request.of_kind(Kind.CHAIN) if answering is None else answering.callers()
    for step in callers:
        text = question_of(value_in(step.span))
        if text is None and step.span.attributes.keys() & {"gen_ai.input.messages", "gen_ai.prompt"}:
            text = question_of(last_text(messages_in(step.span), USER))
        if text and (text := question_without_passages(text, contexts.documents)):
            return text
    asked = None if answering is None else last_text(messages_in(answering.span), USER)
    steps = contexts.steps or request.of_kind(Kind.RETRIEVER, Kind.RERANKER)
    spans = [step.span for step in steps if step.kind in (Kind.RETRIEVER, Kind.RERANKER)]
    found_by = (plain_text(first(span.attributes, _QUERY_KEYS)) or question_of(value_in(span)) for span in spans)
    queries = [query for query in found_by if query]
    if answering is not None and (of_prompt := question_among(variables(answering.span.attributes))):
        return of_prompt
    bare = asked and question_without_passages(asked, contexts.documents)
    if bare is None or bare != asked:
        return bare or (queries[0] if queries else None)
    inside_it = [query for query in queries if same_text(bare, query)]
    is_short = not inside_it or len(bare) <= 2 * max(map(len, inside_it))
    return question_in(bare) or (bare if is_short else inside_it[0])


def _history(request: Request, answering: Step | None, question: str | None, answer: str) -> tuple[Turn, ...]:
    """The turns before the question: logged by a chain, in its messages, or in the messages to the model."""
    callers = request.of_kind(Kind.CHAIN)[:1] if answering is None else answering.callers()
    for step in callers:
        value = decoded(value_in(step.span))
        if before := logged_turns(value, question, answer) or _turns(
            conversation(value) or messages_in(step.span), question, answer
        ):
            return before
    return () if answering is None else _turns(messages_in(answering.span), question, answer)


def _turns(messages: Sequence[Message], question: str | None, answer: str) -> tuple[Turn, ...]:
    last = max((index for index, one in enumerate(messages) if one.role == USER and one.text.strip()), default=0)
    before = [
        {"role": one.role, "content": one.text}
        for one in messages[:last]
        if one.role in (USER, ASSISTANT) and one.text.strip() and not one.calls
    ]
    return turns(before, question=question, answer=answer) if before else ()


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
