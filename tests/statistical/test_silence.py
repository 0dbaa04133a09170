"""Silence of a route: false alarms of five weeks on regular and bursty traffic, and how soon silence is noticed."""

import math
from itertools import pairwise

import numpy as np
import pytest

from ragwatch.statistics.drift.silence import Rhythm, observe

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0
WEEKS, ROUTES, BUDGET = 5, 4, 30.0
SEEDS = 6
WEEKEND = (2, 3)  # the epoch began on a Thursday


def arrivals(seed: int, per_hour: float, *, office: bool, sessions: bool) -> np.ndarray:
    """Times of the answers of five weeks: waves over the day, less at the weekend, days that differ by 22 %.

    An office has answers from 8 to 18 on working days only. In sessions, a third of the requests begin a session of
    three on average, one every two minutes.
    """
    rng, days = np.random.default_rng([19, seed, int(per_hour), office, sessions]), 7 * WEEKS
    times = np.sort(rng.random(int(per_hour * 24 * days * 3))) * days * DAY
    hour, day = times / HOUR % 24, times // DAY
    weekend = np.isin(day % 7, WEEKEND)
    if office:
        shape = ((hour >= 8) & (hour < 18) & ~weekend).astype(float)
    else:
        shape = (1 + 0.8 * np.sin(2 * math.pi * (hour - 9) / 24)) * np.where(weekend, 0.4, 1.0)
    times = times[rng.random(times.size) * 3 < shape * rng.gamma(20, 1 / 20, days)[day.astype(int)]]
    if sessions:
        starts = times[rng.random(times.size) < 1 / 3]
        times = np.sort(np.concatenate([s + np.cumsum(rng.exponential(120, rng.geometric(1 / 3))) for s in starts]))
    return times


def silences(times: np.ndarray, until: float) -> list[float]:
    """When alarms begin, observed once a minute."""
    rhythm, found = Rhythm(), []
    clock = np.arange(0.0, until, MINUTE)
    for now, (before, after) in zip(clock[1:], pairwise(np.searchsorted(times, clock)), strict=True):
        silent = rhythm.silent
        rhythm = observe(rhythm, float(now), answered=bool(after > before), days=BUDGET * ROUTES)
        if rhythm.silent and not silent:
            found.append(float(now))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("office", [False, True], ids=["waves", "office"])
@pytest.mark.parametrize("sessions", [False, True], ids=["independent", "sessions"])
@pytest.mark.parametrize("per_hour", [5, 20, 100, 1000])
def test_silence_is_rare_where_nothing_is_wrong(per_hour: float, office: bool, sessions: bool) -> None:  # noqa: FBT001
    """No more alarms than one in thirty days over four routes, within three standard errors of a Poisson count."""
    count = sum(
        len(silences(arrivals(seed, per_hour, office=office, sessions=sessions), 7 * WEEKS * DAY))
        for seed in range(SEEDS)
    )
    allowed = SEEDS * 7 * WEEKS / (BUDGET * ROUTES)
    print(f"{per_hour}/h, office {office}, sessions {sessions}: {count} alarms in {SEEDS * 7 * WEEKS} days")
    assert count <= allowed + 3 * math.sqrt(allowed)


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [False, True], ids=["independent", "sessions"])
@pytest.mark.parametrize(("per_hour", "hours"), [(5, 6.0), (20, 2.0), (100, 1.0), (1000, 0.5)])
def test_silence_is_noticed(per_hour: float, hours: float, sessions: bool) -> None:  # noqa: FBT001 - a row of the table
    """The route stops at eleven on a working day of the fifth week."""
    waits = []
    for seed in range(SEEDS):
        times = arrivals(seed, per_hour, office=False, sessions=sessions)
        end = (28 + seed % 2) * DAY + 11 * HOUR
        alarms = silences(times[times < end], end + 12 * HOUR)
        waits.append(next((at - end) / HOUR for at in [*alarms, math.inf] if at >= end))
    print(f"{per_hour}/h, sessions {sessions}: noticed after {np.mean(waits):.2f} hours, longest {max(waits):.2f}")
    assert np.mean(waits) <= hours
