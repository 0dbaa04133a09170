"""Claims, features and scores of 200 answers are pinned: English ones, eleven other languages, hostile ones."""

from __future__ import annotations

import json

import pytest
from support.readings import ANSWERS, FIGURES, lines


@pytest.mark.costly
def test_figures_are_pinned() -> None:
    """What is read in each answer is what was read when the figures were written (see `readings`)."""
    read, pinned = [[json.loads(line) for line in some] for some in (lines(), FIGURES.read_text().splitlines())]
    different = [row for row, before in zip(read, pinned, strict=True) if row != before]
    assert different == []


def test_the_answers_are_of_every_sort() -> None:
    """Two hundred of them: abstentions, contradicting numbers, many scripts, no contexts, nothing said at all."""
    rows = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    pinned = [json.loads(line) for line in FIGURES.read_text().splitlines()[:-1]]
    assert len(rows) == len(pinned) == 200
    assert sum(not row["answer"].isascii() for row in rows) >= 40
    assert {row["address"] for row in pinned} == {None, "fully", "partially", "not_at_all", "abstained"}
    verdicts = [claim[2] for row in pinned for claim in row["claims"]]
    assert min(verdicts.count("supported"), verdicts.count("not_in_context")) >= 50
    assert {"faithfulness", "context_precision", "answer_relevancy"} <= {
        name for row in pinned for name in row["scores"]
    }
