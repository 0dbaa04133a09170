"""Decides what each context is to a claim from the quotes of a reply, as the other judges do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from ragwatch.judges.claims.words import identifiers, terms
from ragwatch.judges.lexical.features import ClaimWords, claim_words
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.lexical.use import informed_by
from ragwatch.judges.llm.prompt.units import SampleUnits
from ragwatch.model.evidence import Cell, informed_cells, support_cells
from ragwatch.statistics.text.alphabet import visible_text

_ALMOST_ALL = 0.9
"""If one context has this share of what all quoted contexts share with a claim, each of them supports it alone."""
_MOST = 2.0 / 3.0
"""The same where the reply says so. With less, each has but a part of the claim, whatever the reply says."""


@dataclass(frozen=True)
class CellReader:
    """Reads the cells of the claims of one sample. Isolated: each context was read alone, so a quoted one supports."""

    units: SampleUnits
    isolated: bool

    def cells(
        self,
        claim: str,
        quotes: Mapping[int, str],
        *,
        supported: bool,
        jointly: bool | None = None,
        informed: Mapping[int, str] = MappingProxyType({}),
    ) -> tuple[Cell | None, ...]:
        """Cells of a claim.

        Args:
            claim: Its text.
            quotes: The verbatim quote of each context that supports it.
            supported: Its verdict.
            jointly: Whether the reply says that only several contexts together support it; None if it does not say.
            informed: The verbatim quote of each context that the reply takes an unsupported claim to be taken from. One
                that has no word of the claim beyond those of the question does not count.
        """
        ranks, contexts = sorted(quotes), len(self.units.folded)
        if supported:
            least = _ALMOST_ALL if jointly is None else _MOST
            alone = self.isolated or (not jointly and self._one_suffices(claim, ranks, least))
            return support_cells(contexts, ranks if alone else (), ranks)
        words = _words(claim)
        specific = words.rarity.keys() - self._question
        if named := [rank for rank, quote in informed.items() if specific & _terms(quote)]:
            return informed_cells(contexts, named)
        shared = [words.rarity.keys() & names for names in self._contexts]
        return informed_cells(contexts, informed_by(words, shared, self._question))

    def _one_suffices(self, claim: str, ranks: Sequence[int], share: float) -> bool:
        """Whether one of the quoted contexts has this share of what they together share with the claim.

        If none has, the reply quotes them because only together they support the claim.
        """
        if len(ranks) == 1:
            return True
        rarity = _words(claim).rarity
        union: frozenset[str] = frozenset().union(*(self._contexts[rank] for rank in ranks))
        least = share * _weight(rarity, union)
        return any(_weight(rarity, self._contexts[rank]) >= least for rank in ranks)

    @cached_property
    def _contexts(self) -> list[frozenset[str]]:
        return [_terms(context.text) for context in self.units.sample.contexts]

    @cached_property
    def _question(self) -> frozenset[str]:
        return _terms(self.units.question or "")


def _terms(text: str) -> frozenset[str]:
    text = visible_text(text)
    return frozenset(terms(text)) | identifiers(text)


def _words(claim: str) -> ClaimWords:
    return claim_words(visible_text(claim), shipped().rarity)


def _weight(rarity: Mapping[str, float], names: frozenset[str]) -> float:
    return math.fsum([weight for name, weight in rarity.items() if name in names])
