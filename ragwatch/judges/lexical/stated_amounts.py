"""Compares the numbers, quantities and dates of a claim with those that sources state, as they write them."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.words import (
    MAX_DIGITS,
    MONTHS,
    OTHER_NAMES,
    ROMAN,
    SHORT_MONTHS,
    UNITS,
    fold,
    month_name,
    term,
    terms,
)
from ragwatch.judges.lexical.amounts import TOKEN, Amount, Kind, Measure, amounts, amounts_in, number_text

_CHECKED_AFTER = 256  # numbers
_MAX_VALUES = 2_000  # with more different numbers in the sources, only equal ones are looked for
_NEAR = 0.1
_MOST_OPERANDS = 8
_CONVERTED = 0.01
_MOST_CONVERTED = 0.05  # however few digits a converted number has
_DEGREE = 0.6  # Celsius, of a converted temperature
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
_DATE = re.compile(r"\b\d{4}[-/.](\d{1,2})[-/.]\d{1,2}\b|\b(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}\b")
_YEARS = re.compile(r"\b((?:19|20)\d\d)[-–/](\d\d)\b")


@dataclass(frozen=True, slots=True)
class StatedAmounts:
    """Numbers that sources state, or that follow from what they state."""

    forms: Mapping[str, str]  # by each key of a number, how a source writes it
    values: frozenset[float]  # values of the numbers that are no years
    measures: Mapping[Measure, str]  # how a source writes each quantity that people convert
    years: frozenset[int]
    with_units: AbstractSet[str]  # numbers that they state with a unit wherever they do

    def has_other_unit(self, amount: Amount) -> bool:
        """Whether a number is stated with other units only: 10 minutes where a source says 10 seconds.

        "More than 100 years" is no other than 100 centuries.
        """
        if not amount.units or self.with_units.isdisjoint(amount.keys) or not amount.units.isdisjoint(self.forms):
            return False
        base, size = amount.size
        same = (key.partition(":")[2] for key in self.forms if amount.approximate and key.startswith(f"{base}:"))
        is_other = amount.keys & self.forms.keys() <= self.with_units and self.converted(amount) is None
        return is_other and (base == "clock" or all(float(value) < size for value in same))

    def holds(self, amount: Amount) -> bool:
        """Whether a number is stated as it stands, rounded, in another unit, or as a distance of years."""
        if amount.years and any(year + amount.value in self.years for year in self.years):
            return True
        if not amount.keys.isdisjoint(self.forms):
            return not self.has_other_unit(amount)
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


def follows(amount: Amount, others: Sequence[Amount], words: Iterable[str] = ()) -> bool:
    """Whether a number is the sum, difference, product or ratio of others of its sentence.

    Sums and differences have the unit of what they are made of, a product that of one of its two numbers. `words` are
    those of the sentence: a month and a year make 12 a number of it.

    >>> texts = "Of 41 EUR and 44 EUR, 85 EUR", "6 of 200 mg are 1.2 g", "6 EUR and 3 EUR are 8 EUR"
    >>> [follows(one, others) for *others, one in map(amounts, texts)]
    [True, True, False]
    """
    base, value = amount.size
    sizes = [one.size for one in others if one.keys.isdisjoint(amount.keys)]
    periods = {UNITS[word] for word in words if UNITS.get(word, ("",))[0] in ("months", "time")}
    sizes += [("", one / other) for kind, one in periods for same, other in periods if kind == same and one > other]
    if not 2 <= len(sizes) <= _MOST_OPERANDS or base == "clock":
        return False
    results = [math.fsum(number for kind, number in sizes if kind == base)]
    for (one, first), (other, second) in combinations(sizes, 2):
        if one == other == base:
            results += [first + second, abs(first - second)]
        if {one, other} == {"", base}:
            results.append(first * second)
        if one == other and base in ("", "share") and first and second:
            ratios = first / second, second / first
            results += [100.0 * share for ratio in ratios for share in (ratio, abs(ratio - 1.0))] if base else ratios
    digits = max(2, _digits(value))
    return any(math.isclose(value, result) or float(f"{result:.{digits}g}") == value for result in results)


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
    bare, with_units = set[str](), set[str]()
    for index, amount in enumerate(amounts_in(folded)):
        if index % _CHECKED_AFTER == 0:
            check()
        written = folded[amount.start : amount.end]
        for key in amount.keys:
            forms.setdefault(key, written)
        (with_units if amount.units else bare).update(amount.keys)
        if amount.kind in (Kind.YEAR, Kind.DECADE):
            years.add(int(amount.value))
        else:
            values.add(amount.value)
        if amount.measure:
            measures.setdefault(amount.measure, written)
    implied = {**_implied(folded, years), **forms}
    return StatedAmounts(implied, frozenset(values), measures, frozenset(years), with_units - bare)


def _implied(folded: str, years: AbstractSet[int]) -> dict[str, str]:
    """Numbers and months that follow from what a folded source states, and how it writes them."""
    implied: dict[str, str] = {}
    for year in years:
        implied |= dict.fromkeys(
            (f"{year // 10 * 10}s", f"century:{(year + 99) // 100}", f"{year // 100 * 100}s"), str(year)
        )
    implied |= {f"{first[:2]}{last}": last for first, last in _YEARS.findall(folded)}
    implied |= {str(int(number)): number for number in _DIGITS.findall(folded) if len(number) <= MAX_DIGITS}
    for word in dict.fromkeys(_LETTERS.findall(folded)):  # in order, so that a reading is the same in every process
        implied |= dict.fromkeys(OTHER_NAMES.get(word, ()), word)
        if word in ROMAN:
            implied[str(ROMAN[word])] = word
        month = MONTHS.get(word) or SHORT_MONTHS.get(word)
        if month:
            implied |= {str(month): word, month_name(month): word}
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
