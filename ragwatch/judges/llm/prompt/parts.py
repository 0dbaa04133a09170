"""The parts of a reading. A judge requests only the parts that its quantities need."""

from __future__ import annotations

from collections.abc import Collection

from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import Part

SUPPORTED_JOINTLY = "supported_jointly"
"""The word of a reply for a claim that only several contexts together support: `supported`, with cells `jointly`."""


def facts_key(part: Part, names: Collection[str]) -> str | None:
    """Key of the entries about facts of a part whose entries have these keys; None where lines are read as wholes."""
    return {Part.CLAIMS: "facts", Part.REFERENCE: "reference_facts"}.get(part) if "cells" in names else None


def parts_of(quantities: frozenset[Quantity], *, reference: bool) -> frozenset[Part]:
    """Parts that these quantities are computed from; with a reference also the parts to compare it by.

    >>> sorted(parts_of(frozenset({Quantity.CONTEXT_USE}), reference=False))
    [<Part.ADDRESS: 'address'>, <Part.CLAIMS: 'claims'>]
    """
    parts = frozenset[Part]().union(*(quantity.row.parts for quantity in quantities))
    return parts | {Part.CLAIMS, Part.REFERENCE} if reference else parts
