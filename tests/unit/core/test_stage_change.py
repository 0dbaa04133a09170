"""The stage that changed: laws over counts."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.stage import IGNORED, MIN_SAMPLES, changed_stage, counted_stage, stage_shares
from ragwatch.model.quantities import Quantity
from ragwatch.model.stages import Stage

FAULTS = [stage for stage in Stage if stage is not Stage.NONE]
COUNTS = st.dictionaries(st.sampled_from([*map(str, Stage), IGNORED]), st.integers(0, 100))


@given(COUNTS, COUNTS, st.sampled_from(Quantity))
def test_the_largest_rise_or_nothing(now: dict[str, int], before: dict[str, int], quantity: Quantity) -> None:
    """A stage at fault whose share rose, or nothing."""
    change = changed_stage(now, before, quantity)
    if min(sum(now.values()), sum(before.values())) < MIN_SAMPLES:
        assert change is None
        return
    shares = {stage: (stage_shares(now)[stage], stage_shares(before)[stage]) for stage in FAULTS}
    if quantity is Quantity.TOP_RANKED_IGNORED:  # good answers beside an unused top context count as alignment
        shares[Stage.ALIGNMENT] = (
            sum(now.get(name, 0) for name in ("alignment", IGNORED)) / sum(now.values()),
            sum(before.get(name, 0) for name in ("alignment", IGNORED)) / sum(before.values()),
        )
    rises = {stage: share - earlier for stage, (share, earlier) in shares.items()}
    if change is None:
        assert max(rises.values()) < 1.0
    else:
        assert 0.0 < change.share - change.before == rises[change.stage] <= max(rises.values())


def test_a_rise_by_chance_names_no_stage() -> None:
    """Shares of 20 answers differ from those of 2,000 without any change: below 1 % of the time a stage is named."""
    rng = random.Random(7)
    before = {"none": 1740, "retrieval": 160, "generation": 100}
    named = 0
    for _ in range(1000):
        now = Counter(rng.choices([*before], weights=[*before.values()], k=20))
        named += changed_stage(now, before, Quantity.FAITHFULNESS) is not None
    assert named < 10


def test_what_is_counted() -> None:
    """Only a good answer can be one that ignores the top context: a bad one has its stage already."""
    assert counted_stage(Stage.NONE, 0.0) == "none"
    assert counted_stage(Stage.NONE, 1.0) == IGNORED
    assert counted_stage(Stage.GENERATION, 1.0) == "generation"
    assert stage_shares({"none": 9}) == {}
