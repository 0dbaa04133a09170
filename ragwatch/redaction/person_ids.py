"""Detects numbers that states give to persons and companies: social security, tax and identity numbers, passports.

A number is found by its shape, and accepted by its checksum, its date of birth or the groups that are in use. Shapes
that ordinary numbers have as well need a word such as `SSN` or `Steuer-ID` near them. The numbers and their
shapes are rows of persons.toml.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge

from ragwatch.redaction.person_checks import CHECKS, Check, mrz, stdnum
from ragwatch.redaction.rule import NamedRule, SensitiveKind, Span, Taken, TextView, letters_and_digits, rules, table

_TABLE = table("persons")
_NEAR_PERSONS = ("id number", "id no", "citizen", "resident", "date of birth", "born", "patient")
_GENERIC = (
    *("national id", "identity card", "identity number", "identity no", "id card", "social security"),
    *("personal number", "personal no", "personal code", "personal id", "tax id", "tax number", "tax no", "taxpayer"),
    *("tax file", "national insurance", "insurance number", "passport", "personalausweis"),
    *_NEAR_PERSONS,
)
_OTHER_NUMBERS = re.compile(
    r"(?i)\b(?:part|order|sku|serial|s/n|version|build|commit|invoice|ticket|issue|model|ref|reference|batch|lot|row|port|page|isbn|tracking"
    r"|job|run|request|trace|offset|size|bytes|timestamp|epoch|error|code|revision|article|art|product|item|device|firmware|asset"
    r"|backup|snapshot|release|case|id|ids|key|hash|pn|p/n|component|shipment|container|node|host)\b[^\w]{0,4}(?:(?:no|nr|number|id|is|was)\b[^\w]{0,4})?\Z"
)
_RUNS = re.compile(r"[a-z]{2,}")
_START_CHARS = 4
_CONTEXT_BEFORE, _CONTEXT_AFTER = 60, 24
_MIN_DIGITS, _MIN_DIGITS_AND_LETTERS = 7, 4


def _check(names: str) -> Check:
    """A check of a row. The same digit throughout, and 123456789, are nobody's number; digits are those of ASCII."""

    def check(value: str) -> bool:
        if len(set(value)) == 1 or value == "123456789" or not value.isascii():
            return False
        return any((CHECKS.get(name) or stdnum(name))(value) for name in names.split("|"))

    return check


@dataclass(frozen=True, slots=True)
class PersonIdRule(NamedRule):
    """Accepts the numbers of one country."""

    shapes: tuple[str, ...]  # names of its shapes; a number after `plain` is the number of its digits
    check: Check
    words: tuple[str, ...]  # words that stand near such a number, in lower case
    bare: frozenset[str]  # shapes that need no word near them


PERSON_RULES: tuple[PersonIdRule, ...] = tuple(
    PersonIdRule(
        name,
        SensitiveKind.PERSON_ID,
        about,
        shapes=tuple(shapes.split(";")),
        check=_check(check),
        words=(*(word for word in words.split(";") if word != "*"), *(_GENERIC if words.endswith("*") else ())),
        bare=frozenset(bare.split(";")),
        normalize=letters_and_digits,
    )
    for name, about, shapes, check, words, bare in _TABLE["numbers"]
)
NAMES_OF_NUMBERS = frozenset(word for rule in PERSON_RULES for word in rule.words) - set(_NEAR_PERSONS)
"""Words that stand near such numbers and are names of them."""

SHAPES = tuple((name, shape) for name, _, shape in _TABLE["shapes"])  # the first that matches counts
# Shapes by the number of digits that they begin with. Texts are full of numbers: only these shapes are tried, and none
# where no rule would take a value of them.
_SHAPES_BY_DIGITS: dict[int, list[str]] = {}
for _name, _digits, _ in _TABLE["shapes"]:
    for _number in map(int, _digits.split()):
        _SHAPES_BY_DIGITS.setdefault(_number, []).append(_name)
_NUMBER_BY_DIGITS = {
    digits: re.compile(
        "|".join(
            rf"(?P<s{place}>{shape})(?![\w]|[.,-]\d)" for place, (name, shape) in enumerate(SHAPES) if name in names
        )
    )
    for digits, names in _SHAPES_BY_DIGITS.items()
}
_NUMBER_START = re.compile(r"\d(?<![\w+/-]\d)(?:(?<!\.\d)|(?i:(?<=n[or]\.\d)))\d*")  # behind a dot only as in `no.536`
LETTERED_SHAPES = tuple((name, shape) for name, shape in _TABLE["lettered_shapes"])
_LETTERED = re.compile("|".join(f"(?P<s{place}>{shape})(?!\\w)" for place, (_, shape) in enumerate(LETTERED_SHAPES)))
_LETTERED_START = re.compile(r"[A-Z](?<![A-Za-z0-9_.-][A-Z])(?=[A-Z]{0,6}-? ?\d)")


class PersonIds:
    """Finds candidates once for all countries, and asks the rules for their shape.

    Each word is looked for once, and few of them at all; most texts have none.
    """

    def __init__(self, rules: tuple[PersonIdRule, ...]) -> None:
        self._rules = rules
        self._names: dict[str, set[str]] = {}  # of the rules with a word
        for rule in rules:
            for word in rule.words:
                self._names.setdefault(word, set()).add(rule.name)
        self._anywhere = [word for word in self._names if not word.isascii()]
        self._by_start: dict[str, list[str]] = {}
        for word in self._names:
            for start in _RUNS.findall(word)[:1] if word.isascii() else ():
                self._by_start.setdefault(start[:_START_CHARS], []).append(word)
        self._eligible = lru_cache(maxsize=1 << 8)(self._by_shape)

    def taken(self, view: TextView) -> list[Taken]:
        """All numbers in the text, in order, without overlaps."""
        taken: list[Taken] = []
        if view.digits < _MIN_DIGITS_AND_LETTERS:
            return taken
        eligible: Mapping[str, list[PersonIdRule]] | None = None
        numbers = _numbers(view.text) if view.digits >= _MIN_DIGITS else ()
        for begin, shape, match in merge(_lettered(view.text), numbers):
            if taken and begin < taken[-1][1]:
                continue
            if eligible is None:
                eligible = self._eligible(self._mentioned(view.folded))
            if candidates := eligible.get(shape):
                value = letters_and_digits(match[0])
                rules = [rule for rule in candidates if rule.check(value)]
                if rules and (rule := _told_apart(rules, shape, match)):
                    taken.append((begin, match.end(), rule))
        return taken

    def _mentioned(self, folded: str) -> frozenset[str]:
        """Names of the rules of which a text has a word."""
        starts = {run[:_START_CHARS] for run in _RUNS.findall(folded)} & self._by_start.keys()
        words = [word for start in starts for word in self._by_start[start] if word in folded]
        if not folded.isascii():
            words += [word for word in self._anywhere if word in folded]
        return frozenset().union(*(self._names[word] for word in words))

    def _by_shape(self, mentioned: frozenset[str]) -> Mapping[str, list[PersonIdRule]]:
        """The rules that may take a value of each shape in a text with words of these rules."""
        rules: dict[str, list[PersonIdRule]] = {}
        for rule in self._rules:
            for shape in rule.shapes if rule.name in mentioned else rule.bare:
                rules.setdefault(shape, []).append(rule)
        return rules


_Candidate = tuple[int, str, re.Match[str]]
"""Where a value with the shape of such a number begins, the name of the shape, and the value."""


def _lettered(text: str) -> Iterator[_Candidate]:
    """Values that begin with letters."""
    for start in _LETTERED_START.finditer(text):
        if match := _LETTERED.match(text, start.start()):
            yield match.start(), LETTERED_SHAPES[int(str(match.lastgroup)[1:])][0], match


def _numbers(text: str) -> Iterator[_Candidate]:
    """Values that begin with a digit."""
    for start in _NUMBER_START.finditer(text):
        pattern = _NUMBER_BY_DIGITS.get(len(start[0]))
        if match := pattern and pattern.match(text, start.start()):
            shape = SHAPES[int(str(match.lastgroup)[1:])][0]
            yield match.start(), f"plain{len(match[0])}" if shape == "plain" else shape, match


def _told_apart(rules: list[PersonIdRule], shape: str, match: re.Match[str]) -> PersonIdRule | None:
    """The rule whose words stand near the number, else the first that needs none, unless it is another number."""
    start, end = match.span()
    before = match.string[max(0, start - _CONTEXT_BEFORE) : start].lower()
    near = f"{before} | {match.string[end : end + _CONTEXT_AFTER].lower()}"
    for rule in rules:
        if any(word in near and _stands_alone(word, near) for word in rule.words):
            return rule
    bare = next((rule for rule in rules if shape in rule.bare), None)
    return None if bare is None or _OTHER_NUMBERS.search(before) else bare


def _stands_alone(word: str, near: str) -> bool:
    """Whether a word of up to four letters is no part of a longer one; longer ones, and those of East Asia, may be."""
    return (
        len(word) > 4
        or word[0] >= "\u1100"
        or re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W\d_])", near) is not None
    )


def _machine_readable(match: re.Match[str]) -> Span | None:
    """Accepts the machine-readable zone of a passport or an identity card, by the check digits of its dates."""
    line = match["line"]
    if line[:7].isdigit() and len(line) == 30:
        birth, expiry = line[:7], line[8:15]
    else:
        birth, expiry = line[13:20], line[21:28]
        if mrz(line[:9]) != int(line[9]):
            return None
    return match.span() if all(mrz(field[:6]) == int(field[6]) for field in (birth, expiry)) else None


def _passport(match: re.Match[str]) -> Span | None:
    """Accepts a passport number with at least five digits behind the word."""
    return match.span("secret") if sum(map(str.isdigit, match["secret"])) >= 5 else None


PASSPORT_RULES = rules("passport", {"machine readable": _machine_readable, "passport": _passport})
