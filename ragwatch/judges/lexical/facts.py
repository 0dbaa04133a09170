"""Finds the numbers, dates and names of a claim that no source holds, in any of their forms.

A name is a capitalised word inside a sentence. A source holds it in another form when a word of the source begins alike
(`German`, `Germany`), or when it is made of the source's initials (`UN`, `United Nations`).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.words import MONTHS, SHORT_MONTHS, STOP_WORDS, TOKEN, fold, term, terms, word_set
from ragwatch.judges.lexical.amounts import Amount, Kind, amounts
from ragwatch.judges.lexical.rates import StatedRates, says_rate
from ragwatch.judges.lexical.stated_amounts import StatedAmounts, follows, months_of, rewritten, stated
from ragwatch.judges.lexical.tables import FittedTables, logistic, logit

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_AFTER_STOP = re.compile(r"(?:^|[.!?:;“\"(\n*•-])\s*$")
_INSIDE_NAMES = word_set("of the de la le van von der den and for")
_MIN_TITLE_WORDS = 3
_TITLE_SHARE = 0.7
_PREFIX = 4
_MAX_PREFIX = 40  # a longer beginning is no abbreviation; without a limit, the time would be quadratic in a long word
MONTH_TERMS = frozenset(map(term, (*MONTHS, *SHORT_MONTHS)))
_ALIASES: Mapping[str, frozenset[str]] = {
        form: frozenset(entry.split())
        for entry in (
            "french france", "dutch netherland holland", "spanish spain spaniard", "swiss switzerland", "greek greece",
            "welsh wale", "danish denmark dane", "polish poland pole", "american america usa unit",
            "british britain uk",
            "european europ eu", "german germany", "irish ireland", "scottish scotland scot", "christmas xmas",
        )
        for form in entry.split()
    }  # fmt: skip


class Names(NamedTuple):
    """Names of a claim, by their terms, as they stand. Sources may call its `subject` "he" or "the company"."""

    subject: Mapping[str, str]
    others: Mapping[str, str]


def names_of(text: str, listed: AbstractSet[str], proper: AbstractSet[str]) -> Names:
    """The names of a claim, without the first word, months, and listed terms (of the table of rarity) but proper ones.

    >>> names_of("It was founded in Zurich by Anna Keller.", frozenset(), frozenset()).others
    {'zurich': 'Zurich', 'anna': 'Anna', 'keller': 'Keller'}
    >>> names_of("Anna Keller founded it in Zurich.", frozenset(), frozenset())
    Names(subject={'keller': 'Keller'}, others={'zurich': 'Zurich'})
    """
    subject: dict[str, str] = {}
    others: dict[str, str] = {}
    words = list(_WORD.finditer(text))
    capitals = sum([word.group()[0].isupper() for word in words])
    if len(words) > _MIN_TITLE_WORDS and capitals > _TITLE_SHARE * len(words):
        return Names(subject, others)
    is_subject = True
    for place, word in enumerate(words):
        name = word.group()
        if not name[0].isupper():
            is_subject = is_subject and (place == 0 or name in _INSIDE_NAMES)
            continue
        if place and _AFTER_STOP.search(text[max(0, word.start() - 3) : word.start()]):
            continue
        key = _name_term(name, listed, proper)
        if key and place:
            (subject if is_subject else others).setdefault(key, name)
    return Names(subject, {key: name for key, name in others.items() if key not in subject})


def _name_term(name: str, listed: AbstractSet[str], proper: AbstractSet[str]) -> str:
    """The term of a name; empty for a word that is none."""
    if len(name) < 2 or not name.replace("'", "").replace("’", "").isalpha() or fold(name) in STOP_WORDS:
        return ""
    key = term(fold(name))
    return "" if key in MONTH_TERMS or (key in listed and key not in proper) else key


def missing(names: Mapping[str, str], held: AbstractSet[str], prefixes: AbstractSet[str]) -> set[str]:
    """Terms of the names that are in no source, in no form, given terms and `prefixes_of` the sources."""
    return {key for key, name in names.items() if key not in held and not _has_form(key, name, prefixes, held)}


def _has_form(key: str, name: str, prefixes: AbstractSet[str], held: AbstractSet[str]) -> bool:
    if not _ALIASES.get(key, frozenset()).isdisjoint(held):
        return True
    if name.isupper() and len(name) <= 5:
        return f"^{name.lower()}" in prefixes
    return len(key) >= _PREFIX and key[: max(_PREFIX, len(key) - 3)] in prefixes


def prefixes_of(terms: Iterable[str], text: str) -> frozenset[str]:
    """Beginnings of the terms of a source, and the initials of its capitalised words in a row."""
    beginnings: set[str] = set()
    for name in terms:
        beginnings.update(name[:length] for length in range(_PREFIX, min(len(name), _MAX_PREFIX) + 1))
    for run in re.finditer(r"(?:[A-Z][\w'’]*(?:[ -](?:of|and|for|the|de) |[ -])){1,6}[A-Z][\w'’]*", text):
        capitals = "".join(re.findall(r"\b[A-Z]", run.group())).lower()
        beginnings.update(
            f"^{capitals[start:end]}" for start in range(len(capitals)) for end in range(start + 2, len(capitals) + 1)
        )
    return frozenset(beginnings)


WEIGHTS = (4.0, 0.5, 1.5, 0.5)
"""What a missing fact takes from the logit of support: a number, a count, a name, a name that begins a claim."""

UNSUPPORTED = 0.3
"""A claim with a number that no source states is at most so probable: below the thresholds of the embedded judges."""

_BELOW = 0.98  # of the threshold, for a fragment whose words stand apart
_MOST = 2  # facts of a kind that count


class MissingFacts(NamedTuple):
    """Facts of a claim that no source holds."""

    numbers: int = 0  # numbers, months of dates, and times of rates, that a source would have to state
    counts: int = 0  # numbers that may have been counted
    names: int = 0
    subjects: int = 0  # names that the claim begins with
    apart: bool = False  # whether its words stand together in no sentence though it is a bare fragment


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
        self._texts = texts
        self._text = "\n".join((*texts, question))
        self._held = frozenset(terms(question)).union(*held)
        self._tables = tables
        self._check = check

    @cached_property
    def _stated(self) -> StatedAmounts:
        return stated(self._text, self._check)

    @cached_property
    def _rates(self) -> StatedRates:
        return StatedRates("\n".join(self._texts), self._check)

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return prefixes_of(self._held, self._text)

    def missing(self, claim: str, sentence: str = "") -> MissingFacts:
        """The facts of a claim that are missing. A number computed from others of its sentence counts as stated.

        >>> from ragwatch.judges.lexical.tables import shipped
        >>> sources = Sources(["Founded in Bern in 1971."], "", [frozenset({"found", "bern", "1971"})], shipped())
        >>> stated = sources.missing("Founded in Bern in 1971.") == NOTHING_MISSING
        >>> sources.missing("It was founded in Zurich in 1972."), stated
        (MissingFacts(numbers=1, counts=0, names=1, subjects=0, apart=False), True)
        """
        self._check()
        said = [amount for amount in amounts(claim) if amount.value not in (0, 1) and amount.kind is not Kind.NAME]
        lost = [amount for amount in said if not (self._has(amount) or self._is_computed(amount, sentence or claim))]
        months = {
            month
            for month, word in months_of(claim).items()
            if self._held.isdisjoint((term(month), term(word))) and month not in self._stated.forms
        }
        names = names_of(claim, self._tables.rarity.keys(), self._tables.names)
        others = self._lost(names.others)
        strict = "=" not in claim
        rates = says_rate(claim) and self._rates.contradict(claim)
        return MissingFacts(
            numbers=strict * (sum(amount.strict for amount in lost) + len(months) + rates),
            counts=sum(not (strict and amount.strict) for amount in lost),
            names=len(others),
            subjects=len(self._lost(names.subject) - others),
        )

    def _has(self, amount: Amount) -> bool:
        """Whether a source has a number, in the unit of the claim where it says one."""
        is_held = not amount.keys.isdisjoint(self._held)
        return (is_held and not (amount.units and self._stated.has_other_unit(amount))) or self._stated.holds(amount)

    def _is_computed(self, amount: Amount, sentence: str) -> bool:
        """Whether a number is computed from numbers of its sentence that a source states."""
        if not amount.strict or amount.kind is Kind.YEAR:
            return False
        return follows(amount, [*filter(self._has, amounts(sentence))], TOKEN.findall(fold(sentence)))

    def _lost(self, names: Mapping[str, str]) -> set[str]:
        return set() if names.keys() <= self._held else missing(names, self._held, self._prefixes)

    def rewritten(self, claim: str, sentence: str = "") -> str:
        """A claim with its numbers as the sources write them; those that it computes are left out.

        >>> from ragwatch.judges.lexical.tables import shipped
        >>> Sources(["Founded on 2024-01-02."], "", [], shipped()).rewritten("Founded on 2 Jan 2024.")
        'Founded on 02 01 2024.'
        """
        text = fold(claim)
        numbers = amounts(claim)
        words = [text[amount.start : amount.end] for amount in numbers]
        if all(self._held.issuperset(terms(word)) for word in (*words, *months_of(claim).values())):
            return claim
        lost = (amount for amount in numbers if not self._has(amount))
        computed = [amount for amount in lost if self._is_computed(amount, sentence or claim)]
        for amount in reversed(computed) if len(text) == len(claim) else ():
            claim = claim[: amount.start] + claim[amount.end :]
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
