"""Parts: what can be asked about a sample. A judge asks only for the parts that its quantities need."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from ragwatch.core.scores import Quantity


class Part(StrEnum):
    """One thing that a model can be asked to read. The values are keys of its reply."""

    CLAIMS = "claims"
    CONTEXTS = "contexts"
    NEEDS = "needs"
    ADDRESS = "address"
    REFERENCE = "reference"


# An ignored or unused context means nothing when the answer abstains, so both need `address`; the fault of an ignored
# context needs its relevance.
_WANTED: Mapping[Quantity, frozenset[Part]] = MappingProxyType(
    {
        Quantity.FAITHFULNESS: frozenset({Part.CLAIMS}),
        Quantity.CONTRADICTION: frozenset({Part.CLAIMS}),
        Quantity.CONTEXT_PRECISION: frozenset({Part.CONTEXTS}),
        Quantity.CONTEXT_SENTENCE_PRECISION: frozenset({Part.CONTEXTS}),
        Quantity.ANSWER_RELEVANCY: frozenset({Part.ADDRESS}),
        Quantity.NEED_RECALL: frozenset({Part.NEEDS}),
        Quantity.TOP_RANKED_IGNORED: frozenset({Part.CLAIMS, Part.CONTEXTS, Part.ADDRESS}),
        Quantity.CONTEXT_USE: frozenset({Part.CLAIMS, Part.ADDRESS}),
    }
)


def parts_of(quantities: frozenset[Quantity], *, reference: bool) -> frozenset[Part]:
    """The parts that these quantities are computed from; with a reference also what it is compared by.

    >>> sorted(parts_of(frozenset({Quantity.CONTEXT_USE}), reference=False))
    [<Part.ADDRESS: 'address'>, <Part.CLAIMS: 'claims'>]
    """
    found = frozenset[Part]().union(*(_WANTED[quantity] for quantity in quantities))
    return found | {Part.CLAIMS, Part.REFERENCE} if reference else found
