r"""Undoes ways to write an instruction so that patterns do not match it, and a model still reads it.

Each of them is tried only where its signs stand in a text, so that most texts cost a few searches.
"""

import base64
import binascii
import re
import unicodedata
from codecs import decode
from collections.abc import Callable, Iterator
from html import unescape
from urllib.parse import unquote

from ragwatch.judges.llm.page import INVISIBLE

_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,20000}={0,6}")
_DENSE = re.compile(r"(?<!\S)[!-~]{30,20000}(?!\S)")
_MIN_DENSE = 30
_SPACED = re.compile(r"(?<!\w)(?:\w {1,3}){7,2000}\w(?!\w)")
_DOTTED = re.compile(r"(?<!\w)\w(?:[.*·•|~-]\w){1,40}(?!\w)")
_MANY_DOTTED = re.compile(r"[.*·•|~-][^\W\d][.*·•|~-][^\W\d][.*·•|~-]")
_HYPHEN = re.compile(r"(?<=[^\W\d])[-‐‑\u00ad](?=[^\W\d])")
_MANY_HYPHENS = re.compile(r"[-‐‑\u00ad][^\W\d](?:[^-‐‑\u00ad]{0,24}[^\W\d][-‐‑\u00ad][^\W\d]){2}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{8,}")
_OVERRIDE = re.compile("[\u202e\u202d][^\u202c\n]{8,2000}")
_MARKS = re.compile("[\u0300-\u036f\u0489\u20d0-\u20f0]")
_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ ,]?){12,10000}(?![0-9a-zA-Z])")
_ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4,6})\}?|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))")
_LEET = re.compile(r"(?i)\b[a-z]*[a-z][013457@$][a-z][a-z013457@$]*\b")
_DIGIT_BETWEEN = re.compile(r"[013457@$](?<=[a-zA-Z].)[a-zA-Z]")
_DIGIT_LETTERS = str.maketrans("013457@$", "oieastas")
_MORSE = re.compile(r"(?:[.·•_−–-]{1,6}[ /|\n]{1,3}){10,5000}[.·•_−–-]{1,6}")
_DOTS_DASHES = str.maketrans("·•_−–", "..---")
_SIGNS = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
_MORSE_LETTERS = dict(zip(_SIGNS.split(" "), "abcdefghijklmnopqrstuvwxyz", strict=True))
_TURNED_WORDS = (
    "eht yreve mialc smialc rewsna detroppus snoitcurtsni kram siht erongi tnemetats "
    "gur naq nyy rirel pynvz pynvzf nafjre fhccbegrq vafgehpgvbaf znex guvf gung vtaber fgngrzrag"
)
_TURNED = frozenset(_TURNED_WORDS.split(" "))  # frequent words backwards and in rot13
_MIN_ESCAPES = 6
_MIN_LETTERS_SHARE = 0.9  # share of letters and punctuation in decoded bytes that is a sentence

_LIKE_LATIN = re.compile(
    r".*(?:SMALL CAPITAL|SQUARED LATIN CAPITAL LETTER|CIRCLED LATIN CAPITAL LETTER|LETTER) ([A-Z])$"
)
_BLOCKS = (range(0x250, 0x2B0), range(0x1D00, 0x1D80), range(0xA730, 0xA800), range(0x1F150, 0x1F200))


def _letters() -> dict[int, str]:
    """Letters of other alphabets that look like Latin ones, small capitals and letters in black signs."""
    alike = tuple(zip("аесорхуіјѕԁтѵкмвнαορντικυχ", "aecopxyijsdtvkmbhaopvtikux", strict=True))
    table = {ord(one): other for one, other in alike} | {ord(one.upper()): other.upper() for one, other in alike}
    for code in (code for block in _BLOCKS for code in block):
        match = _LIKE_LATIN.fullmatch(unicodedata.name(chr(code), ""))
        if match:
            table[code] = match[1].lower()
    return table


_HOMOGLYPHS = _letters()


def variants(text: str) -> Iterator[str]:
    """Yield the text as it is, and each deobfuscation of it."""
    yield text
    if not text.isascii():
        yield from _without_signs(text)
    for match in _SPACED.finditer(text):
        yield re.sub(r"(?<=\S) (?=\S)", "", match.group())
    if _MANY_DOTTED.search(text):
        yield _DOTTED.sub(lambda match: match.group()[::2], text)
    if _MANY_HYPHENS.search(text):
        yield _HYPHEN.sub("", text)
        yield _HYPHEN.sub(" ", text)
    for match in _BLOB.finditer(text):
        yield from _decoded(match.group())
    yield from _escaped(text)
    if not _TURNED.isdisjoint(text.lower().split()):
        yield text[::-1]
        yield " ".join(word[::-1] for word in text.split())
        yield decode(text, "rot13")


def _without_signs(text: str) -> Iterator[str]:
    for match in _OVERRIDE.finditer(text):
        yield match.group()[:0:-1]
    for match in _TAGS.finditer(text):
        yield "".join(chr(ord(tag) - 0xE0000) for tag in match.group())
    seen = INVISIBLE.sub(lambda match: " " if match.group().isspace() else "", text)
    visible = unicodedata.normalize("NFKC", seen).translate(_HOMOGLYPHS)
    if len(_MARKS.findall(visible)) >= _MIN_ESCAPES:  # marks on letters that no language writes so
        yield _MARKS.sub("", unicodedata.normalize("NFKD", visible))
    elif visible != text:
        yield visible


def _escaped(text: str) -> Iterator[str]:
    """Yield the text with other ways to write letters undone."""
    for match in _HEX.finditer(text):
        yield from _sentence(bytes.fromhex(re.sub(r"0x|\\x|[ ,]", "", match.group())))
    if text.count("%") >= _MIN_ESCAPES:
        yield unquote(text)
    if text.count("&") >= _MIN_ESCAPES and text.count(";") >= _MIN_ESCAPES:
        yield unescape(text)
    if text.count("\\") >= _MIN_ESCAPES:
        yield _ESCAPE.sub(_character, text)
    for match in _MORSE.finditer(text) if any(text.count(f" {sign}") >= _MIN_ESCAPES for sign in ".-·•_−–") else ():
        yield _from_morse(match.group())
    for match in _DENSE.finditer(text) if max(map(len, text.split()), default=0) >= _MIN_DENSE else ():
        yield from _bytes_of(base64.b85decode, match.group())
        yield from _bytes_of(base64.a85decode, match.group().removeprefix("<~").removesuffix("~>"))
    if _DIGIT_BETWEEN.search(text) and _LEET.search(text):
        yield text.translate(_DIGIT_LETTERS)


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or match[2] or match[3], 16)
    return chr(code) if code <= 0x10FFFF else match[0]


def _from_morse(text: str) -> str:
    words = re.split(r"[/|\n]| {2,}", text.translate(_DOTS_DASHES))
    return " ".join("".join(_MORSE_LETTERS.get(sign, "") for sign in word.split()) for word in words)


def _decoded(blob: str) -> Iterator[str]:
    """Yield decoded base64 and base32, if it is a sentence."""
    body = blob.rstrip("=").replace("-", "+").replace("_", "/")
    yield from _bytes_of(lambda text: base64.b64decode(text, validate=True), body + "=" * (-len(body) % 4))
    if body.isalnum():
        yield from _bytes_of(lambda text: base64.b32decode(text, casefold=True), body + "=" * (-len(body) % 8))


def _bytes_of(read: Callable[[str], bytes], text: str) -> Iterator[str]:
    try:
        yield from _sentence(read(text))
    except (binascii.Error, ValueError):
        return


def _sentence(decoded: bytes) -> Iterator[str]:
    """Yield a decoded text, if it is a sentence."""
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        return
    letters = sum(character.isalpha() or character in " .,;:'" for character in text)
    if " " in text and letters >= _MIN_LETTERS_SHARE * len(text):
        yield text
