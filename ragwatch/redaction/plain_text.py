r"""Reads a text as people see it: without markup, invisible characters and the signs of typography.

Answers are Markdown and HTML (`**Password:** hunter22`, `jane<wbr>@example.org`, `4111&nbsp;1111`), and language models
write spaces, hyphens and digits that no keyboard has. Rules search what is shown; a value that they find is replaced
where it stands in the text as it was written, with the markup inside it.

A tag with attributes is left as it is, because an address in it may hold a secret.
"""

import re
from bisect import bisect_left, bisect_right
from html import unescape
from unicodedata import normalize

_SPACES = "\xa0\u2000-\u200a\u202f\u205f"
_HYPHENS = "\u2010\u2011"
_DASHES = "\u2012-\u2015\u2212"  # figure dash, en dash, em dash, bar and minus
_WIDE = "\uff0b\uff0d\uff10-\uff19\uff20-\uff3a\uff41-\uff5a\ufe6b"  # of East Asian typography
_DIGITS = (  # Arabic, Persian, Devanagari, Bengali, Thai, and those of mathematics
    "\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59\U0001d7ce-\U0001d7ff"
)
# A dash only in a number: between words, as a hyphen, it would join parts of a sentence with an address or a number.
_UNTYPED = re.compile(
    rf"[{_SPACES}{_HYPHENS}{_DASHES}{_WIDE}{_DIGITS}]"
    rf"(?:(?<![{_DASHES}])|(?=\(?\d)(?:(?<=\d.)|(?<=\(\d\d\d\).)))"
)
# Characters that are not shown
_HIDDEN = "\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"
_INLINE = "a|abbr|b|bdi|big|code|del|em|font|i|ins|kbd|mark|nobr|s|samp|small|span|strong|tt|u|wbr"
_MARKUP = re.compile(
    rf"(?i)[<&*{_HIDDEN}](?:(?<=<)(?:/?(?:{_INLINE})[ ]?/?>|/(?P<cell>t[dh]|dt)>\s{{0,20}}<(?:t[dh]|dd)>)"
    r"|(?<=&)(?P<entity>\#\d{1,6}|\#x[0-9a-f]{1,6}|[a-z]{2,8});"
    r"|(?<=\*)(?:\*(?!\*)(?:(?<![\w*\\]..)(?=[^\s*])|(?<=[^\s*]..)(?!\w))|(?<=:.)(?=\s))"
    rf"|(?<=[{_HIDDEN}]))"
)
_IS_HIDDEN = re.compile(f"[{_HIDDEN}]").fullmatch
_NOT_DECODED = frozenset("<>&*\r\n\0")


class PlainText:
    """A text as people see it, and where its parts are in the text as it is written."""

    __slots__ = ("_lengths", "_shown", "_written", "text")

    def __init__(self, written: str) -> None:
        self._shown: list[int] = []  # where the text goes on behind each part that is written in another way
        self._written: list[int] = []  # the same in the text as it is written
        self._lengths: list[int] = []  # of what is shown for the part: 0 or 1
        text = written
        if not written.isascii() or "<" in written or "&" in written or "*" in written:
            text = self._without_markup(written)
        self.text = text if text.isascii() else _UNTYPED.sub(_typed, text)

    def _without_markup(self, written: str) -> str:
        parts: list[str] = []
        shown = copied = 0
        for match in _MARKUP.finditer(written):
            seen = _seen(match)
            if seen is None:
                continue
            parts += (written[copied : match.start()], seen)
            shown += match.start() - copied + len(seen)
            copied = match.end()
            self._shown.append(shown)
            self._written.append(copied)
            self._lengths.append(len(seen))
        return "".join([*parts, written[copied:]]) if parts else written

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where what is shown from `start` to `end` is written; markup inside it belongs to it, markup around not."""
        if not self._shown or start >= end:
            return start, end
        behind = bisect_left(self._shown, end)
        last = behind < len(self._shown) and self._shown[behind] == end and self._lengths[behind]
        return self._place(start), self._written[behind] if last else self._place(end - 1) + 1

    def _place(self, at: int) -> int:
        before = bisect_right(self._shown, at) - 1
        return at if before < 0 else at + self._written[before] - self._shown[before]


def _seen(match: re.Match[str]) -> str | None:
    """What is shown for markup; None where it is something else, such as the parameter of an address."""
    if match["cell"]:
        return "|"
    if not match["entity"]:
        return ""
    char = unescape(match[0])
    if _IS_HIDDEN(char):
        return ""
    return char if len(char) == 1 and char not in _NOT_DECODED else None


def _typed(match: re.Match[str]) -> str:
    """The character of a keyboard for one of typography."""
    char = match[0]
    if char.isdecimal():
        return str(int(char))
    if char.isspace():
        return " "
    wide = normalize("NFKC", char)
    return wide if wide.isascii() else "-"
