"""Lists of chat messages: `[{"role": "user", "content": "..."}]`, in the spellings of several libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_ASKING = frozenset({"user", "human"})


def content_text(content: object) -> str | None:
    """The text of a message's content: the text itself, or its text parts joined; None when there is none.

    >>> content_text([{"type": "text", "text": "a "}, {"type": "image_url"}, {"type": "input_text", "text": "b"}])
    'a b'
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in content]
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else None


def with_role(messages: object, roles: Iterable[str]) -> list[dict[str, Any]]:
    """The messages whose role (or, in LangChain's spelling, type) is one of `roles`, in order."""
    wanted = frozenset(roles)
    if not isinstance(messages, list):
        return []
    return [m for m in messages if isinstance(m, dict) and (m.get("role") or m.get("type")) in wanted]


def last_question(messages: object) -> str | None:
    """The text of the last message that a person wrote; None when there is none."""
    asked = with_role(messages, _ASKING)
    return content_text(asked[-1].get("content")) if asked else None


def question_text(value: object) -> str | None:
    """A question that was logged as text or as the conversation that led to it."""
    return value if isinstance(value, str) else last_question(value)
