"""Finds the numbers, dates and names of a claim that no source holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.words import fold, term, terms
from ragwatch.judges.lexical.amounts import Kind, amounts
from ragwatch.judges.lexical.names import missing, names_of, prefixes_of
from ragwatch.judges.lexical.stated_amounts import StatedAmounts, months_of, rewritten, stated
from ragwatch.judges.lexical.tables import FittedTables, logistic, logit

WEIGHTS = (4.0, 0.5, 1.5, 0.5)
"""What a missing fact takes from the logit of support: a number, a count, a name, a name that begins a claim."""

UNSUPPORTED = 0.3
"""A claim with a number that no source states is at most so probable: below the thresholds of the embedded judges."""

_BELOW = 0.98  # of the threshold, for a fragment whose words stand apart
_MOST = 2  # facts of a kind that count


class MissingFacts(NamedTuple):
    """Facts of a claim that no source holds.

    Attributes:
        numbers: Numbers, and months of dates, that a source would have to state.
        counts: Numbers that may have been counted.
        subjects: Names that the claim begins with.
        apart: Whether its words stand together in no sentence though it is a bare fragment.
    """

    numbers: int = 0
    counts: int = 0
    names: int = 0
    subjects: int = 0
    apart: bool = False


NOTHING_MISSING = MissingFacts()


class Sources:
    """What the contexts and the question state. It is read as far as claims need it."""

    def __init__(
        self,
        texts: Sequence[str],
        question: str,
        held: Iterable[frozenset[str]],
        tables: FittedTables,
        check: Check = unlimited,
    ) -> None:
        self._text = "\n".join((*texts, question))
        self._held = frozenset(terms(question)).union(*held)
        self._tables = tables
        self._check = check

    @cached_property
    def _stated(self) -> StatedAmounts:
        return stated(self._text, self._check)

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return prefixes_of(self._held, self._text)

    def missing(self, claim: str) -> MissingFacts:
        """The facts of a claim that are missing.

        >>> from ragwatch.judges.lexical.tables import shipped
        >>> sources = Sources(["Founded in Bern in 1971."], "", [frozenset({"found", "bern", "1971"})], shipped())
        >>> stated = sources.missing("Founded in Bern in 1971.") == NOTHING_MISSING
        >>> sources.missing("It was founded in Zurich in 1972."), stated
        (MissingFacts(numbers=1, counts=0, names=1, subjects=0, apart=False), True)
        """
        self._check()
        unlisted = [
            amount for amount in amounts(claim) if amount.value not in (0, 1) and amount.keys.isdisjoint(self._held)
        ]
        lost = [amount for amount in unlisted if amount.kind is not Kind.NAME and not self._stated.holds(amount)]
        months = {
            month
            for month, word in months_of(claim).items()
            if self._held.isdisjoint((term(month), term(word))) and month not in self._stated.forms
        }
        names = names_of(claim, self._tables.rarity.keys(), self._tables.names)
        others = self._lost(names.others)
        strict = "=" not in claim
        return MissingFacts(
            numbers=strict * (sum(amount.strict for amount in lost) + len(months)),
            counts=sum(not (strict and amount.strict) for amount in lost),
            names=len(others),
            subjects=len(self._lost(names.subject) - others),
        )

    def _lost(self, names: Mapping[str, str]) -> set[str]:
        if all(name in self._held for name in names):
            return set()
        return missing(names, self._held, self._prefixes)

    def rewritten(self, claim: str) -> str:
        """A claim with its numbers as the sources write them.

        >>> from ragwatch.judges.lexical.tables import shipped
        >>> Sources(["Founded on 2024-01-02."], "", [], shipped()).rewritten("Founded on 2 Jan 2024.")
        'Founded on 02 01 2024.'
        """
        text = fold(claim)
        words = [text[amount.start : amount.end] for amount in amounts(claim)]
        if all(self._held.issuperset(terms(word)) for word in (*words, *months_of(claim).values())):
            return claim
        return rewritten(claim, self._stated, self._held)


def missing_weight(missing: MissingFacts) -> float:
    """What facts that no source holds take from the logit of support.

    The weights are chosen by measurement (`training/README.md`), not fitted: a number that no source states makes a
    claim unsupported whatever its other words; a name weighs as it does to people.

    >>> missing_weight(MissingFacts(counts=5, names=1))
    2.5
    """
    counts = missing[: len(WEIGHTS)]
    return math.fsum(cost * min(_MOST, count) for cost, count in zip(WEIGHTS, counts, strict=True))


def lowered(probability: float, missing: MissingFacts) -> float:
    """A probability of support by words, lowered by the facts that no source holds.

    >>> round(lowered(0.9, MissingFacts(names=1)), 2), round(lowered(0.99, MissingFacts(numbers=1)), 2)
    (0.67, 0.3)
    """
    weight = missing_weight(missing)
    return capped(min(probability, logistic(logit(probability) - weight)), missing) if weight else probability


def capped(probability: float, missing: MissingFacts) -> float:
    """A probability of support, at most `UNSUPPORTED` if no source states a number of the claim.

    >>> capped(0.9, MissingFacts(numbers=1)), capped(0.9, MissingFacts(names=1))
    (0.3, 0.9)
    """
    return min(probability, UNSUPPORTED) if missing.numbers else probability


def below(probability: float, missing: MissingFacts, threshold: float) -> float:
    """A probability of support, below the threshold of support if the words of a bare fragment stand apart.

    >>> below(0.9, MissingFacts(apart=True), 0.5), below(0.9, NOTHING_MISSING, 0.5)
    (0.49, 0.9)
    """
    return min(probability, _BELOW * threshold) if missing.apart else probability
