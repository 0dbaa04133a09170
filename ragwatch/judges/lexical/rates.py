"""Reads per which time something is said to be: "5 euros per month", "a daily limit of 5", "is inspected yearly".

The time is one word, which weighs little among the others of a claim. So it is compared by itself: that of a number
with those that sources say of the same number, and one without a number with those of sentences like the claim.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.words import fold, terms
from ragwatch.judges.lexical.amounts import amounts_in

_FORMS = {
    "second": "second sec",
    "minute": "minute min",
    "hour": "hour hr h hourly",
    "day": "day daily",
    "week": "week wk weekly",
    "month": "month mo monthly",
    "quarter": "quarter quarterly",
    "year": "year yr annum yearly annual annually",
}
_PERIODS = {form: period for period, forms in _FORMS.items() for form in forms.split()}
_ADVERBS = "|".join(form for form in _PERIODS if form.endswith(("ly", "annual")))
_UNITS = "|".join(form for form in _PERIODS if not form.endswith(("ly", "annual")))
_AFTER = re.compile(rf"(?:[ -]?[^\W\d_]+){{0,2}}? ?(?:(?:/|\b(?:per|an?|each|every)) ?({_UNITS})|({_ADVERBS}))\b")
_BEFORE = re.compile(rf"\b({_ADVERBS})\b(?:[ -][^\W\d_]+){{0,4}} ?[$€£¥₹]?$")
_ALONE = re.compile(rf"\b(?:(?:per|each|every|(?:once|twice|times) an?) ({_UNITS})|({_ADVERBS}))\b")
_NAMED = re.compile(rf"\b(?:{'|'.join(_PERIODS)}|{'|'.join(f'{period}s' for period in _FORMS)})\b")
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_MAX_BEFORE = 60  # characters before a number
_ALIKE = 0.6  # share of the terms of a claim that a sentence about the same thing has


class Rate(NamedTuple):
    """What is said per time: the forms of a number, or none, and the period."""

    keys: frozenset[str]
    period: str


def rates_in(folded: str) -> Iterator[Rate]:
    """Yield the numbers of a folded text with the period that each is said for, empty for none; then periods alone.

    >>> [rate.period for rate in rates_in("it costs 12 euros a month, and the annual limit is 40 visits.")]
    ['month', 'year', 'year']
    >>> [rate.period for rate in rates_in("it is inspected every week.")]
    ['week']
    """
    for amount in amounts_in(folded):
        before = folded[max(0, amount.start - _MAX_BEFORE) : amount.start]
        match = _AFTER.match(folded, amount.end) or _BEFORE.search(before)
        yield Rate(amount.keys, _period(match) if match else "")
    for alone in _ALONE.finditer(folded):
        yield Rate(frozenset(), _period(alone))


def _period(match: re.Match[str]) -> str:
    return _PERIODS[match[match.lastindex or 0]]


class StatedRates:
    """The rates that sources state."""

    def __init__(self, text: str, check: Check = unlimited) -> None:
        self._of_numbers: dict[str, set[str]] = {}
        self._sentences: list[tuple[frozenset[str], bool, set[str]]] = []  # terms, whether a rate is said, periods
        for sentence in _SENTENCES.split(fold(text)):
            check()
            if not _NAMED.search(sentence) and not any(map(str.isdigit, sentence)):
                continue
            rates = list(rates_in(sentence))
            for rate in rates:
                for key in rate.keys:
                    self._of_numbers.setdefault(key, set()).add(rate.period)
            named = {_PERIODS.get(word) or word[:-1] for word in _NAMED.findall(sentence)}
            self._sentences.append((frozenset(terms(sentence)), any(rate.period for rate in rates), named))

    def contradict(self, claim: str) -> bool:
        """Whether a rate of a claim is said of another period only.

        >>> stated = StatedRates("It costs 5 euros per year. The filter is changed monthly.")
        >>> [stated.contradict(text) for text in ("It is 5 euros per month.", "It is 5 euros a year.", "It is 5.")]
        [True, False, False]
        >>> [stated.contradict(f"The filter is changed {often}.") for often in ("daily", "every month", "often")]
        [True, False, False]
        """
        folded = fold(claim)
        for rate in rates_in(folded):
            said = {period for key in rate.keys for period in self._of_numbers.get(key, ())}
            if rate.period and said and said.isdisjoint(("", rate.period)):
                return True
            if not rate.keys and self._is_otherwise(folded, rate.period):
                return True
        return False

    def _is_otherwise(self, folded: str, period: str) -> bool:
        """Whether sentences like a claim say how often, and none of them names its period."""
        own = frozenset(terms(_NAMED.sub(" ", folded)))
        alike = [one for one in self._sentences if own and len(own & one[0]) >= _ALIKE * len(own)]
        return any(has_rate for _, has_rate, _ in alike) and all(period not in named for _, _, named in alike)


def says_rate(claim: str) -> bool:
    """Whether a claim names a period at all; most do not, and then sources are not read for it."""
    return _NAMED.search(fold(claim)) is not None
