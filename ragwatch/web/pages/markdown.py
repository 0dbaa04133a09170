"""Writes Markdown in which texts of others stay text: no markup, no link, no mention, whatever they contain.

Short ones become code spans, long ones code blocks: neither Markdown, HTML, addresses nor `@names` are read there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

MAX_SPAN_CHARS = 120
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS = "\u200c\u200d"  # which scripts need
_TICKS = re.compile(r"`+")


def code(text: object) -> str:
    r"""Returns a short text as a code span on one line, fit for a table.

    >>> code("a`b | @all\n<b>"), code("")
    ('``a`b ¦ @all <b>``', '`(empty)`')
    """
    line = " ".join(_visible(str(text)).split()).replace("|", "¦") or "(empty)"
    line = line if len(line) <= MAX_SPAN_CHARS else f"{line[: MAX_SPAN_CHARS - 1]}…"
    ticks = "`" * (_longest(line) + 1)
    pad = " " if "`" in (line[0], line[-1]) else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def block(text: str, most: int) -> str:
    r"""Returns the beginning of a text as a code block.

    >>> block("a\n```\nb", 100).splitlines()
    ['````text', 'a', '```', 'b', '````']
    """
    shown = _visible("\n".join(text[:most].splitlines()))
    fence = "`" * max(3, _longest(shown) + 1)
    return f"{fence}text\n{shown}{'…' if len(text) > most else ''}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def link(words: str, address: str) -> str:
    """Returns a link to an address of ragwatch, with words of its own.

    >>> link("causes", "http://x/causes?a=<b> c")
    '[causes](<http://x/causes?a=%3Cb%3E%20c>)'
    """
    for char, quoted in ((" ", "%20"), ("<", "%3C"), (">", "%3E"), ("|", "%7C"), ("\\", "%5C"), ("`", "%60")):
        address = address.replace(char, quoted)
    return f"[{words}](<{''.join(filter(str.isprintable, address))}>)"


def _visible(text: str) -> str:
    """The text with a mark in the place of what is not seen: control characters, marks of direction, torn escapes."""
    seen = (char in "\n\t" or char in _JOINERS or unicodedata.category(char) not in _HIDDEN for char in text)
    return "".join(char if is_seen else "\ufffd" for char, is_seen in zip(text, seen, strict=True))


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
