"""docs/metrics.md tells what is true: its examples give what it says, and its table of stages is the program's."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from support.kit import a_judge_context

from ragwatch.judges.lexical.judge import LexicalJudge, Options, build
from ragwatch.model.quantities import Quantity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.model.stages import Stage

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def embedded_judge() -> LexicalJudge:
    """The embedded judge, as examples use it."""
    return build(Options(), name="embedded", context=a_judge_context())


def test_its_examples_give_what_it_says() -> None:
    """Every example is run, and there are at least ten."""
    failed, attempted = doctest.testfile(
        str(PAGE), module_relative=False, globs={"embedded_judge": embedded_judge}, optionflags=doctest.ELLIPSIS
    )
    assert failed == 0
    assert attempted >= 10


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


@pytest.mark.costly
def test_the_exercise_gives_what_it_says(tmp_path: Path) -> None:
    """Its figures move as the page says."""
    failed, attempted = doctest.testfile(
        str(PAGE.with_name("exercise.md")),
        module_relative=False,
        globs={"embedded_judge": embedded_judge, "folder": tmp_path},
    )
    assert failed == 0
    assert attempted >= 20
