"""docs/metrics.md: its table of stages is the program's. tests/functional/test_typed_documents.py runs its examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwatch.model.quantities import Quantity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.model.stages import Stage

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.NONE])
def test_its_table_of_stages_is_that_of_the_program(stage: Stage) -> None:
    """A metric stands in the row of the stage that the gate names when it fails, and in no other."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {stage} |")]
    assert len(rows) == 1
    told = {name.strip(" `") for name in rows[0].split("|")[2].split(",")}
    assert told == {str(metric) for metric in (*Quantity, *ReferenceQuantity) if metric.row.stage is stage}


def test_every_metric_of_answers_is_told() -> None:
    """No metric is left out."""
    text = PAGE.read_text(encoding="utf-8")
    assert [metric for metric in (*Quantity, *ReferenceQuantity) if f"`{metric}`" not in text] == []
