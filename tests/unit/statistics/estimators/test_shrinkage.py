"""Means of groups with few answers: intervals hold for the promised share; no group moves without others."""

import math
import random
from collections.abc import Callable

import pytest

from ragwatch.model.estimate import Addends
from ragwatch.statistics.estimators import shrinkage

WORLDS: dict[str, Callable[[random.Random], float]] = {
    "a third of the groups is bad": lambda rng: 0.95 if rng.random() < 0.7 else 0.6,
    "all groups are alike": lambda _: 0.9,
    "groups differ a little": lambda rng: rng.betavariate(8, 2),
    "one in twenty is broken": lambda rng: 0.95 if rng.random() < 0.95 else 0.3,
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("groups", [shrinkage.MIN_GROUPS, 40])
def test_intervals_hold_for_the_promised_share_of_groups(world: str, groups: int) -> None:
    """Of groups with 2 to 30 answers beside others with 300, however their means are distributed."""
    rng, held = random.Random(groups), []
    for _ in range(800 // groups):
        means = [WORLDS[world](rng) for _ in range(groups)]
        sizes = [rng.choice((2, 4, 8, 15, 30, 300)) for _ in means]
        sums = [
            Addends.of((float(rng.random() < mean), 1.0) for _ in range(size))
            for mean, size in zip(means, sizes, strict=True)
        ]
        total = Addends.total(sums)
        least, centre = shrinkage.score_variance(total), total.wx / total.w
        if not least:  # nothing failed at all
            continue
        measured = [shrinkage.noisy(one, least) for one in sums]
        between = shrinkage.variance_between(measured, centre)
        assert between is not None
        for one, mean, size in zip(measured, means, sizes, strict=True):
            if size <= 30:
                figures = shrinkage.shrunk(one, centre, between, 0.95)
                held.append(figures.low <= mean <= figures.high)
    share = sum(held) / len(held)
    assert share >= 0.95 - 2.5 * math.sqrt(0.05 * 0.95 / len(held))


def test_the_less_a_group_says_the_nearer_it_is_to_the_centre() -> None:
    """And never beyond it, nor beyond its own mean; with much traffic it stays where it is."""
    near, far = (shrinkage.drawn(shrinkage.Noisy(0.4, variance), 0.9, 0.01) for variance in (0.1, 0.001))
    assert 0.4 < far < near < 0.9
    assert shrinkage.drawn(shrinkage.Noisy(0.4, 1e-9), 0.9, 0.01) == pytest.approx(0.4)
    exact = shrinkage.shrunk(shrinkage.Noisy(0.4, 1e-8), 0.9, 0.01, 0.95)
    assert (exact.high - exact.low) / 2 == pytest.approx(1.96e-4, rel=0.01)


def test_few_groups_say_nothing_about_how_much_groups_differ() -> None:
    """Their means stay as they are."""
    assert shrinkage.variance_between([shrinkage.Noisy(0.5, 0.01)] * (shrinkage.MIN_GROUPS - 1), 0.9) is None


@pytest.mark.parametrize(("bias", "value"), [(0.0, 1.96), (0.1, 2.06), (1.0, 3.26), (9.0, 11.46)])
def test_critical_values(bias: float, value: float) -> None:
    """No distribution of the bias with this mean square misses more often; one of two points misses as often."""
    limit = shrinkage.critical_value(bias, 0.05)
    assert limit == pytest.approx(value, abs=0.01)
    worst = 0.0
    for step in range(1, 400):
        b = max(math.sqrt(bias), 1e-9) + step / 20
        share = bias / (b * b)
        miss = [0.5 * (math.erfc((limit - x) / math.sqrt(2)) + math.erfc((limit + x) / math.sqrt(2))) for x in (0, b)]
        worst = max(worst, (1 - share) * miss[0] + share * miss[1])
    assert 0.049 < worst <= 0.05 + 1e-6
