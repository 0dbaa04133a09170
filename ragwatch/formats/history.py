r"""The turns of a conversation before its question, from the spellings in which services log them.

The items of a list are those of `messages`. A text such as `Human: ...\nAI: ...` is split at the names of the speakers,
and a list that was logged as text is decoded. Messages without a text and messages of the system and of tools are no
turns. Only the last `MAX_TURNS` turns are kept, the first `MAX_TURN_CHARS` characters of each, and no turn before
`MAX_CHARS` characters: the rest is not stored and not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragwatch.formats import fields
from ragwatch.formats.messages import ROLES, last_asked, said
from ragwatch.formats.shape import Record
from ragwatch.model.sample import Role, Turn

MAX_TURNS = 20
MAX_TURN_CHARS = 4_000
MAX_CHARS = 20_000
KEYS = ("chat_history", "history")

_SPEAKER = re.compile(r"^(human|user|ai|assistant):[ \t]*", re.IGNORECASE | re.MULTILINE)
_MAX_TRANSCRIPT_CHARS = 200_000


def turns(
    value: object, path: str | None = None, *, question: str | None = None, answer: str | None = None
) -> tuple[Turn, ...]:
    """Return the last turns of a conversation, oldest first.

    The question and the answer are no part of it: where the list ends with them, as it does if it was logged after the
    answer, they are left out.

    Raises:
        FormatError: wrong_type, with the path; without one what is not readable is left out.

    >>> turns([["user", "How much is a ticket?"], ["assistant", "Ten euros."], ["user", "Why?"]], question="Why?")[-1]
    Turn(role=<Role.ASSISTANT: 'assistant'>, text='Ten euros.')
    """
    if value == [] or (path is None and not value):
        return ()
    kept: list[Turn] = []
    free = MAX_CHARS
    ends = [(Role.ASSISTANT, answer), (Role.USER, question)]
    for turn in _newest_first(value, path):
        while ends and ends[0][0] is not turn.role:
            ends.pop(0)
        if not kept and ends and _same(turn.text, ends[0][1]):
            ends.pop(0)
            continue
        free -= min(len(turn.text), MAX_TURN_CHARS)
        if free < 0:
            break
        kept.append(turn if len(turn.text) <= MAX_TURN_CHARS else turn._replace(text=turn.text[:MAX_TURN_CHARS]))
        if len(kept) == MAX_TURNS:
            break
    return tuple(reversed(kept))


def logged(*records: Record, question: str | None, answer: str) -> tuple[Turn, ...]:
    """Return the turns under the first of `KEYS` that one of the records has; none where it is not readable."""
    for record in records:
        for key in KEYS:
            value = fields.embedded(record.get(key))
            if value:
                return turns(value, question=question, answer=answer)
    return ()


def before_question(messages: object) -> tuple[Turn, ...]:
    """Return the turns before the last message of the user with a text, in a conversation that contains the question.

    >>> before_question([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "tool"}])
    (Turn(role=<Role.USER: 'user'>, text='a'),)
    """
    asked = last_asked(messages)
    return turns(messages[: asked[0]]) if asked is not None and isinstance(messages, list) else ()


def _same(text: str, other: str | None) -> bool:
    return other is not None and text.strip() == other.strip()


def _newest_first(value: object, path: str | None) -> Iterator[Turn]:
    if isinstance(value, str):
        decoded = fields.embedded(value)
        if not isinstance(decoded, list):
            yield from reversed(_transcript(value))
            return
        value = decoded
    if not isinstance(value, list):
        if path is not None:
            raise fields.wrong(path, "a list of turns", value)
        return
    for position in range(len(value) - 1, -1, -1):
        texts = said(value[position])
        if texts is None:
            if path is not None:
                raise fields.wrong(f"{path}[{position}]", "an object with role and text", value[position])
            continue
        for role, text in reversed(texts):
            if text.strip():
                yield Turn(role, text)


def _transcript(text: str) -> list[Turn]:
    """Split a transcript at the names of its speakers; a text without them is one turn of an unknown speaker."""
    text = text[-_MAX_TRANSCRIPT_CHARS:]
    names = list(_SPEAKER.finditer(text))
    if not names:
        return [Turn(Role.OTHER, text.strip())] if text.strip() else []
    ends = [*(name.start() for name in names[1:]), len(text)]
    spoken = [(ROLES[name[1].lower()], text[name.end() : end].strip()) for name, end in zip(names, ends, strict=True)]
    return [Turn(role, words) for role, words in spoken if words]
