"""Question and answer inside of inputs and outputs of functions."""

from __future__ import annotations

from ragwatch.formats.traces.attributes import decoded, inside, is_torn, plain_text
from ragwatch.formats.traces.messages import ASSISTANT, USER, Message, last_text, messages_of

QUESTION_KEYS = ("question", "query", "query_str", "user_input", "user_query", "user_question", "input", "user_message",
                 "user_prompt", "str_or_query_bundle", "query_bundle", "prompt", "message", "user_msg", "text", "q",
                 "topic", "task")  # fmt: skip
ANSWER_KEYS = ("answer", "response", "final_answer", "final_output", "output_text", "result", "output", "reply",
               "completion", "generation", "text", "content", "raw", "response_text", "final_response")  # fmt: skip
_ENVELOPES = ("data", "outputs", "return_value", "value", "_store")
_MESSAGE_KEYS = ("messages", "chat_history", "contents", "new_message")
_MAX_DEPTH = 4


def question_of(value: object, depth: int = _MAX_DEPTH) -> str | None:
    """Return the question in the input of a function: the text, the text under a known key, or the last of the user.

    >>> question_of({"query_bundle": {"query_str": "Why?", "embedding": None}}), question_of({"k": 3})
    ('Why?', None)
    """
    value = decoded(value)
    text = None if is_torn(value) else plain_text(value)
    if text is not None or depth == 0:
        return text
    if isinstance(value, list):
        return last_text(messages_of(value, ""), USER)
    if not isinstance(value, dict):
        return None
    for key in QUESTION_KEYS:
        part = decoded(value[key]) if key in value else None
        if isinstance(part, (str, dict, list)):
            text = question_of(part, depth - 1)
            if text is not None:
                return text
    messages = conversation(value)
    if messages:
        return last_text(messages, USER)
    envelope = inside(value, ("inputs", "args", "kwargs"))
    return question_of(envelope, depth - 1) if isinstance(envelope, (dict, list)) else None


def conversation(value: object) -> list[Message]:
    """Return the messages in the input or output of a function, oldest first; empty if it holds none."""
    value = decoded(value)
    if isinstance(value, list):
        return [one for one in messages_of(value, "") if one.role]
    messages = inside(value, _MESSAGE_KEYS)
    return [one for one in messages_of(decoded(messages), USER) if one.role] if messages is not None else []


def answer_of(value: object, depth: int = _MAX_DEPTH) -> str | None:
    """Return the answer in the output of a function; None if there is none.

    >>> answer_of({"response": "Paris.", "source_nodes": []}), answer_of({"documents": ["d"]})
    ('Paris.', None)
    """
    value = decoded(value)
    text = None if is_torn(value) else plain_text(value)
    if text is not None or depth == 0:
        return text
    if isinstance(value, list):
        return last_text(messages_of(value, ""), ASSISTANT)
    if not isinstance(value, dict):
        return None
    for key in ANSWER_KEYS:
        part = decoded(value[key]) if key in value else None
        if isinstance(part, (str, dict)):
            text = answer_of(part, depth - 1)
            if text is not None:
                return text
    messages = inside(value, (*_MESSAGE_KEYS, "choices", "generations", "replies"))
    if messages is not None:
        return last_text(messages_of(decoded(messages), ASSISTANT), ASSISTANT)
    envelope = inside(value, _ENVELOPES)
    return answer_of(envelope, depth - 1) if isinstance(envelope, (dict, list)) else None
