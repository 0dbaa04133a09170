"""Flaws: replies that parse, or nearly, and are wrong."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from loopback.page import Page

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
