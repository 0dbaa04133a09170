"""What a conversation with a model says of the passages, the question and the answer: functions of expressions.

Passages are looked for in this order: blocks of search results and documents, and what tools returned, since the last
question, else before it; what marks cut out of the prompt of the user, else out of that of the system. Instructions
without marked passages are no context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from ragwatch.core.sample import Role
from ragwatch.formats import fields
from ragwatch.formats.history import before_question
from ragwatch.formats.messages import content_text, inner, last_asked, said, with_role
from ragwatch.formats.traces.documents import Document, documents_in
from ragwatch.formats.traces.prompt_contexts import of_messages, question_in

_TOOLS = ("tool", "function")
_CONTENTS = ("content", "response", "output", "result", "json", "text")


def documents(value: object) -> object:
    """Return a list of `{id, text, score}` from documents under any usual names; null if they are none.

    >>> documents([{"pageContent": "Tea is green.", "metadata": {"id": "d1"}}])
    [{'id': 'd1', 'text': 'Tea is green.', 'score': None}]
    """
    value = fields.embedded(value)
    some = documents_in([value] if isinstance(value, str) else value)
    if isinstance(value, list) and not (some and any(one.text for one in some)):
        some = documents_in([_uncapitalised(item) for item in value])
    return None if some is None else _rows(some)


def _uncapitalised(item: object) -> object:
    """An object of C#, whose keys begin with a capital letter, in camel case."""
    return {key[:1].lower() + key[1:]: part for key, part in item.items()} if isinstance(item, dict) else item


def distinct(value: object) -> object:
    """Return a list without items that are equal to an earlier one; null for what is no list.

    >>> distinct([{"a": 1}, {"b": 1}, {"a": 1}])
    [{'a': 1}, {'b': 1}]
    """
    if not isinstance(value, list):
        return None
    kept: dict[bytes, object] = {}
    for item in value:
        kept.setdefault(orjson.dumps(item, option=orjson.OPT_SORT_KEYS), item)
    return list(kept.values())


def message_text(value: object) -> str | None:
    """Return the text of a message or of its content; null if it has none.

    >>> message_text([{"type": "text", "text": "Tea "}, {"type": "tool_use"}, {"text": "is green."}])
    'Tea is green.'
    """
    if isinstance(value, dict):
        value = fields.first(inner(value), ("content", "_content", "text", "parts"))[1]
    return content_text(value)


def question_of(value: object) -> str | None:
    r"""Return the last question of a conversation; of a prompt with marked passages, the question in it.

    >>> question_of([{"role": "user", "content": "Context:\n[1] Tea.\n[2] Milk.\n\nQuestion: Why?"}])
    'Why?'
    """
    asked = (0, value) if isinstance(value, str) else last_asked([value] if isinstance(value, dict) else value)
    if asked is None:
        return None
    text = asked[1]
    labelled = question_in(text) if "\n" in text else None
    return labelled if labelled or (_may_hold_passages(text) and of_messages([text])) else text


def answer_of(messages: object) -> str | None:
    """Return the last text of the assistant behind the last question of a conversation; null if there is none."""
    asked = last_asked(messages)
    behind = messages[asked[0] :] if asked is not None and isinstance(messages, list) else ()
    texts = [text for item in behind for role, text in said(item) or () if role is Role.ASSISTANT and text.strip()]
    return texts[-1] if texts else None


def retrieved(messages: object, *, system: bool = True) -> object:
    """Return a list of `{id, text, score}` with the passages in a conversation; null if it holds none.

    Without `system`, prompts of the system are left to the caller.

    >>> retrieved([{"role": "user", "content": "Why?"}, {"role": "tool", "content": '["Tea is green."]'}])
    [{'id': None, 'text': 'Tea is green.', 'score': None}]
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        return None
    asked = last_asked(messages)
    start = 0 if asked is None else asked[0]
    for part in (messages[start:], messages[:start]):
        read = (block for message in part if isinstance(message, dict) for block in _of_message(message))
        blocks = [block for block in read if block is not None]
        if blocks:
            return _rows([document for block in blocks for document in block])
    prompts = [] if asked is None else [asked[1]]
    for role in ("system", "developer") if system else ():
        prompts += filter(None, (content_text(message.get("content")) for message in with_role(messages, role)))
    cut = of_messages([text for text in prompts if _may_hold_passages(text)])
    return None if cut is None else _rows(cut)


def turns_before(messages: object) -> object:
    """Return the turns of a conversation before its last question.

    >>> turns_before([{"role": "user", "content": "Hello"}, {"role": "user", "content": "Why?"}])
    [{'role': 'user', 'text': 'Hello'}]
    """
    return [{"role": str(turn.role), "text": turn.text} for turn in before_question(messages)]


def _may_hold_passages(text: str) -> bool:
    """Whether a text may be a prompt: a message without these signs has no marks."""
    return "\n" in text or ":" in text or "</" in text


def _of_message(message: dict[str, object]) -> Iterator[Sequence[Document] | None]:
    content = inner(message).get("content")
    if with_role([message], _TOOLS[0]) or with_role([message], _TOOLS[1]):
        yield _returned(content)
    elif isinstance(content, list):
        yield from (_block(part) for part in content if isinstance(part, dict) and _is_retrieved(part))


def _is_retrieved(part: dict[str, object]) -> bool:
    kind = str(part.get("type", ""))
    return (
        kind in ("search_result", "document") or kind.endswith(("_result", "_response")) or _converse(part) is not None
    )


def _converse(part: dict[str, object]) -> object:
    """The result of a tool or the document in a block of Bedrock's Converse, whose key is its type."""
    return fields.first(part, ("toolResult", "document"))[1]


def _block(part: dict[str, object]) -> Sequence[Document] | None:
    """The documents in a block of a message; None if it cannot be read."""
    block = _converse(part)
    block = block if isinstance(block, dict) else part
    source, kind = block.get("source"), part.get("type")
    if kind == "search_result":
        text = content_text(block.get("content"))
        return [Document(text, source if isinstance(source, str) else None)] if text else None
    if isinstance(source, dict):
        text = content_text(fields.first(source, ("data", "text", "content"))[1])
        name = fields.first(block, ("title", "name"))[1]
        return (
            [Document(text, name if isinstance(name, str) else None)] if text and source.get("type") != "base64" else []
        )
    return _returned(fields.first(block, _CONTENTS)[1])


def _returned(value: object) -> Sequence[Document] | None:
    """What a tool returned: documents, blocks of them, or a text; None if it cannot be read."""
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, dict)]
        if any(map(_is_retrieved, parts)):
            return [one for part in parts for one in _block(part) or ()]
        held = [part["json"] for part in parts if "json" in part]
        typed = all(part.get("type", "text") == "text" and part.keys() <= {"type", "text"} for part in parts)
        value = held[0] if held else content_text(value) if typed and parts else value
    value = fields.embedded(value)
    if isinstance(value, str):
        return [Document(value)] if value.strip() else []
    some = documents_in(value)
    return None if some is None or (some and not any(one.text for one in some)) else [one for one in some if one.text]


def _rows(some: Sequence[Document]) -> list[dict[str, object]]:
    return [{"id": one.id, "text": one.text, "score": one.score} for one in some]
