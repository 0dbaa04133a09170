"""The quantities that need a reference, a known good answer: one row for each."""

from __future__ import annotations

from dataclasses import dataclass

from ragwatch.model.enumerations import RowEnum
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.model.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """All that depends on the quantity alone; the attributes are those of `QuantityRow`."""

    name: str
    stage: Stage
    threshold: float | None
    severity: GateSeverity | None


class ReferenceQuantity(RowEnum):
    """Quality metrics that need a reference."""

    row: ReferenceRow

    CONTEXT_RECALL = ReferenceRow(
        name="context_recall", stage=Stage.RETRIEVAL, threshold=0.80, severity=GateSeverity.WARN
    )
    CORRECTNESS = ReferenceRow(name="correctness", stage=Stage.GENERATION, threshold=None, severity=None)
    CONTEXT_PRECISION_WITH_REFERENCE = ReferenceRow(
        name="context_precision_with_reference", stage=Stage.RETRIEVAL, threshold=None, severity=None
    )
    CONTEXT_F1 = ReferenceRow(name="context_f1", stage=Stage.RETRIEVAL, threshold=None, severity=None)
