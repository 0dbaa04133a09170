"""End of an alarm: a sequential test that the newest answers are back at the baseline.

While an alarm is active, `betting` runs in the other direction. Its null hypothesis is that the mean has not become
better than a limit between the mean of the break and the baseline, so a break that is not mended is taken for mended at
most once in the days of the threshold, however long it lasts. The limit lies `NEARNESS` of the way from the mean since
the break to the baseline, and never below the upper bound (Chernoff, risk `RISK`) of that mean: the answers that raise
an alarm are worse than the break by selection.

Better than the break is not yet back: the alarm ends once the mean of the answers since the mend is at the baseline,
within a standard error. If it is clearly below, the break has been mended in part: its mean is then that of these
answers, and the test starts again. The begin of the mend is the last zero of a CUSUM (Page 1954).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple

from ragwatch.statistics.drift.detect import MAX_DAYS_PER_READING, Direction, Numbers, Score
from ragwatch.statistics.drift.detectors import MIN_MARGIN, Betting
from ragwatch.statistics.drift.shift import share_bound

NEARNESS, SLACK = 0.4, 0.6
"""Place of the limit, and of the means that count as a mend, between the break (0) and the baseline (1)."""
RISK = 0.2
MAX_BREAK = 5000
"""Answers by which the mean of a break is known; from then on the oldest lose weight."""
RISING_CREDITS = 100.0
"""Run length, in scores, from which on answers count as part of a break: about the evidence without a change."""
MAX_BATCH = 1000
"""Requests of a batch that count at most: more of them would take long, and fewer say less."""
_PARTLY = 4.0  # standard errors below the baseline
_DAY = 86400.0


class Sums(NamedTuple):
    """Sums over answers: their number, w, w x and w^2, where w = 1 / inclusion probability."""

    n: float = 0.0
    w: float = 0.0
    wx: float = 0.0
    w2: float = 0.0

    def plus(self, value: float, weight: float, kept: float = 1.0) -> Sums:
        """Return the sums with one more answer; earlier ones are multiplied by `kept`."""
        return Sums(
            self.n * kept + 1.0,
            self.w * kept + weight,
            self.wx * kept + weight * value,
            self.w2 * kept + weight * weight,
        )

    @property
    def mean(self) -> float:
        """Their weighted mean; there is at least one."""
        return self.wx / self.w


_NONE = Sums()


class Recovery(NamedTuple):
    """State of the test. Values are those of a quantity where high is good."""

    worse: Sums = _NONE  # answers of the break: before the alarm, those since the evidence began to rise
    better: Sums = _NONE  # sums over the answers since the mend may have begun
    began: float | None = None  # time of the first of them, in seconds since the epoch; None if there is none
    rise: float = 0.0  # CUSUM of how much better answers are than the middle
    numbers: Numbers = ()  # evidence that the mean is better than the limit; empty before the alarm

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Recovery:
        """The state of which `_asdict` was stored. KeyError, TypeError and ValueError tell that it is none."""
        began = None if record["began"] is None else float(record["began"])
        worse, better = (Sums(*map(float, record[name])) for name in ("worse", "better"))
        return cls(worse, better, began, float(record["rise"]), tuple(map(float, record["numbers"])))


@dataclass(frozen=True, slots=True)
class Mend:
    """A break that is over."""

    since: float  # estimated time of the first answer after the mend, in seconds since the epoch
    mean: float  # mean of the answers since then
    answers: int  # their number


@dataclass(frozen=True, slots=True)
class EndTest:
    """The test that ends alarms of one detector."""

    days: float  # a break that is not mended is taken for mended at most once in so many days
    direction: Direction = Direction.FALL  # direction in which quality gets worse
    max_weight: float = 1.0  # largest weight, 1 / the lowest inclusion probability configured

    def watch(self, state: Recovery, score: Score, *, rising: bool) -> Recovery:
        """Return the state after an answer without an alarm; `rising`: evidence is above `RISING_CREDITS`."""
        if not rising:
            return Recovery()
        return Recovery(worse=_grown(state.worse, self._better(score.value), score.weight))

    def step(self, state: Recovery, score: Score, at: float, passed: float, baseline: float) -> Recovery:
        """Return the state after one more answer while the alarm is active, `passed` seconds after the one before it.

        Its time `at` is in seconds since the epoch; `baseline` is the worst mean that counts as unchanged.
        """
        value, good = self._better(score.value), self._baseline(baseline)
        better = state.better
        if better.n and self._is_better(state, good) and better.mean < good - _PARTLY * _error(better, good):
            state = Recovery(worse=better)  # mended in part
        test, broken = self._test(state, good), state.worse.mean if state.worse.n else good
        days = min(max(passed, 0.0) / _DAY, MAX_DAYS_PER_READING)
        numbers = test.step(state.numbers or test.start(), Score(value, score.weight), days)
        share = min(1.0, score.weight / self.max_weight)
        rise = state.rise + share * (value - broken - SLACK * (good - broken))
        if rise > 0.0:
            began = at if state.began is None else state.began
            return Recovery(state.worse, state.better.plus(value, score.weight), began, rise, numbers)
        broken_again = Sums(*map(add, state.worse, state.better))
        return Recovery(_grown(broken_again, value, score.weight), numbers=numbers)

    def batch(self, state: Recovery, counts: tuple[int, int], at: float, passed: float, baseline: float) -> Recovery:
        """Return the state after a batch of requests of which some are good, in an order that nobody knows.

        `counts` are the number of good ones (value 1; that of the others is 0) and of all, `baseline` is the smallest
        normal share of good ones; the rest is as in `step`.
        """
        size = min(counts[1], MAX_BATCH)
        good = counts[0] * size // counts[1]
        for index in range(size):
            value = (index + 1) * good // size - index * good // size
            state = self.step(state, Score(float(value)), at, passed if index == 0 else 0.0, baseline)
        return state

    def mend(self, state: Recovery, baseline: float) -> Mend | None:
        """Return the mend that ends the alarm; None while there is none. `baseline` is as in `step`."""
        good = self._baseline(baseline)
        if state.began is None or not self._is_better(state, good):
            return None
        mean = state.better.mean
        if mean < good - _error(state.better, good):
            return None
        return Mend(state.began, self._better(mean), round(state.better.n))

    def _is_better(self, state: Recovery, good: float) -> bool:
        """Whether the evidence says that the mean is better than the limit."""
        return bool(state.numbers) and self._test(state, good).evidence(state.numbers) >= self.days

    def _test(self, state: Recovery, good: float) -> Betting:
        """The detector of a mean above the limit."""
        limit = good
        if state.worse.n:
            mean, n = state.worse.mean, state.worse.w**2 / state.worse.w2
            limit = max(mean + NEARNESS * (good - mean), min(share_bound(mean * n, n, RISK), good))
        return Betting(limit, self.days, Direction.RISE, self.max_weight)

    def _better(self, value: float) -> float:
        """A value as one of a quantity where high is good, and back."""
        return value if self.direction is Direction.FALL else 1.0 - value

    def _baseline(self, baseline: float) -> float:
        """The baseline likewise, as far from 1 as that of the detector."""
        return min(self._better(baseline), 1.0 - MIN_MARGIN)


def limit_time(state: Recovery, now: float) -> Recovery:
    """Return the state with its time capped at `now`, after a clock that ran ahead."""
    return state if state.began is None or state.began <= now else state._replace(began=now)


def _grown(worse: Sums, value: float, weight: float) -> Sums:
    return worse.plus(value, weight, 1.0 if worse.n < MAX_BREAK else 1.0 - 1.0 / MAX_BREAK)


def _error(sums: Sums, mean: float) -> float:
    """Largest standard error of the mean of some answers, if their true mean is `mean`."""
    return math.sqrt(mean * (1.0 - mean) * sums.w2) / sums.w
