"""Lists of chat messages: `[{"role": "user", "content": "..."}]`, in the spellings of several libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_ASKING = frozenset({"user", "human"})
_ROLE = re.compile(r"(?i:you are|you're|act as|your (?:name|role|task|job) is) (?:an? |the |to |[A-Z])")
_ORDER = re.compile(
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
    return [each for each in messages if isinstance(each, dict) and _role(each) in wanted]


def _role(message: dict[str, Any]) -> str | None:
    found = message.get("role") or message.get("type")
    return found if isinstance(found, str) else None


def of_last_turn(messages: object, role: str) -> list[dict[str, Any]]:
    """The messages of a role since a person wrote last, or all of that role where there are none since.

    A conversation is logged whole each time: what was looked up for an earlier question is no retrieval for this one.
    """
    turns = with_role(messages, {role, *_ASKING})
    since = max((at for at, each in enumerate(turns, 1) if _role(each) in _ASKING), default=0)
    return turns[since:] or [each for each in turns if _role(each) == role]


def last_question(messages: object) -> str | None:
    """The text of the last message that a person wrote; None when there is none."""
    asked = with_role(messages, _ASKING)
    return content_text(asked[-1].get("content")) if asked else None


def question_text(value: object) -> str | None:
    """A question that was logged as text or as the conversation that led to it."""
    return value if isinstance(value, str) else last_question(value)


def only_instructs(text: str) -> bool:
    """Whether all of a system prompt tells the model who it is and what to do: nothing was retrieved for it.

    Many services put passages there, in words of their own. So this is said only where every sentence is an order, and
    nothing hints at passages.

    >>> [only_instructs(each) for each in ("You are a helpful assistant. Be brief.", "You are a bot. Paris is big.")]
    [True, False]
    """
    if not _ROLE.match(text.lstrip()) or _PASSAGES.search(text):
        return False
    return all(_ORDER.match(each) for each in _SENTENCE_END.split(text) if each.strip())
