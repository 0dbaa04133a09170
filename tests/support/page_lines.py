"""Parses a rendered page of an LLM judge, as a model in a test reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragwatch.judges.llm.escaping import MARK, unescape

_LINE = re.compile(rf"({MARK})\| ?(.*)")
_ITEM = re.compile(r"\[([a-z]{3,4}|assistant|other)\]")
_FENCE = re.compile(r"</?sample [0-9a-f]{8}>")


@dataclass(frozen=True, slots=True)
class ForeignLine:
    """One line of foreign text on a page.

    Attributes:
        section: Heading of its section.
        mark: Id of its text.
        number: Its number, None without one.
        text: The text, with escapes undone.
    """

    section: str
    mark: str
    number: int | None
    text: str


def page_lines(rendered: str) -> list[ForeignLine]:
    """Foreign text of a rendered page, line by line.

    Raises:
        ValueError: A line is neither a heading nor marked.
    """
    lines: list[ForeignLine] = []
    section = ""
    for line in rendered.split("\n"):
        marked = _LINE.fullmatch(line)
        if marked:
            mark, _, number = marked[1].partition(".")
            lines.append(ForeignLine(section, mark, int(number) if number else None, unescape(marked[2])))
        elif line in ("HISTORY", "QUESTION", "NEEDS", "CONTEXTS", "ANSWER", "REFERENCE"):
            section = line
        elif line != "none" and not _ITEM.fullmatch(line) and not _FENCE.fullmatch(line):
            raise ValueError("a line of the page has no mark")
    return lines
