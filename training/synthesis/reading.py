"""A sentence as the edits see it: tokens with their likely part of speech, and names with their type.

No parser: closed-class words, the thesaurus' counts, and what stands before a word. An edit asks for a reading that is
sure; where it is not, the sentence is left to another edit.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .lexicon import Lexicon
from .lists import words

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s|%)?|[^\W\d_]+(?:[-'’][^\W_]+)*\.?(?<!\w\w\w\.)|[^\w\s]|\w+")
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+|(?:Mr|Dr|St|Jr|Sr|Mrs|Ms|Lt|Col|Gen|Inc|Ltd|Co|No|vs)\.")


def _closed(text: str) -> dict[str, str]:
    table = {}
    for line in text.strip().splitlines():
        tag, _, words = line.partition(" ")
        table.update(dict.fromkeys(words.split(), tag))
    return table


_CLOSED = _closed(
    """
D the a an this that these those each every some any no all both either neither another such what which whose
D its his her their our my your one
P of in on at by for with from to into onto over under between among during against through about across after before
P behind near until since within without toward towards upon along around beyond via per despite throughout above below
C and or but nor yet because although though while if when where who whom as than that whereas unless
M will would can could may might must shall should cannot
B is are was were be been being am 's
H has have had having
O do does did
PRP he she it they we you i him them us me himself herself itself themselves
R not never also too very only just even still already often usually always then later however again here there now
CD one two three four five six seven eight nine ten eleven twelve hundred thousand million billion
"""
)
_AFTER_NOUNISH = frozenset({"D", "J", "CD", "POS"})


_CAPITAL = r"(?:[A-Z]\.(?= )|[A-Z](?:[\w'’-]|\.(?=\w))*)"
NAME = rf"{_CAPITAL}(?: (?:de |van |von |of )?{_CAPITAL}){{0,3}}"
"""A pattern for one name, the stop of a sentence left out."""


class Token(NamedTuple):
    """One token: where it stands, its tag (N NS V VZ VG VD J R CD D P C M B H O PRP NAME X), its base, how sure."""

    start: int
    end: int
    text: str
    tag: str
    base: str
    sure: float


class Name(NamedTuple):
    """A name: where it stands."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Sentence:
    """A read sentence."""

    text: str
    tokens: tuple[Token, ...]
    names: tuple[Name, ...]

    def token_at(self, start: int) -> int:
        """Index of the first token that starts at or behind an offset."""
        for index, token in enumerate(self.tokens):
            if token.start >= start:
                return index
        return len(self.tokens)


@lru_cache(maxsize=1 << 15)
def read(text: str, lexicon: Lexicon) -> Sentence:
    """Tokens, tags and names of one sentence."""
    pieces = []
    for match in _TOKEN.finditer(text):
        word, end = match.group(), match.end()
        if word.endswith(".") and not _ABBREVIATION.fullmatch(word) and len(word) > 1:
            pieces += [(match.start(), end - 1, word[:-1]), (end - 1, end, ".")]
        elif len(word) > 2 and word[-2:] in ("'s", "’s"):
            pieces += [(match.start(), end - 2, word[:-2]), (end - 2, end, "'s")]
        else:
            pieces.append((match.start(), end, word))
    tokens: list[Token] = []
    for start, end, word in pieces:
        tokens.append(_tagged(start, end, word, tokens, lexicon))
        if len(tokens) == 2 and tokens[1].tag == "NAME" and tokens[0].tag in ("N", "NS", "V", "J", "W") and tokens[0].text[0].isupper():  # noqa: E501  # fmt: skip
            tokens[0] = tokens[0]._replace(tag="NAME", sure=1.0)
    return Sentence(text, tuple(tokens), tuple(_names(text, tokens)))


def _tagged(start: int, end: int, word: str, before: list[Token], lexicon: Lexicon) -> Token:
    """The token of one word."""
    low = word.lower()
    if not word[:1].isalpha():
        tag = "POS" if word in ("'s", "’s") else "CD" if word[:1].isdigit() else "X"
        return Token(start, end, word, tag, word, 1.0)
    first = not before or before[-1].text in "\"“``'(:-*•"
    if low in _CLOSED and (word == "I" or not word[:1].isupper() or first):
        return Token(start, end, word, _CLOSED[low], low, 1.0)
    readings = lexicon.readings(low)
    if word[:1].isupper() and not (first and readings and readings[0][3] > 3):
        nation = (("J", low) in lexicon.apart) and len(low) > 4
        return Token(start, end, word, "J" if nation else "NAME", low, 1.0)
    if not readings or (low.endswith("ly") and len(low) > 4 and readings[0][1] == "R"):
        return Token(start, end, word, "R", low, 0.9) if low.endswith("ly") else Token(start, end, word, "W", low, 0.0)
    return _weighed(start, end, word, before, readings)


def _weighed(
    start: int, end: int, word: str, before: list[Token], readings: tuple[tuple[str, str, str, float], ...]
) -> Token:
    """The reading that the word before makes likeliest."""
    last = before[-1].tag if before else ""
    to = bool(before) and before[-1].text.lower() == "to"
    boosts = {}
    for base, pos, form, weight in readings:
        boost = 1.0
        if last in _AFTER_NOUNISH:
            boost = {"N": 6.0, "J": 4.0}.get(pos, 0.1)
            if form == "VG":
                boost = 0.5
        elif to or last in ("M", "O"):
            boost = 8.0 if form == "V" else 0.3
        elif last == "P":
            boost = {"N": 3.0, "J": 2.0}.get(pos, 1.0 if form == "VG" else 0.1)
        elif last in ("B", "H", "R"):
            boost = 4.0 if form in ("VD", "VN", "VG") or (pos == "J" and last != "H") else 0.6
            boost = 0.05 if form in ("V", "VZ") and last != "R" else boost
        elif last in ("N", "NS", "NAME", "PRP"):
            boost = 4.0 if form in ("VD", "VZ", "VG") or (form == "V" and last in ("NS", "PRP")) else 1.0
            boost = 0.2 if form == "V" and last in ("N", "NAME") else boost
            boost = 0.2 if pos == "J" else boost
        boosts[base, pos, form] = weight * boost
    total = sum(boosts.values())
    (base, pos, form), best = max(boosts.items(), key=lambda item: item[1])
    tag = {"VN": "VD"}.get(form, form)
    return Token(start, end, word, tag, base, best / total)


_JOIN = words("of the de van von la le del da di al bin")


def _names(text: str, tokens: list[Token]) -> list[Name]:
    """Runs of capitalised words; small words may stand inside, never at an end."""
    names: list[Name] = []
    index = 0
    while index < len(tokens):
        if tokens[index].tag != "NAME":
            index += 1
            continue
        last = index
        step = index + 1
        while step < len(tokens):
            token = tokens[step]
            if token.tag == "NAME" or (token.tag == "CD" and token.text.isdigit() and len(token.text) < 3):
                last = step
            elif token.text not in _JOIN or step + 1 == len(tokens) or tokens[step + 1].tag != "NAME":
                break
            step += 1
        start, end = tokens[index].start, tokens[last].end
        names.append(Name(start, end, text[start:end]))
        index = last + 1
    return names
