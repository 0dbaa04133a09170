"""What ships is pinned: tables as training may write them, the errors of judges, and what is read in 200 answers."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from support.kit import a_judge_context
from support.readings import ANSWERS, FIGURES, lines

from ragwatch.judges import KINDS
from ragwatch.judges.error_rates import LEXICAL, LOCAL, measured_rates, rates
from ragwatch.judges.lexical import features, relevance
from ragwatch.judges.lexical.tables import FILES, shipped

FOLDER = resources.files("ragwatch.judges") / "tables"


@pytest.mark.parametrize(("files", "most"), [(FILES, 100_000), (("kinds.json", "kind_names.json"), 64 * 1024)])
def test_tables_are_small(files: tuple[str, ...], most: int) -> None:
    """They fit any wheel."""
    assert sum(len((FOLDER / name).read_bytes()) for name in files) <= most


def test_weights_keep_their_meaning() -> None:
    """Names stand in the order that the code uses, no weight has turned its sign, and rarity is a share."""
    fitted = json.loads((FOLDER / FILES[0]).read_text(encoding="utf-8"))
    assert tuple(fitted["support"]["weights"]) == features.NAMES
    assert tuple(fitted["relevance"]["weights"]) == relevance.NAMES
    for sign, weight in zip(features.SIGNS, shipped().support.weights, strict=True):
        assert sign * weight >= 0
    assert all(weight >= 0 for weight in shipped().relevance.weights)
    assert all(0.0 < value <= features.UNLISTED for value in shipped().rarity.values())


@pytest.mark.parametrize("name", sorted(measured_rates()))
def test_rates_are_of_the_judge_that_ships(name: str) -> None:
    """A change of what a judge reads is measured again: run `python training/levels.py --judge NAME`."""
    if name == "local":
        pytest.importorskip("ragwatch_reader")
    judge = KINDS[name].build(KINDS[name].Options(), name=name, context=a_judge_context())
    assert judge.version == measured_rates()[name].version


def test_a_local_judge_without_its_model_errs_as_words_do() -> None:
    """Its version says that it has read words alone; that of one with its model begins with the model."""
    by_words, by_model = (measured_rates()[name].version for name in (LEXICAL, LOCAL))
    assert rates(LOCAL, by_words) == rates(LEXICAL, by_words)
    assert rates(LOCAL, by_model) != rates(LEXICAL, by_words)


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
