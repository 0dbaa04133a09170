"""Lists of chat messages, `[{"role": "user", "content": "..."}]`, as several libraries log them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_USER_ROLES = frozenset({"user", "human"})
_ROLE_PROMPT = re.compile(r"(?i:you are|you're|act as|your (?:name|role|task|job) is) (?:an? |the |to |[A-Z])")
_INSTRUCTION = re.compile(
    r"(?i)[\s#*\d.)-]*(?:you (?:are|must|should|will|always|never|only|speak|help)|you're|your (?:answers?|replies"
    r"|name|role|task|job|goal|tone)|act|answer|be|please|respond|reply|always|never|do not|don't|if you|if the (?:user"
    r"|question)|when you|when the user|keep|write|help|stay|avoid|today is|current (?:date|time)|knowledge cutoff)\b"
)
_PASSAGES = re.compile(
    r"(?i)\b(?:contexts?|documents?|passages?|excerpts?|sources?|snippets?|articles?|chunks?|facts|information|retrieved"
    r"|results|references|knowledge base|following|below)\b|<[a-z]|\[\d|```"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def content_text(content: object) -> str | None:
    """Return the text of a message's content: the text itself, or its text parts joined; None if there is none.

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
    """Return the messages with one of `roles` (the `type` in LangChain's messages), in order."""
    selected = frozenset(roles)
    if not isinstance(messages, list):
        return []
    return [message for message in messages if isinstance(message, dict) and _role(message) in selected]


def _role(message: dict[str, Any]) -> str | None:
    role = message.get("role") or message.get("type")
    return role if isinstance(role, str) else None


def of_last_turn(messages: object, role: str) -> list[dict[str, Any]]:
    """Return the messages of a role since the last user message, or all of that role if there are none since.

    Each log entry repeats the whole conversation: passages retrieved for earlier questions do not belong to this one.
    """
    turns = with_role(messages, {role, *_USER_ROLES})
    since = max((position for position, message in enumerate(turns, 1) if _role(message) in _USER_ROLES), default=0)
    return turns[since:] or [message for message in turns if _role(message) == role]


def last_question(messages: object) -> str | None:
    """Return the text of the last user message; None if there is none."""
    questions = with_role(messages, _USER_ROLES)
    return content_text(questions[-1].get("content")) if questions else None


def question_text(value: object) -> str | None:
    """Return the text of a question that was logged as text or as a conversation."""
    return value if isinstance(value, str) else last_question(value)


def only_instructs(text: str) -> bool:
    """Return whether a system prompt contains only instructions and no retrieved passages.

    Many services put passages there, in various wordings. The result is therefore true only if every sentence is an
    instruction and nothing hints at passages.

    >>> [only_instructs(text) for text in ("You are a helpful assistant. Be brief.", "You are a bot. Paris is big.")]
    [True, False]
    """
    if not _ROLE_PROMPT.match(text.lstrip()) or _PASSAGES.search(text):
        return False
    return all(_INSTRUCTION.match(sentence) for sentence in _SENTENCE_END.split(text) if sentence.strip())
