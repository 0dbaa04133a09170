"""Reads numbers, dates and quantities of a text in a form in which equal ones are equal.

A number has keys: its value in digits ("3.5 million", "3,500,000" and "3.5M" have the key `3500000`), and the value in
a base unit ("5 kg" and "5,000 g"). Two numbers are the same where they share a key. Numbers of a source have more keys
than those of a claim: what they are called otherwise ("half" is 50 %), what they are about (1971 is in the 1970s), and
what they are rounded to.

What a claim is held to are its numbers that a source would have to state: not list numbers, citation marks, names
(`GPT-4`), 0 and 1, counts up to twelve without a unit (people count what is listed), or words like "second".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.words import fold, term, terms
from ragwatch.judges.lexical.implied_amounts import MAX_DIGITS, implied_amounts
from ragwatch.judges.lexical.number_words import (
    APPROXIMATE,
    COUNTED_UNITS,
    FAHRENHEIT,
    MEASURED,
    MONTHS,
    ORDINALS,
    SCALES,
    SHORT_MONTHS,
    SMALL,
    SUFFIXES,
    TENS,
    UNITS,
    month_name,
)

_COUNTED = 12  # people count listed things up to this
_BEFORE = 3  # tokens before a number that may say that it is approximate
_CURRENCIES = frozenset("$€£¥₹")

_TOKEN = re.compile(
    r"(?<!\d)\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3}){2,}(?!\d)|\d+(?:[.,]\d+)*"
    r"|[^\W\d_]+|[%$€£¥₹‰]"
)
_CHECKED_AFTER = 256  # numbers
_MAX_VALUES = 2_000  # with more different numbers in the sources, only equal ones are looked for
_NEAR = 0.1
_CONVERTED = 0.01
_MOST_CONVERTED = 0.05  # however few digits a converted number has
_DEGREE = 0.6  # Celsius, of a converted temperature
_DEGREES = re.compile(r" ?(?:°|º| degrees?) ?(?P<scale>celsius|centigrade|fahrenheit|[cf])\b")
_INSIDE_NAME = re.compile(r"[^\W\d_][-_.]?$")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(rf"\d|\b(?:{'|'.join((*SMALL, *ORDINALS))})\b")
_LETTERS = re.compile(r"[^\W\d_]+")
_MARKS = re.compile(
    r"\[\^?\d{1,3}(?:[,;–-] ?\d{1,3}){0,8}\]"
    r"|\b(?:passage|document|doc|source|context|reference|ref|citation|chunk|excerpt|snippet|result)s?"
    r"(?: (?:no\.? )?|#|: ?)\d{1,3}(?:(?:, | and |, and | ?& ?|-)\d{1,3}){0,8}\b"
)
_LIST_NUMBER = re.compile(r"(?:^|(?<=[\n;:]))\s*\(?\d{1,2}[.)](?=\s)|\(\d{1,2}\)|\bsteps? \d{1,2}\b")


class Kind(StrEnum):
    """What a number is."""

    NAME = "name"
    COUNT = "count"
    YEAR = "year"
    DECADE = "decade"
    QUANTITY = "quantity"


class _Digits(NamedTuple):
    """A number before its unit is read: its tokens `first` to `after`, its possible values, scale and suffix."""

    first: int
    after: int
    values: Sequence[float]
    scale: float = 1.0
    suffix: str = ""
    is_name: bool = False


class Measure(NamedTuple):
    """A quantity that people convert: its base, such as length, how many base units its unit is, and how many it is."""

    base: str
    unit: float
    value: float


@dataclass(frozen=True, slots=True)
class Amount:
    """One number of a text.

    Attributes:
        start: Offset in the folded text.
        end: Offset after its last character, unit included.
        value: Its value.
        keys: Forms in which it equals another number.
        kind: What it is.
        approximate: Whether it is said to be approximate.
        years: Whether it counts years.
        measure: Its unit and its value in the base unit, where people convert between units; None elsewhere.
    """

    start: int
    end: int
    value: float
    keys: frozenset[str]
    kind: Kind
    approximate: bool = False
    years: bool = False
    measure: Measure | None = None

    @property
    def strict(self) -> bool:
        """Whether a source would have to state it."""
        return self.kind not in (Kind.NAME, Kind.COUNT) and self.value not in (0, 1)


def _key(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _values(token: str) -> list[float]:
    """Values that a token of digits may have, the most likely first. None of a number that is too long."""
    if len(token) > MAX_DIGITS:
        return []
    plain = token.translate(_SPACES)
    if plain.isdigit():
        return [float(plain)]
    whole, *groups = re.split("[.,]", plain)
    is_grouped = len(groups[-1]) == 3 and all(len(group) in (2, 3) for group in groups)
    joined = float("".join((whole, *groups)))
    if "," in plain and "." in plain:
        separator = max(plain.rfind(","), plain.rfind("."))
        return [float(re.sub("[.,]", "", plain[:separator]) + "." + plain[separator + 1 :])]
    if len(groups) > 1:
        return [joined] if is_grouped else []
    point = float(f"{whole}.{groups[0]}")
    if is_grouped and whole != "0":
        return [joined] if "," in plain else [point, joined]
    return [] if "," in plain and len(groups[0]) > 2 else [point]


_SPACES = str.maketrans("", "", " \u00a0\u202f")


@lru_cache(maxsize=16)  # a claim is read twice: to write it as its sources do, and to compare it with them
def amounts(text: str) -> tuple[Amount, ...]:
    """The numbers of a text, in order.

    >>> [sorted(amount.keys) for amount in amounts("5 kg cost $3 million")]
    [['5', 'mass:5000'], ['3000000', 'money:3000000']]
    """
    folded = fold(text)
    return tuple(_amounts(_blanked(folded))) if _NUMBER.search(folded) else ()


def _blanked(text: str) -> str:
    for marks in (_MARKS, _LIST_NUMBER):
        text = marks.sub(lambda mark: " " * len(mark.group()), text)
    return text


def _amounts(text: str) -> Iterator[Amount]:
    tokens = list(_TOKEN.finditer(text))
    position = 0
    while position < len(tokens):
        token = tokens[position].group()
        if token[0].isdigit():
            amount, position = _in_digits(text, tokens, position)
        elif token in SMALL or (token in ORDINALS):
            amount, position = _in_words(text, tokens, position)
        else:
            amount, position = None, position + 1
        if amount is not None:
            yield amount


def _touches(tokens: Sequence[re.Match[str]], position: int) -> bool:
    """Whether a token begins where the one before it ends."""
    return position < len(tokens) and tokens[position].start() == tokens[position - 1].end()


def _word(tokens: Sequence[re.Match[str]], position: int, text: str) -> str:
    """The word after a number, at most one space, hyphen or bracket further on; empty if there is none."""
    if position >= len(tokens) or position < 1:
        return ""
    gap = text[tokens[position - 1].end() : tokens[position].start()]
    return tokens[position].group() if gap in ("", " ", "-", "\u00a0", "\u202f", " (") else ""


def _in_digits(text: str, tokens: Sequence[re.Match[str]], position: int) -> tuple[Amount | None, int]:
    match = tokens[position]
    values = _values(match.group())
    start, after = match.start(), position + 1
    if not values:
        return None, after
    is_name = _INSIDE_NAME.search(text[max(0, start - 2) : start]) is not None
    scale, suffix = 1.0, ""
    if _touches(tokens, after) and tokens[after].group() in SUFFIXES:
        suffix = tokens[after].group()
    elif (word := _word(tokens, after, text)) in SCALES:
        scale, after = float(SCALES[word]), after + 1
    elif word in ("st", "nd", "rd", "th") and _touches(tokens, after):
        after += 1
    elif word == "s" and _touches(tokens, after):
        after, suffix = after + 1, "s"
    elif _touches(tokens, after) and word not in UNITS and word not in ("am", "pm", "x", "p", "a"):
        is_name = True  # 3D, 5G
    digits = _Digits(position, after, values, scale=scale, suffix=suffix, is_name=is_name)
    return _amount(text, tokens, digits)


def _in_words(text: str, tokens: Sequence[re.Match[str]], position: int) -> tuple[Amount | None, int]:
    total, current, after, is_ordinal = 0, 0, position, False
    last = ""
    while after < len(tokens):
        word = tokens[after].group()
        if after > position and not _word(tokens, after, text):
            break
        if word == "and" and last in SCALES and _word(tokens, after + 1, text) in SMALL:
            after += 1
            continue
        if word in SMALL and not (last in SMALL and not (last in TENS and 0 < SMALL[word] < 10)):
            current += SMALL[word]
        elif word in ORDINALS and (not last or last in TENS):
            current += ORDINALS[word]
            is_ordinal, after = True, after + 1
            break
        elif word in SCALES and last and word != "dozen":
            if SCALES[word] == 100:
                current = max(1, current) * 100
            else:
                total, current = total + max(1, current) * SCALES[word], 0
        else:
            break
        last = word
        after += 1
    value = float(total + current)
    return _amount(text, tokens, _Digits(position, max(after, position + 1), [value], is_name=is_ordinal))


def _amount(text: str, tokens: Sequence[re.Match[str]], digits: _Digits) -> tuple[Amount, int]:
    """The amount with its unit, and the position of the token after it."""
    first, after, values, scale, suffix, _ = digits
    before = tokens[first - 1].group() if first else ""
    value = values[0] * scale * SUFFIXES.get(suffix, 1)
    after += suffix in SUFFIXES
    unit = _word(tokens, after, text)
    if unit == "per" and _word(tokens, after + 1, text) == "cent":
        unit, after = "percent", after + 1
    known = ("money", 1.0) if before in _CURRENCIES else UNITS.get(unit) or UNITS.get(suffix)
    after += unit in UNITS and before not in _CURRENCIES
    keys, measure = _keys(digits, value, unit), None
    if known:
        in_base = (values[0] if known == UNITS.get(suffix) else value) * known[1]
        keys.add(f"{known[0]}:{_key(in_base)}")
        measure = Measure(*known, in_base) if known[0] in MEASURED else None
    elif (heat := _DEGREES.match(text, tokens[after - 1].end())) is not None:
        is_fahrenheit = FAHRENHEIT[heat["scale"]]
        measure = Measure(
            "temperature", 5 / 9 if is_fahrenheit else 1.0, (value - 32) * 5 / 9 if is_fahrenheit else value
        )
        keys.add(f"temperature:{_key(round(measure.value, 1))}")
        while after < len(tokens) and tokens[after].end() <= heat.end():
            after += 1
    nearby = {token.group() for token in tokens[max(0, first - _BEFORE) : first]}
    has_unit = known is not None or measure is not None or unit in COUNTED_UNITS
    amount = Amount(
        start=tokens[first].start(),
        end=tokens[min(after, len(tokens)) - 1].end(),
        value=value,
        keys=frozenset(keys),
        kind=_kind(digits, tokens[first].group(), value, has_unit=has_unit),
        approximate=not APPROXIMATE.isdisjoint(nearby),
        years=known == UNITS["years"] or "aged" in nearby or unit == "old",
        measure=measure,
    )
    return amount, after


def _keys(digits: _Digits, value: float, unit: str) -> set[str]:
    if digits.suffix == "s":  # 1990s
        return {f"{_key(value)}s"}
    if unit == "century":
        return {f"century:{_key(value)}"}
    return {_key(value), *(_key(number * digits.scale) for number in digits.values)}


def _kind(digits: _Digits, token: str, value: float, *, has_unit: bool) -> Kind:
    if digits.is_name:
        return Kind.NAME
    if digits.suffix == "s":
        return Kind.DECADE
    if has_unit or digits.scale != 1.0 or digits.suffix:
        return Kind.QUANTITY
    if token.isdigit() and len(token) == len("2000") and "1000" <= token <= "2100":
        return Kind.YEAR
    return Kind.COUNT if value <= _COUNTED and value == int(value) else Kind.QUANTITY


@dataclass(frozen=True, slots=True)
class StatedAmounts:
    """Numbers that sources state, or that follow from what they state.

    Attributes:
        forms: By each key of a number, how a source writes it.
        values: Values of the numbers that are no years.
        measures: How a source writes each quantity that people convert.
        years: The years.
    """

    forms: Mapping[str, str]
    values: frozenset[float]
    measures: Mapping[Measure, str]
    years: frozenset[int]

    def holds(self, amount: Amount) -> bool:
        """Whether a number is stated as it stands, rounded, in another unit, or as a distance of years."""
        if not amount.keys.isdisjoint(self.forms):
            return True
        if amount.years and any(year + amount.value in self.years for year in self.years):
            return True
        if amount.kind is Kind.YEAR or len(self.values) > _MAX_VALUES:
            return False
        return any(_is_rounded(amount, value) for value in self.values) or self.converted(amount) is not None

    def converted(self, amount: Amount) -> str | None:
        """How a source writes a quantity that the amount has in another unit; None for none."""
        if amount.measure is None or len(self.measures) > _MAX_VALUES:
            return None
        return next((written for other, written in self.measures.items() if _is_converted(amount, other)), None)


def _is_rounded(amount: Amount, value: float) -> bool:
    """Whether a number is a value rounded to its own digits; one that is said to be approximate is within a tenth."""
    if amount.approximate:
        return abs(amount.value - value) <= _NEAR * value
    digits = _digits(amount.value)
    return digits > 1 and float(f"{value:.{digits}g}") == amount.value


def _digits(value: float) -> int:
    return len(_key(value).replace(".", "").strip("0"))


def _is_converted(amount: Amount, source: Measure) -> bool:
    """Whether a quantity is that of a source in another unit, within its own digits.

    >>> five_km = Measure("length", 1000.0, 5000.0)
    >>> [_is_converted(amounts(text)[0], five_km) for text in ("3.1 miles", "4 miles", "5.1 km")]
    [True, False, False]
    """
    own = amount.measure
    if own is None or (own.base, own.unit == source.unit) != (source.base, False):
        return False
    gap = abs(own.value - source.value)
    if own.base == "temperature":
        return gap <= _DEGREE
    by_digits = min(_MOST_CONVERTED, 0.5 * 10.0 ** -(_digits(amount.value) - 1))
    return gap <= max(_CONVERTED, _NEAR if amount.approximate else by_digits) * source.value


def stated(text: str, check: Check = unlimited) -> StatedAmounts:
    """The numbers that a source states, or that follow from what it states; `check` is called after every few.

    >>> forms = stated("In 1971 half of 3,482,113 people were there, on 2024-01-02.").forms
    >>> [key in forms for key in ("1971", "1970s", "50", "january", "1970")]
    [True, True, True, True, False]
    """
    folded = fold(text)
    forms: dict[str, str] = {}
    years: set[int] = set()
    values: set[float] = set()
    measures: dict[Measure, str] = {}
    for index, amount in enumerate(_amounts(folded)):
        if index % _CHECKED_AFTER == 0:
            check()
        written = folded[amount.start : amount.end]
        for key in amount.keys:
            forms.setdefault(key, written)
        if amount.kind in (Kind.YEAR, Kind.DECADE):
            years.add(int(amount.value))
        else:
            values.add(amount.value)
        if amount.measure:
            measures.setdefault(amount.measure, written)
    return StatedAmounts({**implied_amounts(folded, years), **forms}, frozenset(values), measures, frozenset(years))


def months_of(text: str) -> dict[str, str]:
    """Months of the dates of a text, by their English names, as they are written: a month next to a number.

    >>> months_of("on 5 Jan 2024; it may rain in March")
    {'january': 'jan'}
    """
    tokens = _TOKEN.findall(fold(text)) if _DIGITS.search(text) else []
    kept: dict[str, str] = {}
    for place, token in enumerate(tokens):
        month = MONTHS.get(token) or SHORT_MONTHS.get(token)
        around: Iterable[str] = (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2])
        if month and any(neighbour[0].isdigit() for neighbour in around):
            kept[month_name(month)] = token
    return kept


def rewritten(text: str, sources: StatedAmounts, held: AbstractSet[str]) -> str:
    """A claim with its numbers and months as a source writes them, where the source writes them otherwise.

    >>> rewritten("The bag weighs 5 kg (11 lb).", stated("It is 5,000 g."), frozenset())
    'The bag weighs 5,000 g (5,000 g).'
    """
    folded = fold(text)
    if len(folded) != len(text):
        return text
    parts, position = [], 0
    for amount in _amounts(_blanked(folded)):
        own = frozenset(terms(folded[amount.start : amount.end]))
        if own <= held or amount.start < position:
            continue
        keys = sorted(amount.keys, key=lambda key: (":" not in key, key))
        form = next((sources.forms[key] for key in keys if key in sources.forms), sources.converted(amount))
        if form is not None:
            parts += [text[position : amount.start], form]
            position = amount.end
    changed = "".join((*parts, text[position:]))
    for month, word in months_of(text).items():
        if month in sources.forms and term(word) not in held:
            changed = re.sub(rf"\b{word}\b", sources.forms[month], changed, flags=re.IGNORECASE)
    return changed
