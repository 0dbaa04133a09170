"""Power analysis of a sampling rate: detection delay, cost and interval width for given traffic and a given drop.

A delay is a number of judged scores, so doubling the rate halves it in time. Delays are simulated: the drift detector
runs over resampled past scores with a simulated drop.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, pstdev

from ragwatch.statistics.drift.detect import MAX_DAYS_PER_READING, Score, threshold_for
from ragwatch.statistics.drift.detectors import Betting
from ragwatch.statistics.drift.normal_range import lowest_unchanged

_DAY_HOURS = 24.0
_WARM_UP_SCORES = 200  # after so many scores the evidence no longer depends on its start at zero


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """Parameters of a power analysis."""

    per_day: float
    probability: float
    price: float = 0.0  # price of one reading in US dollars
    drop: float = 0.1  # fall of the mean that must be detected
    false_alarm_days: float = 30.0  # days per false alarm of all detectors together
    detectors: int = 1  # number of detectors
    tolerance: float = 0.02  # fall of the mean that raises no alarm; less of it near a mean of 1
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class PowerAnswer:
    """Result of a power analysis: cost in US dollars, delay in scores and hours, half-widths of hour and day.

    Unknown is None: a drop that is not detected, less than one score, or a single past score.
    """

    scores_per_day: float
    usd_per_day: float
    delay_scores: float | None
    delay_hours: float | None
    half_width_hour: float | None
    half_width_day: float | None


def plan(
    question: PowerQuestion, scores: Sequence[float], uniform: Callable[[], float], *, runs: int = 200
) -> PowerAnswer:
    """Run the power analysis for traffic with scores like these; `uniform` returns random numbers in [0, 1)."""
    rate = question.per_day * question.probability
    detector = Betting(
        baseline=lowest_unchanged(fmean(scores), question.tolerance),
        # The run length is counted in scores here: `rate` per day, and one score adds at most a day.
        threshold=threshold_for(question.false_alarm_days, question.detectors, max(rate, 1.0 / MAX_DAYS_PER_READING)),
    )
    delay_scores = delay(detector, scores, question.drop, uniform, runs=runs)
    return PowerAnswer(
        scores_per_day=rate,
        usd_per_day=rate * question.price,
        delay_scores=delay_scores,
        delay_hours=None if delay_scores is None else delay_scores / rate * _DAY_HOURS,
        half_width_hour=half_width(scores, rate / _DAY_HOURS, question.confidence),
        half_width_day=half_width(scores, rate, question.confidence),
    )


def half_width(scores: Sequence[float], count: float, confidence: float = 0.95) -> float | None:
    """Return z s / sqrt(count) (Cochran 1977, 2.7), the half-width of the interval of a mean over so many such scores.

    None below one score, and for a single past score, which does not tell how much scores scatter.
    """
    if count < 1.0 or len(scores) < 2:
        return None
    return NormalDist().inv_cdf(0.5 + confidence / 2.0) * pstdev(scores) / math.sqrt(count)


def delay(
    detector: Betting,
    scores: Sequence[float],
    drop: float,
    uniform: Callable[[], float],
    *,
    runs: int = 200,
    max_scores: int = 20_000,
) -> float | None:
    """Return the mean number of scores from a drop to the alarm over simulated runs; None if one of them ends without.

    After the drop, a share of the answers gets score 0: of all ways to fall by `drop` that has the largest variance,
    and is detected most slowly. The detector has been running before the drop (Pollak 1985).
    """
    mean = fmean(scores)
    if mean - drop >= detector.baseline:
        return None
    delays = []
    for _ in range(runs):
        count = _simulated_delay(detector, scores, min(1.0, drop / mean), uniform, max_scores)
        if count is not None:
            delays.append(count)
    return fmean(delays) if len(delays) == runs else None


def _simulated_delay(
    detector: Betting, scores: Sequence[float], failing: float, uniform: Callable[[], float], max_scores: int
) -> int | None:
    """Number of scores from the drop to the alarm of one run, or None. An earlier alarm restarts evidence."""
    numbers = detector.start()
    for _ in range(_WARM_UP_SCORES):
        numbers = detector.step(numbers, Score(scores[int(uniform() * len(scores))]))
        if detector.evidence(numbers) >= detector.threshold:
            numbers = detector.start()
    for count in range(1, max_scores + 1):
        score = 0.0 if uniform() < failing else scores[int(uniform() * len(scores))]
        numbers = detector.step(numbers, Score(score))
        if detector.evidence(numbers) >= detector.threshold:
            return count
    return None
