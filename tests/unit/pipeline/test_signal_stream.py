"""A stream of a traffic signal: how surely the share of answers since a change is known."""

import random

import pytest

from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.signal_stream import SignalStream
from ragwatch.pipeline.drift.traffic import TrafficRules
from ragwatch.statistics.drift.recovery import EndTest

RULES = TrafficRules((Signal.ABSTENTIONS,), ("search",), requests=2000)
RISE = 0.5


def rises(share: float, seed: int) -> tuple[bool, bool]:
    """Whether the share, and its lower bound, ever were more than `RISE` above that of before."""
    rng, counts, now = random.Random(seed), [0, 0], 0.0
    stream = SignalStream(Signal.ABSTENTIONS, RULES.scheme(Signal.ABSTENTIONS), EndTest(30.0), (0, 0))
    for _ in range(2600):
        counts[rng.random() < 0.02] += 1
        now += 72.0
        if sum(counts) % 20 == 0:
            stream.take((counts[0], counts[1]), now)
    mean = low = False
    for _ in range(200):
        counts[rng.random() < share] += 1
        now += 3.0
        stream.take((counts[0], counts[1]), now)
        if (change := stream.change()) is not None:
            mean |= change.since - change.before > RISE
            low |= change.since_low - change.before > RISE
    return mean, low


@pytest.mark.costly
@pytest.mark.parametrize(("share", "pages"), [(0.4, False), (0.9, True)])
def test_the_bound_of_a_share_is_not_taken_in_by_the_first_answers(share: float, pages: bool) -> None:  # noqa: FBT001
    """Where 40 % refuse, more than half of the first eight often do: the mean rose by too much, its bound did not."""
    played = [rises(share, seed) for seed in range(12)]
    assert sum(mean for mean, _ in played) >= 3
    assert sum(low for _, low in played) == (len(played) if pages else 0)
