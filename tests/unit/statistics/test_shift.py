"""Shift of a distribution over buckets: batches, both directions, a fair game at worst, and a rate as two buckets."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.drift.detect import Direction, Unit
from ragwatch.statistics.drift.detectors import MAX_EVIDENCE
from ragwatch.statistics.drift.shift import CountScheme, ShiftDetector, share_bound


def batch(rng: random.Random, shares: list[float], size: int) -> list[int]:
    """Counts of so many requests."""
    picks = rng.choices(range(len(shares)), shares, k=size)
    return [picks.count(index) for index in range(len(shares))]


@given(st.floats(0.01, 0.99), st.integers(1, 6), st.floats(0, 1e4))
def test_on_average_no_batch_gains_on_the_reference(share: float, size: int, before: float) -> None:
    """At the shares of the reference the expected evidence after n requests is what was there plus n."""
    watching = ShiftDetector(((share, 1 - share),), 100)
    numbers = (before,) * len(watching.start())
    expected = 0.0
    for below in range(size + 1):
        chance = math.comb(size, below) * share**below * (1 - share) ** (size - below)
        expected += chance * watching.evidence(watching.step(numbers, (below, size - below), size))
    assert expected <= (before + size) * (1 + 1e-9)


@pytest.mark.parametrize(("count", "total"), [(0, 50), (3, 50), (50, 50), (400, 1000)])
def test_share_bound_holds(count: int, total: int) -> None:
    """At the bound so few are as rare as the risk: the exact binomial tail is at most 5 %."""
    bound = share_bound(count, total, 0.05)
    tail = sum(math.comb(total, each) * bound**each * (1 - bound) ** (total - each) for each in range(count + 1))
    assert bound >= count / total
    assert tail <= 0.05 or bound == 1.0


def test_learns_then_watches() -> None:
    """Counts add up until there are enough; the shares then allow the tolerance and a little."""
    scheme = CountScheme(10_000, buckets=3, requests=5000, first=5000)
    reference: tuple[float, ...] = ()
    for _ in range(49):
        reference = scheme.learn(reference, (50, 30, 20))
        assert scheme.detector(reference) is None
    assert scheme.detector(()) is None
    result = scheme.detector(scheme.learn(reference, (50, 30, 2500 - 49 * 100 + 2500)))
    assert len(result.design) == 4
    assert (scheme.size((1, 2, 3)), scheme.unit) == (6.0, Unit.SCORES)


def test_values_that_grow_may_double() -> None:
    """Shares above a bound are compared with those above its half, from a bound on; smaller values are no change."""
    scheme = CountScheme(100, buckets=5, requests=1000, doubles_from=1)
    watching = scheme.detector(scheme.learn((), (0, 0, 1000, 0, 0)))

    def evidence(*counts: int) -> float:
        return watching.evidence(watching.step(watching.start(), counts, 1.0))

    for usual in ((0, 0, 50, 0, 0), (0, 0, 0, 50, 0), (50, 0, 0, 0, 0)):
        assert evidence(*usual) <= 1.0
    assert evidence(0, 0, 0, 0, 50) > 1e6
    young = scheme.detector(scheme.learn((), (1000, 0, 0, 0, 0)))
    assert young.evidence(young.step(young.start(), (0, 0, 50, 0, 0), 1.0)) <= 1.0


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        ([0.4, 0.4, 0.2], [0.2, 0.4, 0.4], Direction.RISE),
        ([0.4, 0.4, 0.2], [0.6, 0.3, 0.1], Direction.FALL),
        ([0.98, 0.02], [0.9, 0.1], Direction.RISE),  # a rate, such as that of abstentions, is two buckets
    ],
)
def test_notices_a_shift_and_says_where_to(before: list[float], after: list[float], direction: Direction) -> None:
    """No alarm on 20,000 requests as before; one within 600 of a shift; values rose or fell as they did."""
    rng = random.Random(8)
    scheme = CountScheme(10_000, buckets=len(before))
    watching = scheme.detector(scheme.learn((), batch(rng, before, 5000)))
    assert isinstance(watching, ShiftDetector)
    numbers = watching.start()
    for _ in range(1000):
        numbers = watching.step(numbers, batch(rng, before, 20), 20)
        assert watching.evidence(numbers) < watching.threshold
    for _ in range(30):
        numbers = watching.step(numbers, batch(rng, after, 20), 20)
    assert watching.evidence(numbers) >= watching.threshold
    assert watching.where(numbers)[1] is direction


def test_what_never_happened_can_only_begin() -> None:
    """An empty bucket bounds nothing from below: nothing is bet there, and huge batches stay finite."""
    scheme = CountScheme(100, requests=1000)
    watching = scheme.detector(scheme.learn((), (0, 1000)))
    assert isinstance(watching, ShiftDetector)
    assert watching.shares[0][0] == 0.0
    numbers = watching.step(watching.start(), (100_000, 0), 100_000)
    assert watching.evidence(numbers) <= MAX_EVIDENCE
    assert watching.where(numbers) == (0, Direction.FALL)
