"""Coverage of the corrected interval through store, labelling and digest, where judges are biased and draws unequal."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from support.labelled import ALONE, BOTH, NOW, World

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.stores.sqlite.store import SqliteStore

WORLDS = 200

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rules", [ALONE, BOTH], ids=["two tiers", "three tiers"])
def test_the_corrected_interval_covers(tmp_path: Path, rules: LabelRules) -> None:
    """Sixty labels, half of them where judges doubt: the truth is inside in 93 % of worlds or more."""
    right = 0
    for seed in range(WORLDS):
        store = SqliteStore(tmp_path / str(seed))
        world = World(store, Random(seed), requests=800, rules=rules)
        world.label(60)
        rows, _ = world.people().correct(NOW, ())
        (row,) = (each for each in rows if each.quantity is Quantity.FAITHFULNESS and each.window == "1d")
        right += row.estimate.low <= world.truth <= row.estimate.high
        store.close()
    assert right / WORLDS >= 0.93
