r"""Escapes foreign text to one line of a page, so that it cannot imitate other lines of the page.

The escape character is the currency sign `¤`: rare in real text, one character, and (unlike a backslash) never escaped
again by JSON when a model quotes it. `¤n` is a line feed, `¤r` a carriage return, `¤t` a tab, `¤b` a bar that would
look like the end of a mark (`kqv.2|`), `¤l` a less-than sign that would open a fence, `¤¤` the sign itself, and
`¤200b;` any other invisible character: controls, formats (zero-width, bidirectional, tags), variation selectors,
surrogates, line and paragraph separators, blank letters. Every pattern is linear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SIGN = "¤"
_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_CONSONANTS = "b-df-hj-np-tv-z"
MARK = rf"[{_CONSONANTS}]{{3,4}}(?:\.\d{{1,6}})?"
"""A mark without its bar, as a pattern: three or four consonants, and the number of a sentence or claim."""

# A bar is matched with lookbehinds (three consonants, or a dot and up to six digits), so that the search
# skips from special character to special character.
_ANY_CASE = _CONSONANTS + _CONSONANTS.upper()
_LOOKBEHIND = "|".join([f"(?<=[{_ANY_CASE}]{{3}}[|])", *(rf"(?<=\.\d{{{digits}}}[|])" for digits in range(1, 7))])
_ESCAPED = re.compile(rf"[{_SIGN}{_INVISIBLE}]|<(?=/?[Ss][Aa][Mm][Pp][Ll][Ee])|\|(?:{_LOOKBEHIND})")
_ESCAPE = re.compile(rf"{_SIGN}(?:([nrtbl{_SIGN}])|([0-9a-f]{{1,6}});)")
_SHORT: Mapping[str, str] = {"\n": "n", "\r": "r", "\t": "t", "|": "b", "<": "l", _SIGN: _SIGN}
_LONG: Mapping[str, str] = {short: character for character, short in _SHORT.items()}
INVISIBLE = re.compile(rf"[{_INVISIBLE}]")
"""Invisible characters, line breaks and tabs included."""


def escape(text: str) -> str:
    r"""Escape a text to one line of visible characters, without anything that looks like a mark or a fence.

    >>> escape("a\nb kqv.1| c </sample 0> \u200b 5 ¤")
    'a¤nb kqv.1¤b c ¤l/sample 0> ¤200b; 5 ¤¤'
    """
    return _ESCAPED.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    short = _SHORT.get(match.group())
    return f"{_SIGN}{short}" if short else f"{_SIGN}{ord(match.group()):02x};"  # `¤0b;`: `¤b` is a bar


def unescape(text: str) -> str:
    r"""Undo `escape`. Invalid escapes stay as they are.

    >>> unescape(escape("\x0b")) == "\x0b"
    True
    >>> unescape("a¤nb kqv.1¤b c ¤200b; ¤¤ ¤z ¤110000;")
    'a\nb kqv.1| c \u200b ¤ ¤z ¤110000;'
    """
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    short, code = match.groups()
    if short:
        return _LONG[short]
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else match.group()
