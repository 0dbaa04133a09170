"""Monitoring against a learnt reference: the worst mean that the first scores allow.

The baseline is the lowest of three figures, all computed from the reference:

- The lower end of the score interval of its mean (`ragwatch.statistics.estimators.score`), at a one-sided risk of .05
  over all detectors. Then the run length holds with that probability, whatever the scores are like. With the plain
  mean as baseline it would fall short of the guarantee in half of all deployments.
- The lowest mean that the tolerance allows (`normal_range`).
- The mean of the worst part of the day, as far as it differs from the others (`normal_range`).

They are not added up: a mean that lies in the interval of its estimate is as unchanged as one within the tolerance.

Detection starts after the first 100 scores, when the interval is wide: it finds a breakage, not a slow decline. The
baseline is computed again whenever the reference has doubled, until it is complete (see `detect`). Until then the risk
is `EARLY_RISK`, of one detector. A lower end that is u standard errors above the true mean multiplies the evidence by
at most exp(u^2 / 2) until the reference has doubled: against a normal mean that is d too low, the best bet gains d^2 /
(2 s^2) per score. Averaged over all references (u has the density phi(z + u)), that adds phi(z) / z = .14 to the false
alarm rate, and the tolerance takes more from it (measured in `tests/statistical/test_thin_traffic.py`). A complete
reference is used without an end, so nothing limits that gain: its risk is divided by the number of detectors.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.model.estimate import Addends
from ragwatch.statistics.drift.detect import Detector, Direction, Numbers, Scheme, Score, Unit, look_sizes
from ragwatch.statistics.drift.detectors import MIN_MARGIN
from ragwatch.statistics.drift.normal_range import PARTS, lowest_unchanged, part_of_day, worst_part
from ragwatch.statistics.estimators import hajek

Build = Callable[[float], Detector[Score]]
_SUMS = 7  # count, five sums and the largest weight; then three sums for each part of the day
EARLY_RISK = 0.1
"""Probability that the lower end is above the true mean, of a reference that is not complete yet."""
_NO_PARTS = (0.0,) * (3 * PARTS)


FIRST_SCORES = 100
"""Scores after which detection starts, if the reference is not complete with fewer."""


@dataclass(frozen=True, slots=True)
class ReferenceScheme(Scheme[Score]):
    """Scheme that learns the mean of the first scores, and then detects one that is worse."""

    build: Build
    direction: Direction = Direction.FALL
    scores: int = 2000
    tolerance: float = 0.02  # how much worse than that of the reference the mean may be without an alarm
    odds: bool = True  # whether the tolerance near the good end is one on the scale of odds (`normal_range`)
    max_weight: float = 1.0
    unit: Unit = Unit.SCORES
    risk: float = 0.05  # that the lower end of a complete reference is above the true mean
    span: float = 0.0  # minimum learning time in seconds: with the best hours alone, every night would be a fall
    first: int = FIRST_SCORES

    @property
    def looks(self) -> int:
        """Number of sizes of the reference at which the baseline is computed."""
        return len(look_sizes(self.first, self.scores)) - 1

    def look(self, reference: Numbers) -> int:
        """Return how many of these sizes a reference has reached; one more if it is twice a complete one."""
        return bisect_right(look_sizes(self.first, self.scores), reference[0]) if reference else 0

    def learn(self, reference: Numbers, reading: Score, at: float = 0.0) -> Numbers:
        """Return the sums of all scores so far (reversed for a rise), the largest weight, and sums by part of day."""
        value = reading.value if self.direction is Direction.FALL else 1.0 - reading.value
        one = Addends.one(value, 1.0 / min(reading.weight, self.max_weight))
        total = _addends(reference) + one
        parts = list(reference[_SUMS:] or _NO_PARTS)  # earlier versions kept none
        first = 3 * part_of_day(at)
        for index, addend in enumerate((one.w, one.wx, one.w2), start=first):
            parts[index] += addend
        sums = (total.w, total.wx, total.w2, total.w2x, total.w2x2)
        # Inclusion probabilities may have been lower while the reference was learnt.
        heaviest = max(self.max_weight, reference[_SUMS - 1]) if reference else self.max_weight
        return (float(total.n), *sums, heaviest, *parts)

    def baseline(self, reference: Numbers) -> float | None:
        """Return the mean to compare with; None while scores are too few, or if none is above 0."""
        if not self.look(reference):
            return None
        addends = _addends(reference)
        mean = addends.wx / addends.w
        variance = max(0.0, (addends.w2x2 - 2.0 * mean * addends.w2x + mean * mean * addends.w2) / addends.w2)
        allowed = lowest_unchanged(mean, self.tolerance) if self.odds else mean - self.tolerance
        sums = reference[_SUMS:]
        worst = min(allowed, worst_part(zip(sums[::3], sums[1::3], sums[2::3], strict=True), variance))
        if worst > MIN_MARGIN:  # otherwise learning goes on, and the interval would be computed at each score
            risk = self.risk if self.look(reference) >= self.looks else EARLY_RISK
            worst = min(worst, hajek.interval(addends, 1.0 - 2.0 * risk)[1])
        if worst <= MIN_MARGIN:
            return None
        return worst if self.direction is Direction.FALL else 1.0 - worst

    def mean(self, reference: Numbers) -> float | None:
        """Return the mean of the scores that were learnt from; None before the first."""
        addends = _addends(reference)
        mean = addends.wx / addends.w if addends.w > 0.0 else None
        return mean if mean is None or self.direction is Direction.FALL else 1.0 - mean

    def detector(self, reference: Numbers) -> Detector[Score] | None:
        """Return the detector for the baseline; None while there is no baseline."""
        baseline = self.baseline(reference)
        return None if baseline is None else self.build(baseline)


def _addends(reference: Numbers) -> Addends:
    return Addends(int(reference[0]), *reference[1 : _SUMS - 1]) if reference else Addends()
