"""Power: what a sampling rate buys. Traffic, price and the drop to be noticed in; delay, cost and width out.

Delays are numbers of judged scores, whatever the clock says, so twice the rate halves the delay. They come from
running the real detector over scores as they were, broken as a drop breaks them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, pstdev
from typing import Protocol

from ragwatch.core.drift.detect import MAX_DAYS_PER_READING, Score, threshold_for
from ragwatch.core.drift.detectors.betting import Betting

_DAY_HOURS = 24.0
_BEFORE = 200  # scores after which evidence has forgotten that it began from nothing


class Random(Protocol):
    """What is needed of a source of chance, such as `random.Random`."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """What is asked for.

    Attributes:
        per_day: Requests a day.
        probability: Sampling probability.
        price: Of one reading, in US dollars.
        drop: Fall of the mean that must be noticed.
        false_alarm_days: All detectors together may page falsely once in so many days.
        detectors: How many there are.
        tolerance: What the mean may fall without anybody being called.
        confidence: Level of the interval.
    """

    per_day: float
    probability: float
    price: float = 0.0
    drop: float = 0.1
    false_alarm_days: float = 30.0
    detectors: int = 1
    tolerance: float = 0.02
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class PowerAnswer:
    """What it takes.

    Attributes:
        scores_per_day: Judged answers a day.
        usd_per_day: What they cost.
        delay_scores: Judged answers from the drop to the page, on average; None when it is not noticed.
        delay_hours: The same as time.
        half_width_hour: Half-width of the interval over an hour's scores; None with less than one an hour.
        half_width_day: The same over a day's.
    """

    scores_per_day: float
    usd_per_day: float
    delay_scores: float | None
    delay_hours: float | None
    half_width_hour: float | None
    half_width_day: float | None


def plan(question: PowerQuestion, scores: Sequence[float], rng: Random, *, runs: int = 200) -> PowerAnswer:
    """Answer a question for traffic whose scores were like these.

    >>> import random
    >>> found = plan(Question(1000, 0.5, price=0.01), [1.0] * 9 + [0.5], random.Random(1), runs=20)
    >>> found.scores_per_day, found.usd_per_day, 20 < found.delay_scores < 200
    (500.0, 5.0, True)
    """
    rate = question.per_day * question.probability
    watching = Betting(
        baseline=fmean(scores) - question.tolerance,
        # Run length is counted in scores here: a day has so many of them, and one adds that of a day at most.
        threshold=threshold_for(question.false_alarm_days, question.detectors, max(rate, 1.0 / MAX_DAYS_PER_READING)),
    )
    waited = delay(watching, scores, question.drop, rng, runs=runs)
    return PowerAnswer(
        rate,
        rate * question.price,
        waited,
        None if waited is None else waited / rate * _DAY_HOURS,
        half_width(scores, rate / _DAY_HOURS, question.confidence),
        half_width(scores, rate, question.confidence),
    )


def half_width(scores: Sequence[float], count: float, confidence: float = 0.95) -> float | None:
    """Half-width of the interval of a mean of `count` such scores; None below one.

    z s / sqrt(count) (Cochran 1977, section 2.7): for planning, where the interval itself is not yet known.

    >>> round(half_width([0.0, 1.0], 100), 3)           # 1.96 * .5 / 10
    0.098
    """
    if count < 1.0:
        return None
    return NormalDist().inv_cdf(0.5 + confidence / 2.0) * pstdev(scores) / math.sqrt(count)


def growth(watching: Betting, scores: Sequence[float]) -> float:
    """Mean growth of log evidence with each such score, for the best size of bet: ln(1 / alpha) / growth is a delay.

    Kelly's (1956) growth rate; that the delay is its reciprocal is Lorden's (1971) first-order result.

    >>> round(growth(Betting(0.5, 100.0, fractions=(0.5,)), [0.0]), 4)                         # ln(1 + 1 * .5)
    0.4055
    """
    one = [watching.step((0.0,) * len(watching.fractions), Score(each)) for each in scores]
    return max(fmean(math.log(step[index]) for step in one) for index in range(len(watching.fractions)))


def delay(
    watching: Betting, scores: Sequence[float], drop: float, rng: Random, *, runs: int = 200, most: int = 20_000
) -> float | None:
    """Scores from a drop to the alarm, on average over simulated runs; None when it is not noticed.

    After the drop a share of the answers fails altogether (score 0), so many that the mean falls by `drop`: of all
    ways to fall the one that scatters most, and so the slowest to notice. The detector has been running before.

    Args:
        watching: The detector.
        scores: Scores from the time when all was well; they are drawn from anew.
        drop: Fall of the mean.
        rng: Where chance comes from.
        runs: Simulated runs.
        most: Scores after which a run is given up.

    Pollak's (1985) delay of a detector that has been running: simulated, because closed forms are first-order only.

    >>> import random
    >>> watching = Betting(0.88, 1000.0)
    >>> waited = delay(watching, [1.0] * 9 + [0.0], 0.3, random.Random(1), runs=50)
    >>> 10 < waited < 40, delay(watching, [1.0] * 9 + [0.0], 0.01, random.Random(1)) is None          # .89 is above .88
    (True, True)
    """
    mean = fmean(scores)
    if mean - drop >= watching.baseline:
        return None
    waits = [_wait(watching, scores, min(1.0, drop / mean), rng, most) for _ in range(runs)]
    known = [each for each in waits if each is not None]
    return fmean(known) if len(known) == runs else None


def _wait(watching: Betting, scores: Sequence[float], failing: float, rng: Random, most: int) -> int | None:
    """One run: scores after the drop until the alarm, or None. A false alarm before the drop starts over."""
    numbers = watching.start()
    for _ in range(_BEFORE):
        numbers = watching.step(numbers, Score(scores[int(rng.random() * len(scores))]))
        if watching.evidence(numbers) >= watching.threshold:
            numbers = watching.start()
    for count in range(1, most + 1):
        score = 0.0 if rng.random() < failing else scores[int(rng.random() * len(scores))]
        numbers = watching.step(numbers, Score(score))
        if watching.evidence(numbers) >= watching.threshold:
            return count
    return None
