"""The parts of a reading. A judge requests only the parts that its quantities need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from types import MappingProxyType

from ragwatch.core.scores import Quantity


class Part(StrEnum):
    """A part of a reading. The values are keys of the reply."""

    CLAIMS = "claims"
    CONTEXTS = "contexts"
    NEEDS = "needs"
    ADDRESS = "address"
    REFERENCE = "reference"
    CRITERIA = "criteria"


SUPPORTED_JOINTLY = "supported_jointly"
"""The word of a reply for a claim that only several contexts together support: `supported`, with cells `jointly`."""


def facts_key(part: Part, names: Collection[str]) -> str | None:
    """Key of the entries about facts of a part whose entries have these keys; None where lines are read as wholes."""
    return {Part.CLAIMS: "facts", Part.REFERENCE: "reference_facts"}.get(part) if "cells" in names else None


# An ignored or unused context means nothing when the answer abstains, so both need `address`; the fault of an ignored
# context needs its relevance.
_PARTS: Mapping[Quantity, frozenset[Part]] = MappingProxyType(
    {
        Quantity.FAITHFULNESS: frozenset({Part.CLAIMS}),
        Quantity.CONTRADICTION: frozenset({Part.CLAIMS}),
        Quantity.CONTEXT_PRECISION: frozenset({Part.CONTEXTS}),
        Quantity.CONTEXT_SENTENCE_PRECISION: frozenset({Part.CONTEXTS}),
        Quantity.ANSWER_RELEVANCY: frozenset({Part.ADDRESS}),
        Quantity.NEED_RECALL: frozenset({Part.NEEDS}),
        Quantity.TOP_RANKED_IGNORED: frozenset({Part.CLAIMS, Part.CONTEXTS, Part.ADDRESS}),
        Quantity.CONTEXT_USE: frozenset({Part.CLAIMS, Part.ADDRESS}),
        Quantity.CITATION_PRECISION: frozenset({Part.CLAIMS}),
    }
)


_OF_CRITERION = frozenset({Part.CRITERIA})


def parts_of(quantities: frozenset[Quantity], *, reference: bool) -> frozenset[Part]:
    """Parts that these quantities are computed from; with a reference also the parts to compare it by.

    >>> sorted(parts_of(frozenset({Quantity.CONTEXT_USE}), reference=False))
    [<Part.ADDRESS: 'address'>, <Part.CLAIMS: 'claims'>]
    """
    parts = frozenset[Part]().union(*(_PARTS.get(quantity, _OF_CRITERION) for quantity in quantities))
    return parts | {Part.CLAIMS, Part.REFERENCE} if reference else parts
