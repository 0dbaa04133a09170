r"""Lists of chat messages as several libraries log them, and the turns of a conversation before its question.

| one message                                                            | says                                      |
|------------------------------------------------------------------------|-------------------------------------------|
| `{"role": "user", "content": "..."}`; `text`, `blocks` or parts        | one text                                  |
| `{"type": "human", ...}`, `data` or constructor form (LangChain)       | one text                                  |
| `["user", "..."]` (role and text)                                      | one text                                  |
| `["...", "..."]` (what the user and what the assistant said)           | two texts                                 |
| `"..."`                                                                | one text, of role `other`                 |

As turns, a text such as `Human: ...\nAI: ...` is split at the names of the speakers, and a list that was logged as text
is decoded. Messages without a text and messages of the system and of tools are no turns. Only the last `MAX_TURNS`
turns are kept, the first `MAX_TURN_CHARS` characters of each, and no turn before `MAX_CHARS` characters: the rest is
not stored and not judged.
"""

import re
from collections.abc import Iterator
from types import MappingProxyType

from ragwatch.formats import fields
from ragwatch.model.sample import Role, Turn

MAX_TURNS = 20
MAX_TURN_CHARS = 4_000
MAX_CHARS = 20_000
_SPEAKER = re.compile(r"^(human|user|ai|assistant):[ \t]*", re.IGNORECASE | re.MULTILINE)
_MAX_TRANSCRIPT_CHARS = 200_000
ROLES = MappingProxyType(
    dict.fromkeys(("user", "human", "customer", "humanmessage"), Role.USER)
    | dict.fromkeys(("assistant", "ai", "aimessage", "aimessagechunk"), Role.ASSISTANT)
    | dict.fromkeys(("agent", "bot", "chatbot", "model", "gpt"), Role.ASSISTANT)
)
NO_SPEAKERS = frozenset({"system", "developer", "tool", "function", "systemmessage", "toolmessage"})
_NESTING = frozenset({"kwargs", "data"})
_ROLE_KEYS = ("role", "type", "speaker", "author", "sender", "from")
_TEXT_TYPES = ("text", "output_text", "input_text")
_TEXT_KEYS = ("content", "text", "blocks", "message", "parts")
_ROLE_PROMPT = re.compile(
    r"(?i:you are|you're|act as|your (?:name|role|task|job) is) (?:an? |the |to |[A-Z])"
    r"|(?i:you (?:answer|respond|reply|assist|help|serve|support|work)|answer|respond|reply|help|use)\b"
)
_INSTRUCTION = re.compile(
    r"(?i)[\s#*\d.)-]*(?:you (?:are|must|should|will|always|never|only|speak|help|answer|respond|reply|assist|serve"
    r"|support|work)|you're|your (?:answers?|replies|name|role|task|job|goal|tone)|act|answer|use|be|please|respond"
    r"|reply|always|never|do not|don't|if you|if the (?:user|question)|when you|when the user|keep|write|help|stay"
    r"|avoid|today is|current (?:date|time)|knowledge cutoff)\b"
)
_PASSAGES = re.compile(
    r"(?i)\b(?:contexts?|documents?|passages?|excerpts?|sources?|snippets?|articles?|chunks?|facts|information|retrieved"
    r"|results|references|knowledge base|following|below)\b|<[a-z]|\[\d|```"
)
_OPENED = re.compile(r"[:<\[`\n]")  # what may stand before passages
_CONTENT = re.compile(r"[:\n<>\[\]]")
_SHORT_CHARS = 200
_COMMAND = re.compile(
    r"(?i)\s*(?:you (?:answer|reply|respond|help|assist)|answer|respond|reply|be|please|always|never|do not|don't"
    r"|keep)\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def content_text(content: object) -> str | None:
    """Return the text of a message's content: the text itself, or its text parts joined; None if there is none.

    >>> content_text([{"type": "text", "text": "a "}, {"type": "tool_call", "name": "x"}, {"content": "b"}])
    'a b'
    """
    if isinstance(content, str):
        return content or None
    if isinstance(content, dict):
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    if not isinstance(content, list):
        return None
    texts = []
    for part in content:
        text = part
        if isinstance(part, dict):
            if part.get("type", "text") not in _TEXT_TYPES or part.get("thought"):
                continue
            text = fields.first(part, ("text", "content"))[1]
            text = fields.first(text, ("value", "text"))[1] if isinstance(text, dict) else text
        if isinstance(text, str):
            texts.append(text)
    return "".join(texts) or None


def said(item: object) -> list[tuple[Role, str]] | None:
    """Return what one item of a conversation says, oldest first; None if it is no item of a conversation.

    >>> said({"type": "human", "data": {"content": "Why?"}}), said({"role": "tool", "content": "ten"}), said(3)
    ([(<Role.USER: 'user'>, 'Why?')], [], None)
    """
    if isinstance(item, str):
        return [(Role.OTHER, item)]
    if isinstance(item, dict):
        name, plain = item.get("role"), item.get("content") or item.get("text")
        if type(name) is str and name in ROLES and type(plain) is str and not _NESTING.intersection(item):
            return [(ROLES[name], plain)]  # the usual message, in a third of the time
        held = inner(item)
        role = _speaker(item, held)
        text = None if role is None else content_text(fields.first(held, _TEXT_KEYS)[1])
        return [] if role is None or text is None else [(role, text)]
    if not isinstance(item, list) or len(item) != 2 or not all(isinstance(part, str) for part in item):
        return None
    name = item[0].lower()
    if name in ROLES or name in NO_SPEAKERS:
        return [(ROLES[name], item[1])] if name in ROLES else []
    return [(Role.USER, item[0]), (Role.ASSISTANT, item[1])]


def _speaker(message: dict[str, object], held: dict[str, object]) -> Role | None:
    """Who wrote a message, as it says itself or the part that it holds; None for the system and for tools."""
    for part in (message,) if held is message else (message, held):
        for key in _ROLE_KEYS:
            name = part.get(key)
            name = name.lower() if isinstance(name, str) else ""
            if name in NO_SPEAKERS:
                return None
            if name in ROLES:
                return ROLES[name]
    constructor = message.get("id")
    name = constructor[-1] if isinstance(constructor, list) and constructor else None
    name = name.lower() if isinstance(name, str) else ""
    return None if name in NO_SPEAKERS else ROLES.get(name, Role.OTHER)


def inner(message: dict[str, object]) -> dict[str, object]:
    """Return the part of a message with its content: LangChain nests it in `data`, or in `kwargs` of a constructor."""
    for key in ("kwargs", "data"):
        part = message.get(key)
        if isinstance(part, dict):
            return part
    return message


def role_name(message: dict[str, object]) -> str | None:
    """Return the role of a message as it was logged (the `type` in LangChain's messages), in lower case."""
    role = fields.first(message, _ROLE_KEYS)[1]
    return role.lower() if isinstance(role, str) else None


def is_message(item: object) -> bool:
    """Return whether a value is a message of a conversation, by its role."""
    return isinstance(item, dict) and ("role" in item or role_name(item) in (*ROLES, *NO_SPEAKERS))


def last_asked(messages: object) -> tuple[int, str] | None:
    """Return position and text of the last message of the user that has a text; None if there is none."""
    if not isinstance(messages, list):
        return None
    spoken = ((position, _spoken(messages[position])) for position in range(len(messages) - 1, -1, -1))
    return next(((position, text) for position, (role, text) in spoken if role is Role.USER), None)


def answers(messages: object) -> list[dict[str, object]] | None:
    """Return one record for each answer in a conversation; None if it is none.

    An answer is the last text of the assistant before the next question. A record has `question`, `answer`, `history`
    (the messages before the question), `message` (that of the answer) and `between` (those between the two).

    >>> chat = [{"role": "user", "content": "Why?"}, {"role": "tool", "content": "ten"}, {"role": "ai", "text": "So"}]
    >>> [(one["question"], one["answer"], one["between"]) for one in answers(chat)]
    [('Why?', 'So', [{'role': 'tool', 'content': 'ten'}])]
    """
    if not isinstance(messages, list):
        return None
    spoken = [_spoken(message) for message in messages]
    asked = [place for place, (role, _) in enumerate(spoken) if role is Role.USER]
    records: list[dict[str, object]] = []
    for question, until in zip(asked, [*asked, len(messages)][1:], strict=True):
        answered = [place for place in range(question, until) if spoken[place][0] is Role.ASSISTANT]
        for last in answered[-1:]:
            said_of = {"question": spoken[question][1], "answer": spoken[last][1], "message": messages[last]}
            around = {"history": messages[:question], "between": messages[question + 1 : last]}
            records.append(said_of | around)
    return records


def _spoken(message: object) -> tuple[Role, str]:
    """Who wrote a message, and its text; `other` and empty where that is not one person."""
    match said(message):
        case [(role, text)] if text.strip():
            return role, text
    return Role.OTHER, ""


def question_text(value: object) -> str | None:
    """Return the text of a question that was logged as text, as a message or as a conversation."""
    if isinstance(value, str):
        return value
    asked = last_asked([value] if isinstance(value, dict) else value)
    return None if asked is None else asked[1]


def only_instructs(text: str) -> bool:
    """Return whether a system prompt contains only instructions and no retrieved passages.

    Many services put passages there, in various wordings. The result is therefore true only if every sentence is an
    instruction and nothing hints at passages.
    """
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    if len(text) < _SHORT_CHARS and not _CONTENT.search(text.strip()) and all(map(_COMMAND.match, sentences)):
        return True
    if not _ROLE_PROMPT.match(text.lstrip()) or (_PASSAGES.search(text) and _OPENED.search(text)):
        return False
    return all(map(_INSTRUCTION.match, sentences))


def turns(
    value: object, path: str | None = None, *, question: str | None = None, answer: str | None = None
) -> tuple[Turn, ...]:
    """Return the last turns of a conversation, oldest first.

    The question and the answer are no part of it: where the list ends with them, as it does if it was logged after the
    answer, they are left out. What is not readable is wrong_type; without a `path` it is left out.
    """
    if value == [] or (path is None and not value):
        return ()
    kept: list[Turn] = []
    free = MAX_CHARS
    ends = [(Role.ASSISTANT, answer), (Role.USER, question)]
    for turn in _newest_first(value, path):
        while ends and ends[0][0] is not turn.role:
            ends.pop(0)
        end = ends[0][1] if ends and not kept else None
        if end is not None and turn.text.strip() == end.strip():
            ends.pop(0)
            continue
        free -= min(len(turn.text), MAX_TURN_CHARS)
        if free < 0:
            break
        kept.append(turn if len(turn.text) <= MAX_TURN_CHARS else turn._replace(text=turn.text[:MAX_TURN_CHARS]))
        if len(kept) == MAX_TURNS:
            break
    return tuple(reversed(kept))


def logged_turns(record: object, question: str | None, answer: str) -> tuple[Turn, ...]:
    """Return the turns under one of the usual names in an object; none where they are not readable."""
    if not isinstance(record, dict):
        return ()
    for key in ("chat_history", "history"):
        if value := fields.embedded(record.get(key)):
            return turns(value, question=question, answer=answer)
    return ()


def _newest_first(value: object, path: str | None) -> Iterator[Turn]:
    items = fields.embedded(value)
    if isinstance(value, str) and not isinstance(items, list):
        yield from reversed(_transcript(value))
        return
    if not isinstance(items, list):
        if path is not None:
            raise fields.wrong(path, "a list of turns", value)
        return
    for position in range(len(items) - 1, -1, -1):
        texts = said(items[position])
        if texts is None and path is not None:
            raise fields.wrong(f"{path}[{position}]", "an object with role and text", items[position])
        yield from (Turn(role, text) for role, text in reversed(texts or ()) if text.strip())


def _transcript(text: str) -> list[Turn]:
    """Split a transcript at the names of its speakers; a text without them is one turn of an unknown speaker."""
    text = text[-_MAX_TRANSCRIPT_CHARS:]
    names = list(_SPEAKER.finditer(text))
    if not names:
        return [Turn(Role.OTHER, text.strip())] if text.strip() else []
    ends = [*(name.start() for name in names[1:]), len(text)]
    spoken = [(ROLES[name[1].lower()], text[name.end() : end].strip()) for name, end in zip(names, ends, strict=True)]
    return [Turn(role, words) for role, words in spoken if words]
