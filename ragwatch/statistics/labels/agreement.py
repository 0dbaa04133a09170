"""Computes the agreement of a judge with people, and of a judge with an earlier version of itself, from counts.

Every figure has a confidence interval. With fewer labels than its requested width needs, the result is `TooFewLabels`.

Preference for long answers: answers to which people gave the same score form a stratum, among which a judge has no
reason to score long ones higher. Scores and lengths are replaced by their ranks within the stratum (Spearman 1904; ties
get their mean rank), centred, scaled by its size, and pooled into one correlation. Strata in which all scores or all
lengths are equal show nothing. The interval is Fisher's z with the standard error of Bonett and Wright (2000); each
stratum costs one degree of freedom, because its mean is estimated.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist

from ragwatch.statistics.estimators.corrected import MIN_LABELS
from ragwatch.statistics.estimators.interval import CountedInterval, clip, wilson

_BINS = 10  # of a reliability curve
_MOST_LABELS = 1 << 32
Matrix = Sequence[Sequence[int]]
"""Confusion matrix: a row for each class that people chose, a column for each class that the judge chose."""


@dataclass(frozen=True, slots=True)
class TooFewLabels:
    """There are not enough labels for a conclusion; so many are missing, if the agreement stays as it is."""

    labels: int
    missing: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge with people."""

    agreement: CountedInterval  # share of labels with the class that the judge chose
    kappa: CountedInterval | None  # Cohen's kappa: 0 is chance, 1 is perfect; None if the agreement by chance is 1
    # by class, share of the labels of that class to which the judge gave that class; None if there are none
    sensitivity: tuple[CountedInterval | None, ...]
    specificity: tuple[CountedInterval | None, ...]  # by class, share of other labels that the judge gave another


def share(count: int, n: int, confidence: float = 0.95) -> CountedInterval | None:
    """Returns `count` / `n` with Wilson's (1927) interval; None if `n` is 0."""
    return None if n == 0 else _share(count, n, confidence)


def labels_needed(half_width: float, value: float = 0.5, confidence: float = 0.95) -> int:
    """Returns the number of labels at which the half-width of a share's interval is at most `half_width`.

    Inverts the width of Wilson's (1927) interval: without z^2 it is z^2 p (1 - p) / half_width^2
    (Cochran 1977, 4.4).

    >>> labels_needed(0.05), labels_needed(0.05, value=0.9)     # (1.96 / .05)^2 / 4 = 384.1, less z^2
    (381, 141)
    """

    def narrowness(n: int) -> float:
        low, high = wilson(clip(value), n, _z(confidence))
        return (low - high) / 2.0

    return bisect_left(range(_MOST_LABELS), -half_width, 1, key=narrowness)


def compare(matrix: Matrix, *, half_width: float = 0.1, confidence: float = 0.95) -> Agreement | TooFewLabels:
    """Computes all figures of a matrix, or how many labels are missing until the agreement is known to `half_width`."""
    n = sum(map(sum, matrix))
    agreeing = sum(row[index] for index, row in enumerate(matrix))
    required = max(MIN_LABELS, labels_needed(half_width, agreeing / n if n else 0.5, confidence))
    agreement = share(agreeing, n, confidence)
    if n < required or agreement is None:
        return TooFewLabels(n, required - n)
    people, judge = _margins(matrix)
    classes = range(len(matrix))
    return Agreement(
        agreement,
        kappa(matrix, confidence),
        tuple(share(matrix[i][i], people[i], confidence) for i in classes),
        tuple(share(n - people[i] - judge[i] + matrix[i][i], n - people[i], confidence) for i in classes),
    )


def kappa(matrix: Matrix, confidence: float = 0.95) -> CountedInterval | None:
    """Computes Cohen's kappa (error: Fleiss, Cohen and Everitt 1969); None if the agreement by chance is 1."""
    n = sum(map(sum, matrix))
    if n == 0:
        return None
    classes = range(len(matrix))
    people, judge = ([count / n for count in margin] for margin in _margins(matrix))
    agreement = sum(matrix[i][i] for i in classes) / n
    chance = sum(people[i] * judge[i] for i in classes)
    if chance >= 1.0:
        return None
    value = (agreement - chance) / (1.0 - chance)
    rest = 1.0 - value
    inner = math.fsum(matrix[i][i] / n * (1.0 - (people[i] + judge[i]) * rest) ** 2 for i in classes)
    outer = math.fsum(matrix[i][j] / n * (judge[i] + people[j]) ** 2 for i in classes for j in classes if i != j)
    variance = inner + rest**2 * outer - (value - chance * rest) ** 2
    error = _z(confidence) * math.sqrt(max(0.0, variance) / n) / (1.0 - chance)
    return CountedInterval(value, max(-1.0, value - error), min(1.0, value + error), n)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """One bin of a reliability curve: the mean score of the judge, and the share of yes of people (`said`)."""

    mean_score: float
    said: CountedInterval


def reliability(pairs: Iterable[tuple[float, bool]], confidence: float = 0.95) -> tuple[CalibrationBin, ...]:
    """Computes the reliability curve of pairs (score of the judge in [0, 1], yes or no of people).

    Ten bins have equal width; empty bins are left out. Murphy and Winkler (1977); the interval of each bin is Wilson's.
    """
    cells: dict[int, list[tuple[float, bool]]] = {}
    for score, label in pairs:
        cells.setdefault(min(_BINS - 1, int(score * _BINS)), []).append((score, label))
    curve = []
    for _, cell in sorted(cells.items()):
        positive = _share(sum(label for _, label in cell), len(cell), confidence)
        curve.append(CalibrationBin(math.fsum(score for score, _ in cell) / len(cell), positive))
    return tuple(curve)


def calibration_error(curve: Sequence[CalibrationBin]) -> float | None:
    """Computes the expected calibration error: the mean distance between judge and people, weighted by bin size.

    None for an empty curve. Naeini, Cooper and Hauskrecht (2015), with the bins of `reliability`.
    """
    n = sum(point.said.n for point in curve)
    return math.fsum(point.said.n * abs(point.mean_score - point.said.value) for point in curve) / n if n else None


@dataclass(frozen=True, slots=True)
class VerdictFlips:
    """Changes of a judge's verdicts between two readings of the same rows."""

    rate: CountedInterval  # share of rows whose verdict changed
    net: float  # change of the rate of yes; positive if the judge has become more lenient
    p: float  # two-sided p-value of McNemar's exact test


def flips(pairs: Mapping[tuple[bool, bool], int]) -> VerdictFlips | None:
    """Computes the flip rate and McNemar's (1947) exact test of (before, after) counts; None without counts."""
    lost, gained = pairs.get((True, False), 0), pairs.get((False, True), 0)
    n = sum(pairs.values())
    rate = share(lost + gained, n)
    return None if rate is None else VerdictFlips(rate, (gained - lost) / n, mcnemar(lost, gained))


def mcnemar(lost: int, gained: int) -> float:
    """Returns the p-value of McNemar's exact test (1947): twice the smaller tail of Binomial(lost + gained, 1/2)."""
    n = lost + gained
    tail = sum(math.comb(n, count) for count in range(min(lost, gained) + 1))
    return min(1.0, 2 * tail / (1 << n))


def _share(count: int, n: int, confidence: float) -> CountedInterval:
    return CountedInterval(count / n, *wilson(count / n, n, _z(confidence)), n)


def _margins(matrix: Matrix) -> tuple[list[int], list[int]]:
    return [sum(row) for row in matrix], [sum(column) for column in zip(*matrix, strict=True)]


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


MATTERS = 0.2
"""Size from which a correlation whose interval excludes 0 is reported as a warning."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class LengthScore:
    """One answer: the score of the judge, the score of people, and its length in characters."""

    judge: float
    people: float
    chars: int


@dataclass(frozen=True, slots=True)
class LengthPreference:
    """Preference of a judge for long answers: their rank correlation with its scores at equal label.

    It is positive if long answers get higher scores; answers of strata that show nothing are counted.
    """

    correlation: CountedInterval
    strata: int
    answers: int

    @property
    def matters(self) -> bool:
        """Whether the interval excludes 0 and the correlation is at least `MATTERS` in size."""
        excludes_zero = self.correlation.low > 0.0 or self.correlation.high < 0.0
        return excludes_zero and abs(self.correlation.value) >= MATTERS


def length_preference(
    rows: Iterable[LengthScore], *, minimum: int = MIN_LABELS, confidence: float = 0.95
) -> LengthPreference | TooFewLabels:
    """Computes the rank correlation of score and length at equal label, from `minimum` answers on."""
    answers = list(rows)
    ordered = sorted(answers, key=lambda row: round(row.people, _DIGITS))
    strata = [list(members) for _, members in groupby(ordered, key=lambda row: round(row.people, _DIGITS))]
    pairs = [pair for members in strata if (pair := _centred_ranks(members)) is not None]
    n = sum(len(scores) for scores, _ in pairs)
    degrees = n - len(pairs) - 2
    if n < minimum or degrees < 1:
        return TooFewLabels(n, max(minimum - n, 1))
    first, second = [score for scores, _ in pairs for score in scores], [rank for _, own in pairs for rank in own]
    product = math.fsum(a * b for a, b in zip(first, second, strict=True))
    value = product / math.sqrt(math.fsum(a * a for a in first) * math.fsum(b * b for b in second))
    value = max(-1.0, min(1.0, value))
    half = _z(confidence) * math.sqrt((1.0 + value * value / 2.0) / degrees)
    centre = math.atanh(max(-1.0 + 1e-12, min(1.0 - 1e-12, value)))
    correlation = CountedInterval(value, math.tanh(centre - half), math.tanh(centre + half), n)
    return LengthPreference(correlation, len(pairs), len(answers))


def _centred_ranks(members: Sequence[LengthScore]) -> tuple[list[float], list[float]] | None:
    """Ranks of scores and lengths within a stratum, less their mean and divided by its size; None if all are equal."""
    scores = ranks([round(row.judge, _DIGITS) for row in members])
    lengths = ranks([row.chars for row in members])
    if len(set(scores)) < 2 or len(set(lengths)) < 2:
        return None
    mean, size = (len(members) + 1) / 2.0, len(members)
    return [(rank - mean) / size for rank in scores], [(rank - mean) / size for rank in lengths]


def ranks(values: Sequence[float]) -> list[float]:
    """Returns the rank of each value, from 1; equal values get the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result, below = [0.0] * len(values), 0
    for _, group in groupby(order, key=values.__getitem__):
        tied = list(group)
        for index in tied:
            result[index] = below + (len(tied) + 1) / 2.0
        below += len(tied)
    return result
