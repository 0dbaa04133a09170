"""From 100 scores on: few false alarms while the reference grows, and breakages are noticed (more in make slow)."""

from __future__ import annotations

import random

import pytest

from ragwatch.statistics.drift.detect import DetectorState, Score, Unit, begin, step
from ragwatch.statistics.drift.detectors import Betting
from ragwatch.statistics.drift.reference import ReferenceScheme

DAY, PER_DAY = 86400.0, 20
SCHEME = ReferenceScheme(lambda mean: Betting(mean, 30.0), unit=Unit.DAYS, span=DAY)


def claims(rng: random.Random, mean: float) -> Score:
    """Supported of 2 to 8 claims, alike within an answer."""
    count, share = rng.randint(2, 8), rng.betavariate(1.5 * mean, 1.5 * (1 - mean))
    return Score(sum(rng.random() < share for _ in range(count)) / count)


def watched(seed: int, before: int, after: int, mean: float) -> DetectorState[Score]:
    """The watch of a route with 20 scores a day, whose mean is .90 and then another one, until an alarm."""
    rng, watch = random.Random(seed), begin(SCHEME)
    for index in range(before + after):
        score = claims(rng, 0.9 if index < before else mean)
        watch = step(SCHEME, watch, index, DAY * index / PER_DAY, score)
        if watch.alarm is not None:
            break
    return watch


@pytest.mark.uncounted
def test_a_month_without_a_change() -> None:
    """Forty routes for a month after their first 100 scores: one alarm in 30 days each is allowed, few have one."""
    assert sum(watched(seed, 700, 0, 0.9).alarm is not None for seed in range(40)) <= 16


@pytest.mark.uncounted
def test_a_breakage_after_a_hundred_scores() -> None:
    """From .90 to .70: noticed within 60 answers on average."""
    waits = []
    for seed in range(40):
        alarm = watched(100 + seed, 100, 400, 0.7).alarm
        waits.append(alarm.seq - 99)
    assert sum(waits) / len(waits) <= 60
