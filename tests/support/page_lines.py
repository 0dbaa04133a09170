"""The foreign text on a rendered page of an LLM judge, line by line, as the model of the loopback server reads it."""

from __future__ import annotations

from loopback.page import Line, parse


def page_lines(rendered: str) -> list[tuple[str, Line]]:
    """Section and line, in order; a line that is neither a heading nor marked is an error."""
    page = parse(rendered)
    blocks = [("HISTORY", lines) for _, lines in page.history] + [("QUESTION", page.question), ("NEEDS", page.needs)]
    blocks += [("CONTEXTS", lines) for _, lines in page.contexts]
    blocks += [("ANSWER", page.answer), ("REFERENCE", page.reference)]
    return [(section, line) for section, lines in blocks for line in lines]
