"""Agreement: a judge beside people, a judge beside its former self. Counts in, figures with intervals out.

Labels are dear and few, so every figure has an interval, and none is given for fewer labels than a wanted width needs:
`TooFewLabels` says how many more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from ragwatch.core.estimators.interval import clip, wilson

FEWEST = 30
Matrix = Sequence[Sequence[int]]
"""Counts by class: a row for each class that people chose, a column for each that the judge chose."""


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share with its interval: `value` of `n`."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class TooFewLabels:
    """Nothing can be concluded yet. `missing` labels more would do, were the agreement as it looks now."""

    labels: int
    missing: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a judge agrees with people.

    Attributes:
        agreement: Share of labels on which both say the same.
        kappa: Cohen's kappa: 0 is chance, 1 is perfect; None where chance explains all.
        sensitivity: By class, share of what people put there that the judge put there too; None for an empty class.
        specificity: By class, share of what people put elsewhere that the judge put elsewhere.
    """

    agreement: ShareEstimate
    kappa: ShareEstimate | None
    sensitivity: tuple[ShareEstimate | None, ...]
    specificity: tuple[ShareEstimate | None, ...]


def share(count: int, n: int, confidence: float = 0.95) -> ShareEstimate | None:
    """`count` of `n` with Wilson's (1927) interval; None of none.

    >>> found = share(9, 10)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.9, 0.596, 0.982)
    """
    return None if n == 0 else _share(count, n, confidence)


def labels_needed(half_width: float, value: float = 0.5, confidence: float = 0.95) -> int:
    """Labels for an interval of a share that reaches at most `half_width` to either side of its middle.

    Wilson's (1927) width turned round, by halving: without z^2 it is z^2 p (1 - p) / half_width^2 (Cochran 1977, 4.4).

    >>> labels_needed(0.05), labels_needed(0.05, value=0.9)     # (1.96 / .05)^2 / 4 = 384.1, less z^2
    (381, 141)
    """
    low, high = 0, 1
    while _half(value, high, confidence) > half_width:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _half(value, middle, confidence) > half_width:
            low = middle
        else:
            high = middle
    return high


def compare(matrix: Matrix, *, half_width: float = 0.1, confidence: float = 0.95) -> Agreement | TooFewLabels:
    """All figures of a matrix, or how many labels more are needed before they mean something.

    Args:
        matrix: Counts by class of people (rows) and judge (columns).
        half_width: Widest interval of the agreement, to either side, from which anything is concluded.
        confidence: Two-sided level of all intervals.

    >>> compare([[5, 1], [1, 3]])
    TooFew(labels=10, missing=50)
    >>> found = compare([[40, 9], [6, 45]])
    >>> found.agreement.value, round(found.kappa.value, 4)             # pe = .5008; (.85 - .5008) / .4992
    (0.85, 0.6995)
    """
    n = sum(map(sum, matrix))
    same = sum(row[index] for index, row in enumerate(matrix))
    wanted = max(FEWEST, labels_needed(half_width, same / n if n else 0.5, confidence))
    agreed = share(same, n, confidence)
    if n < wanted or agreed is None:
        return TooFewLabels(n, wanted - n)
    people, judge = _margins(matrix)
    classes = range(len(matrix))
    return Agreement(
        agreed,
        kappa(matrix, confidence),
        tuple(share(matrix[each][each], people[each], confidence) for each in classes),
        tuple(
            share(n - people[each] - judge[each] + matrix[each][each], n - people[each], confidence) for each in classes
        ),
    )


def kappa(matrix: Matrix, confidence: float = 0.95) -> ShareEstimate | None:
    """Cohen's kappa, with the standard error of Fleiss, Cohen and Everitt (1969). None where chance explains all.

    >>> found = kappa([[40, 9], [6, 45]])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.6995, 0.5596, 0.8394)
    """
    n = sum(map(sum, matrix))
    if n == 0:
        return None
    classes = range(len(matrix))
    people, judge = ([each / n for each in margin] for margin in _margins(matrix))
    same = sum(matrix[i][i] for i in classes) / n
    chance = sum(people[i] * judge[i] for i in classes)
    if chance >= 1.0:
        return None
    value = (same - chance) / (1.0 - chance)
    rest = 1.0 - value
    inner = math.fsum(matrix[i][i] / n * (1.0 - (people[i] + judge[i]) * rest) ** 2 for i in classes)
    outer = math.fsum(matrix[i][j] / n * (judge[i] + people[j]) ** 2 for i in classes for j in classes if i != j)
    spread = inner + rest**2 * outer - (value - chance * rest) ** 2
    error = _z(confidence) * math.sqrt(max(0.0, spread) / n) / (1.0 - chance)
    return ShareEstimate(value, max(-1.0, value - error), min(1.0, value + error), n)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """One bin of a reliability curve: what the judge said on average, and what people said, of `said.n` rows."""

    mean_score: float
    said: ShareEstimate


def reliability(
    pairs: Iterable[tuple[float, bool]], bins: int = 10, confidence: float = 0.95
) -> tuple[CalibrationBin, ...]:
    """Reliability curve of (judge's score in [0, 1], people's yes or no): equal bins, empty ones left out.

    Murphy and Winkler (1977); the interval of each bin is Wilson's.

    >>> curve = reliability([(0.91, True), (0.95, False), (0.1, False)])
    >>> [(round(each.mean_score, 2), each.said.value) for each in curve]
    [(0.1, 0.0), (0.93, 0.5)]
    """
    cells: dict[int, list[tuple[float, bool]]] = {}
    for score, label in pairs:
        cells.setdefault(min(bins - 1, int(score * bins)), []).append((score, label))
    found = []
    for _, cell in sorted(cells.items()):
        said = _share(sum(label for _, label in cell), len(cell), confidence)
        found.append(CalibrationBin(math.fsum(score for score, _ in cell) / len(cell), said))
    return tuple(found)


def calibration_error(curve: Sequence[CalibrationBin]) -> float | None:
    """Expected calibration error: mean distance of what was said by judge and people, over rows. None of none.

    Naeini, Cooper and Hauskrecht (2015), with the bins of `reliability`.

    >>> calibration_error(reliability([(0.75, True), (0.75, False)])), calibration_error(())
    (0.25, None)
    """
    n = sum(each.said.n for each in curve)
    return math.fsum(each.said.n * abs(each.mean_score - each.said.value) for each in curve) / n if n else None


@dataclass(frozen=True, slots=True)
class VerdictFlips:
    """A judge before and after on the same rows.

    Attributes:
        rate: Share of rows whose verdict changed.
        net: Change of the rate of yes: positive when the judge has become milder.
        p: Exact McNemar: how likely so one-sided a change is among rows that changed, were both sides alike.
    """

    rate: ShareEstimate
    net: float
    p: float


def flips(pairs: Mapping[tuple[bool, bool], int], confidence: float = 0.95) -> VerdictFlips | None:
    """Flip rate and McNemar's (1947) exact test of (before, after) counts; None of none.

    >>> found = flips({(True, True): 80, (False, False): 10, (True, False): 9, (False, True): 1})
    >>> found.rate.value, round(found.net, 2), round(found.p, 4)                # 2 (1 + 10) / 2^10
    (0.1, -0.08, 0.0215)
    """
    lost, won = pairs.get((True, False), 0), pairs.get((False, True), 0)
    n = sum(pairs.values())
    rate = share(lost + won, n, confidence)
    return None if rate is None else VerdictFlips(rate, (won - lost) / n, mcnemar(lost, won))


def mcnemar(one: int, other: int) -> float:
    """Two-sided exact p of McNemar's (1947) test: twice the smaller tail of a fair coin thrown `one + other` times.

    >>> mcnemar(0, 0), mcnemar(5, 5), mcnemar(0, 10)
    (1.0, 1.0, 0.001953125)
    """
    n = one + other
    tail = sum(math.comb(n, each) for each in range(min(one, other) + 1))
    return min(1.0, 2 * tail / (1 << n))


def _share(count: int, n: int, confidence: float) -> ShareEstimate:
    return ShareEstimate(count / n, *wilson(count / n, n, _z(confidence)), n)


def _margins(matrix: Matrix) -> tuple[list[int], list[int]]:
    return [sum(row) for row in matrix], [sum(column) for column in zip(*matrix, strict=True)]


def _half(value: float, n: int, confidence: float) -> float:
    low, high = wilson(clip(value), n, _z(confidence))
    return (high - low) / 2.0


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)
