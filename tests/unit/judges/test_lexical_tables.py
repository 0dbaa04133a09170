"""The tables that ship are what the training scripts are allowed to write, and their errors are those of the judges."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from support.kit import a_judge_context

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
    judge = KINDS[name].build(KINDS[name].Options(), name=name, context=a_judge_context())
    assert judge.version == measured_rates()[name].version


def test_a_local_judge_without_its_model_errs_as_words_do() -> None:
    """Its version says that it has read words alone; that of one with its model begins with the model."""
    by_words, by_model = (measured_rates()[name].version for name in (LEXICAL, LOCAL))
    assert rates(LOCAL, by_words) == rates(LEXICAL, by_words)
    assert rates(LOCAL, by_model) != rates(LEXICAL, by_words)
