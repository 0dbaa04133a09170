"""Compares the numbers, quantities and dates of a claim with those that sources state, as they write them."""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.words import (
    MAX_DIGITS,
    MONTHS,
    OTHER_NAMES,
    ROMAN,
    SHORT_MONTHS,
    fold,
    month_name,
    term,
    terms,
)
from ragwatch.judges.lexical.amounts import TOKEN, Amount, Kind, Measure, amounts, amounts_in, number_text

_CHECKED_AFTER = 256  # numbers
_MAX_VALUES = 2_000  # with more different numbers in the sources, only equal ones are looked for
_NEAR = 0.1
_CONVERTED = 0.01
_MOST_CONVERTED = 0.05  # however few digits a converted number has
_DEGREE = 0.6  # Celsius, of a converted temperature
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.]\d\d)? ?(?:p\.?m|h\b)|\b(?=\d{1,2}[:h]\d\d)(\d{1,2})")
_DATE = re.compile(r"\b\d{4}[-/.](\d{1,2})[-/.]\d{1,2}\b|\b(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}\b")
_YEARS = re.compile(r"\b((?:19|20)\d\d)[-–/](\d\d)\b")


@dataclass(frozen=True, slots=True)
class StatedAmounts:
    """Numbers that sources state, or that follow from what they state."""

    forms: Mapping[str, str]  # by each key of a number, how a source writes it
    values: frozenset[float]  # values of the numbers that are no years
    measures: Mapping[Measure, str]  # how a source writes each quantity that people convert
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
    return len(number_text(value).replace(".", "").strip("0"))


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
    """The numbers that a source states, or that follow from them: a decade from a year, 17 from 5 p.m.

    >>> forms = stated("In 1971 half of 3,482,113 people were there, on 2024-01-02.").forms
    >>> [key in forms for key in ("1971", "1970s", "50", "january", "1970")]
    [True, True, True, True, False]
    """
    folded = fold(text)
    forms: dict[str, str] = {}
    years: set[int] = set()
    values: set[float] = set()
    measures: dict[Measure, str] = {}
    for index, amount in enumerate(amounts_in(folded)):
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
    return StatedAmounts({**_implied(folded, years), **forms}, frozenset(values), measures, frozenset(years))


def _implied(folded: str, years: AbstractSet[int]) -> dict[str, str]:
    """Numbers and months that follow from what a folded source states, and how it writes them."""
    implied: dict[str, str] = {}
    for year in years:
        implied |= dict.fromkeys(
            (f"{year // 10 * 10}s", f"century:{(year + 99) // 100}", f"{year // 100 * 100}s"), str(year)
        )
    implied |= {f"{first[:2]}{last}": last for first, last in _YEARS.findall(folded)}
    implied |= {str(int(number)): number for number in _DIGITS.findall(folded) if len(number) <= MAX_DIGITS}
    for word in dict.fromkeys(
        _LETTERS.findall(folded)
    ):  # in their order, so that a reading is the same in every process
        implied |= dict.fromkeys(OTHER_NAMES.get(word, ()), word)
        if word in ROMAN:
            implied[str(ROMAN[word])] = word
        month = MONTHS.get(word) or SHORT_MONTHS.get(word)
        if month:
            implied |= {str(month): word, month_name(month): word}
    for clock in _CLOCK.finditer(folded):
        hour = int(clock[1] or clock[2])
        if hour < 24:
            implied[str(hour + 12 if hour < 12 else hour - 12)] = clock[1] or clock[2]
    for date in _DATE.finditer(folded):
        implied |= {month_name(int(part)): part for part in date.groups() if part and 1 <= int(part) <= len(MONTHS)}
    return implied


def months_of(text: str) -> dict[str, str]:
    """Months of the dates of a text, by their English names, as they are written: a month next to a number.

    >>> months_of("on 5 Jan 2024; it may rain in March")
    {'january': 'jan'}
    """
    tokens = TOKEN.findall(fold(text)) if _DIGITS.search(text) else []
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
    for amount in amounts(text):
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
