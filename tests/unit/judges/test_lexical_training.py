"""The shipped tables are what the training script is allowed to write."""

from __future__ import annotations

import json
from importlib import resources

from ragwatch.judges.lexical import features, relevance
from ragwatch.judges.lexical.tables import FILES, shipped

FOLDER = resources.files("ragwatch.judges") / "tables"


def test_tables_are_small() -> None:
    """Both files together stay below 100 KB, so that they fit any wheel."""
    assert sum(len((FOLDER / name).read_bytes()) for name in FILES) <= 100_000


def test_weights_keep_their_meaning() -> None:
    """Names stand in the order that the code uses, and no weight has turned its sign."""
    fitted = json.loads((FOLDER / FILES[0]).read_text(encoding="utf-8"))
    assert tuple(fitted["support"]["weights"]) == features.NAMES
    assert tuple(fitted["relevance"]["weights"]) == relevance.NAMES
    for sign, weight in zip(features.SIGNS, shipped().support.weights, strict=True):
        assert sign * weight >= 0
    assert all(weight >= 0 for weight in shipped().relevance.weights)


def test_rarity_is_a_share() -> None:
    """Every listed word weighs more than nothing and at most as much as an unlisted one."""
    assert all(0.0 < value <= features.UNLISTED for value in shipped().rarity.values())
