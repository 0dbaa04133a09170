"""Numbers and months that follow from what a source states: a decade from a year, 17 from 5 p.m."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from ragwatch.judges.claims.number_words import MONTHS, OTHER_NAMES, ROMAN, SHORT_MONTHS, month_name

MAX_DIGITS = 24
"""A longer run of digits is a name."""

_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.]\d\d)? ?(?:p\.?m|h\b)|\b(?=\d{1,2}[:h]\d\d)(\d{1,2})")
_DATE = re.compile(r"\b\d{4}[-/.](\d{1,2})[-/.]\d{1,2}\b|\b(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}\b")
_YEARS = re.compile(r"\b((?:19|20)\d\d)[-–/](\d\d)\b")


def implied_amounts(folded: str, years: AbstractSet[int]) -> dict[str, str]:
    """Numbers and months that follow from what a folded source states, and how it writes them."""
    implied: dict[str, str] = {}
    for year in years:
        implied |= dict.fromkeys(
            (f"{year // 10 * 10}s", f"century:{(year + 99) // 100}", f"{year // 100 * 100}s"), str(year)
        )
    implied |= {f"{first[:2]}{last}": last for first, last in _YEARS.findall(folded)}
    implied |= {str(int(number)): number for number in _DIGITS.findall(folded) if len(number) <= MAX_DIGITS}
    for word in frozenset(_LETTERS.findall(folded)):
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
