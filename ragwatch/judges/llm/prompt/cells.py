"""Decides what each context is to a claim from the quotes of a reply, as the other judges do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragwatch.core.alphabet import unicode14
from ragwatch.core.evidence import Cell
from ragwatch.core.support_set import informed_cells, support_cells
from ragwatch.judges.lexical.features import ClaimWords, claim_words
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.lexical.use import informed_by
from ragwatch.judges.lexical.words import identifiers, terms
from ragwatch.judges.llm.prompt.units import SampleUnits

_ALMOST_ALL = 0.9
"""A context that has this share of the words that all quoted contexts share with a claim supports it alone."""


@dataclass(frozen=True)
class CellReader:
    """Reads the cells of the claims of one sample.

    Attributes:
        units: The sample.
        isolated: Whether each context was read in a call of its own: then each that was quoted supports alone.
    """

    units: SampleUnits
    isolated: bool

    def cells(self, claim: str, quotes: Mapping[int, str], *, supported: bool) -> tuple[Cell | None, ...]:
        """Cells of a claim.

        Args:
            claim: Its text.
            quotes: The verbatim quote of each context that supports it.
            supported: Whether it is supported.
        """
        ranks = sorted(quotes)
        if supported:
            alone = ranks if self.isolated or len(ranks) == 1 else self._alone(claim, ranks)
            return support_cells(len(self._contexts), alone, ranks)
        words = _words(claim)
        shared = [words.rarity.keys() & names for names in self._contexts]
        return informed_cells(len(self._contexts), informed_by(words, shared, self._question))

    def _alone(self, claim: str, ranks: Sequence[int]) -> list[int]:
        """The quoted contexts that share with the claim almost all that all of them share with it."""
        rarity = _words(claim).rarity
        union = frozenset().union(*(self._contexts[rank] for rank in ranks))
        least = _ALMOST_ALL * _weight(rarity, union)
        return [rank for rank in ranks if _weight(rarity, self._contexts[rank]) >= least]

    @cached_property
    def _contexts(self) -> list[frozenset[str]]:
        return [_terms(context.text) for context in self.units.sample.contexts]

    @cached_property
    def _question(self) -> frozenset[str]:
        return _terms(self.units.question or "")


def _terms(text: str) -> frozenset[str]:
    text = unicode14(text)
    return frozenset(terms(text)) | identifiers(text)


def _words(claim: str) -> ClaimWords:
    return claim_words(unicode14(claim), shipped().rarity)


def _weight(rarity: Mapping[str, float], names: frozenset[str]) -> float:
    return math.fsum([weight for name, weight in rarity.items() if name in names])
