"""Reads hyphens, dashes and spaces of typography as those of a keyboard. Language models write both."""

from __future__ import annotations

import re

_SPACES = "\xa0\u2000-\u200a\u202f\u205f"
_HYPHENS = "\u2010\u2011"
_DASHES = "\u2012-\u2015\u2212"  # figure dash, en dash, em dash, bar and minus
# A dash only in a number: between words, as a hyphen, it would join parts of a sentence with an address or a number.
_UNTYPED = re.compile(rf"[{_SPACES}{_HYPHENS}{_DASHES}](?:(?<![{_DASHES}])|(?=\(?\d)(?:(?<=\d.)|(?<=\(\d\d\d\).)))")


def as_typed(text: str, encoded: bytes) -> str:
    r"""Returns the text, as long as it was, with spaces and hyphens as on a keyboard, and so the dashes in numbers.

    Args:
        text: The text.
        encoded: The text in UTF-8: whether it has bytes of such characters is seen in a tenth of the time.

    >>> text = "415\u2011555\u20132671\u2014the\u202fdesk"
    >>> ascii(as_typed(text, text.encode()))
    "'415-555-2671\\u2014the desk'"
    """
    if text.isascii() or (b"\xe2" not in encoded and b"\xc2\xa0" not in encoded):
        return text
    return _UNTYPED.sub(_typed, text)


def _typed(match: re.Match[str]) -> str:
    return " " if match[0].isspace() else "-"
