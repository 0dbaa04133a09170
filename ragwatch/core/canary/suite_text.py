"""Writes canaries as lines of a suite file in YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragwatch.core.canary.definition import Canary, Expected, Grade

REDACTED = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
"""What redaction leaves of a value. A text with it differs from the original one, and finds nothing."""


def canary_lines(canary: Canary) -> Iterator[str]:
    """Yields the lines of one canary, as an item of `items`."""
    yield f"  - query: {_quoted(canary.query)}"
    yield f"    name: {_quoted(canary.name)}"
    yield f"    category: {canary.category}"
    yield f"    tags: [{', '.join(map(_quoted, canary.tags))}]"
    if canary.reference:
        yield f"    reference: {_quoted(canary.reference)}"
    if canary.expected:
        yield "    expected:"
    for context in canary.expected:
        yield from _expected_lines(context)


def _expected_lines(context: Expected) -> Iterator[str]:
    yield f"      - id: {_quoted(context.id)}" if context.id else f"      - text: {_quoted(context.text or '')}"
    if context.grade is Grade.HIGHLY_RELEVANT:
        yield "        grade: highly_relevant"


def comment_line(text: str) -> str:
    """Returns a comment; what could end its line is replaced, as texts in it may be quoted from questions."""
    return f"  # {''.join(char if char.isprintable() else '?' for char in text)}"


def _quoted(text: str) -> str:
    """Returns a double-quoted YAML scalar, in which quotes, backslashes and non-printable characters are escaped."""
    parts = []
    for char in text:
        if char in '\\"':
            parts.append(f"\\{char}")
        elif char.isprintable():
            parts.append(char)
        else:
            parts.append(f"\\U{ord(char):08x}")
    return f'"{"".join(parts)}"'
