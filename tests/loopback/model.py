"""The model: a prompt, and the schema its reply must have -> the text of the reply.

The reply is cut to the schema as constrained decoding would do it, or spoilt: it parses, or nearly, and is wrong.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from loopback import other_peers, peers, rule
from loopback.page import Page, PageError, parse

REFUSED = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
                     "maxLength", "maxItems", "uniqueItems", "pattern", "$dynamicRef"})  # fmt: skip
_BLANK: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "null": None}


def fit(value: Any, schema: Mapping[str, Any]) -> Any:
    """What of `value` the schema has a place for; the blank of its type where nothing is known.

    >>> fit({"a": 1, "b": 2}, {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "string"}}})
    {'b': 2, 'c': ''}
    """
    if "properties" in schema:
        known = value if isinstance(value, Mapping) else {}
        return {key: fit(known.get(key), inner) for key, inner in schema["properties"].items()}
    if "items" in schema:
        return [fit(each, schema["items"]) for each in value] if isinstance(value, list) else []
    if "enum" in schema:
        return value if value in schema["enum"] else schema["enum"][-1]
    if value is None:
        return _BLANK.get(str(schema.get("type")))
    return value


def complaint(schema: Any) -> str | None:
    """Why structured outputs refuse a schema; None when they take it."""
    if not isinstance(schema, Mapping):
        return "output_config.format.schema: Input should be an object"
    for part in _parts(schema):
        if "properties" in part and part.get("additionalProperties") is not False:
            return (
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        if found := sorted(REFUSED & part.keys()):
            kind = part.get("type", "any")
            return f"output_config.format.schema: For '{kind}' type, property '{found[0]}' is not supported"
    return None


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for key, inner in schema.items():
            if key == "properties":
                for each in inner.values():
                    yield from _parts(each)
            elif key in {"items", "$defs", "anyOf", "allOf"}:
                yield from _parts(inner)
    elif isinstance(schema, list):
        for each in schema:
            yield from _parts(each)


Reply = dict[str, Any]
_WORD = re.compile(r"\w{4,}")
_INVENTED = "words that stand nowhere in this context at all"


def spoil(reply: Reply, page: Page, flaw: str) -> str:
    """The reply's text with this flaw in it."""
    if flaw == "not_json":
        return "I looked at the page with care. The first claim is supported; of the others I am less sure."
    if flaw == "empty":
        return ""
    return json.dumps(_PLAY[flaw](copy.deepcopy(reply), page))


def _wrong_schema(reply: Reply, _: Page) -> Any:
    """Other keys than asked for, as a server without constrained decoding would give."""
    return {"score": 0.9, "explanation": f"{len(reply)} things looked at"}


def _missing_cells(reply: Reply, _: Page) -> Any:
    """Every list lacks its last row."""
    return {key: value[:-1] if isinstance(value, list) else value for key, value in reply.items()}


def _duplicated_ids(reply: Reply, _: Page) -> Any:
    """Every list has its first row twice."""
    return {key: [*value[:1], *value] if isinstance(value, list) else value for key, value in reply.items()}


def _unknown_id(reply: Reply, _: Page) -> Any:
    """A row about something that is not on the page."""
    for rows in reply.values():
        if isinstance(rows, list):
            rows.extend([{**row, "id": "zzz.9"} for row in rows[:1] if "id" in row])
    return reply


def _with_claims(reply: Reply, verdict: str, quote: Callable[[str], str], marks: list[str]) -> Reply:
    for row in reply.get("claims") or ():
        row["verdict"] = verdict
        if "cells" in row:
            row["cells"] = [{"context": mark, "quote": quote(mark)} for mark in marks]
        if "quote" in row:
            row["quote"] = quote(marks[0]) if marks else ""
    return reply


def _unquoted(reply: Reply, page: Page) -> Any:
    """Everything supported by everything, with quotes that nobody wrote."""
    return _with_claims(reply, "supported", lambda _: _INVENTED, [mark for mark, _ in page.contexts])


def _fooled(reply: Reply, page: Page) -> Any:
    """Everything supported by the context that shares most words with the answer, with a quote that stands there."""
    claimed = {word for line in page.answer for word in _WORD.findall(line.meant.lower())}
    lines = [(mark, line) for mark, some in page.contexts for line in some]
    if not lines:
        return _with_claims(reply, "supported", lambda _: "", [])
    mark, line = max(lines, key=lambda one: len(claimed.intersection(_WORD.findall(one[1].meant.lower()))))
    words = line.seen.split()
    first = next((index for index, word in enumerate(words) if claimed.intersection(_WORD.findall(word.lower()))), 0)
    quote = " ".join(words[max(0, first - 5) : first + 10])
    return _with_claims(reply, "supported", lambda _: quote, [mark])


def _contradicted(reply: Reply, _: Page) -> Any:
    """Every claim contradicted."""
    return _with_claims(reply, "contradicted", lambda _: "", [])


def _waver(reply: Reply, _: Page) -> Any:
    """The other answer about the first claim: a model asked twice."""
    for row in (reply.get("claims") or ())[:1]:
        row["verdict"] = "contradicted" if row.get("verdict") == "not_in_context" else "not_in_context"
        if "cells" in row:
            row["cells"] = []
        if "quote" in row:
            row["quote"] = ""
    return reply


_PLAY: Mapping[str, Callable[[Reply, Page], Any]] = MappingProxyType({
    "wrong_schema": _wrong_schema,
    "missing_cells": _missing_cells,
    "duplicated_ids": _duplicated_ids,
    "unknown_id": _unknown_id,
    "unquoted": _unquoted,
    "fooled": _fooled,
    "contradicted": _contradicted,
    "waver": _waver,
})  # fmt: skip


_TOLD = re.compile(r"\bReply with (\{[^{}]*\})")


class Speech(NamedTuple):
    """What the model says. Note: why it did not understand."""

    text: str
    note: str | None = None


def speak(prompt: str, schema: Mapping[str, Any] | None, flaw: str | None = None) -> Speech:
    """The reply to the page, or the prompt of a peer, in a prompt. Without a schema all that could be said is said."""
    try:
        page = parse(prompt)
    except PageError as error:
        asked = peers.input_of(prompt)
        answer = peers.reply_to(asked) if asked else other_peers.reply_to(prompt)
        if isinstance(answer, str):
            return Speech(answer)
        return Speech(json.dumps(answer)) if answer else _lost(prompt, schema, str(error))
    reply = rule.reply_to(page)
    fitted = fit(reply, schema) if schema else reply
    return Speech(spoil(fitted, page, flaw) if flaw else json.dumps(fitted))


def _lost(prompt: str, schema: Mapping[str, Any] | None, why: str) -> Speech:
    """A model that sees no page: blanks where it is held to a schema, what it is told to reply with, or a sentence."""
    told = _TOLD.search(prompt)
    if told and not schema:
        return Speech(told[1])
    return Speech(json.dumps(fit({}, schema)) if schema else f"I cannot read this: {why}.", why)
