"""The answer of a request: which call of a model has answered, and what the user got.

Also the question and the answer inside of inputs and outputs of functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ragwatch.formats.traces.attributes import decoded, first, inside, is_torn, plain_text
from ragwatch.formats.traces.kinds import Kind
from ragwatch.formats.traces.messages import ASSISTANT, USER, Message, last_text, messages_of, messages_out, value_out
from ragwatch.formats.traces.span import Span
from ragwatch.formats.traces.tree import Request, Step

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
_MAX_DEPTH = 4
_THOUGHTS = frozenset({"reasoning", "rationale", "completed"})


def answer_in(request: Request) -> tuple[Step | None, str | None]:
    """The call of a model that has answered, and the answer as the user got it."""
    candidates = _candidates(request)
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


def _candidates(request: Request) -> list[tuple[Step, str]]:
    """Calls of models that have answered in text, in the order in which they ended; those in tools if none else."""
    answered = []
    for step in request.of_kind(Kind.LLM):
        if step.retrieval is None:
            text = _text_of(step.span)
            if text and not any(outer.kind is Kind.LLM and _text_of(outer.span) for outer in step.outer()):
                answered.append((step, text))
    answered = answered or [
        (step, text)
        for step in request.of_kind(Kind.RETRIEVER)
        if step.retrieval is None and first(step.span.attributes, _MODELS) is not None
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
        return text if text is None else _without_sections(text)
    if not any(key in _MODEL_MARKS or key.startswith(_PROMPTS) for key in span.attributes):
        return None  # a builder of prompts, which some instrumentations mark as a call of a model
    value = value_out(span)
    text = answer_of(value) or (last_text(conversation(value), ASSISTANT) if isinstance(value, (dict, list)) else None)
    return None if text is None else _without_sections(text)


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


def question_of(value: object) -> str | None:
    """Return the question in the input of a function: the text, the text under a known key, or the last of the user.

    >>> question_of({"query_bundle": {"query_str": "Why?", "embedding": None}}), question_of({"k": 3})
    ('Why?', None)
    """
    return _text_in(value, USER, _MAX_DEPTH)


def answer_of(value: object) -> str | None:
    """Return the answer in the output of a function; None if there is none.

    >>> answer_of({"response": "Paris.", "source_nodes": []}), answer_of({"documents": ["d"]})
    ('Paris.', None)
    """
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
