"""PPI++: many scores of a judge, corrected by few labels of people (Angelopoulos, Duchi and Zrnic, arXiv 2311.01453).

A chain of judges, each dearer than the one before, ends at people: an embedded judge scores every draw, an LLM a
sub-draw of those, people a sub-draw of these. With f_k the score of tier k, m_k the weighted mean over its rows, and
y the label, the last tier, the estimate is

    sum_k m_k(l_k f_k - l_(k-1) f_(k-1)),    l of the last tier 1, l_(-1) = 0

which has the labels' mean as its expectation whatever the judges say and whatever the l are. Each l is the one that
leaves least variance, l_k = l_(k+1) cov(f_(k+1), f_k) / var(f_k), the covariance over rows of both tiers and the
variance over all rows of tier k. With two tiers and equal weights that is PPI++, in its form where the judged rows
include the labelled ones.

Weights are 1 / inclusion probability of each tier, self-normalised (Hajek), as in Datta and Polson (arXiv 2508.10149)
and active inference (arXiv 2403.03208): people may be asked more often where judges disagree. The variance is that of
the linearised sum over rows, centred within rows that reached the same tier.

Everything is a sum over rows, so that sums of parts, of hours or replicas, are the sums of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from ragwatch.core.estimate import Addends

_PARTS = 3  # of a row and tier: w, w f_(k-1), w f_k
_MOMENTS = 6  # of a tier: n, w, w f_(k-1), w f_k, w f_(k-1) f_k, w f_k^2


@dataclass(frozen=True, slots=True)
class PpiSums:
    """Sums over rows. They add up, over time and replicas.

    Attributes:
        tiers: Length of the chain, people included.
        numbers: The sums: moments of each tier, then for rows that went no further than tier g their number, and
            first and second moments of the linear parts.
    """

    tiers: int
    numbers: tuple[float, ...]

    @classmethod
    def none(cls, tiers: int) -> PpiSums:
        """Of no row, for a chain of so many tiers."""
        width = _PARTS * tiers
        return cls(tiers, (0.0,) * (tiers * _MOMENTS + tiers * (1 + width + width * (width + 1) // 2)))

    @classmethod
    def one(cls, tiers: int, scores: Sequence[float], probabilities: Sequence[float]) -> PpiSums:
        """Of one row.

        Args:
            tiers: Length of the chain.
            scores: By tier, as far as this row went: (embedded,), (embedded, llm) or (embedded, llm, label).
            probabilities: That it went there, each given that it had come to the tier before; the first is that of
                the draw itself.

        >>> found = Sums.one(2, [0.8], [0.1]) + Sums.one(2, [0.6, 1.0], [0.1, 0.5])
        >>> found.rows(0), found.rows(1), round(found.mean(0), 4), found.mean(1)
        (2, 1, 0.7, 1.0)
        """
        return cls.of(tiers, [(scores, probabilities)])

    @classmethod
    def of(cls, tiers: int, rows: Iterable[tuple[Sequence[float], Sequence[float]]]) -> PpiSums:
        """Of many rows, each as (scores, probabilities) of `one`."""
        numbers = list(cls.none(tiers).numbers)
        for scores, probabilities in rows:
            _add_row(numbers, tiers, scores, probabilities)
        return cls(tiers, tuple(numbers))

    def __add__(self, other: PpiSums) -> PpiSums:
        return PpiSums(self.tiers, tuple(one + more for one, more in zip(self.numbers, other.numbers, strict=True)))

    def rows(self, tier: int) -> int:
        """Rows that came to this tier."""
        return round(self.numbers[tier * _MOMENTS])

    def mean(self, tier: int) -> float:
        """Weighted mean of this tier over its rows."""
        return self.numbers[tier * _MOMENTS + 3] / self.numbers[tier * _MOMENTS + 1]

    def moments(self, tier: int) -> tuple[float, ...]:
        """Sums of 1, w, w f_(k-1), w f_k, w f_(k-1) f_k and w f_k^2 over the rows of a tier."""
        return self.numbers[tier * _MOMENTS : (tier + 1) * _MOMENTS]

    def addends(self) -> Addends:
        """Addends of the last tier alone: of the labels. Cubes of weights are not kept.

        >>> found = Sums.of(2, [([0.6, 1.0], [0.1, 0.5]), ([0.3, 0.5], [0.1, 1.0]), ([0.9], [0.1])]).addends()
        >>> [round(each, 6) for each in (found.n, found.w, found.wx, found.w2, found.w2x, found.w2x2)]  # w = 20, 10
        [2, 30.0, 25.0, 500.0, 450.0, 425.0]
        """
        n, w, _, wy, _, _ = self.moments(self.tiers - 1)
        # Last in the triangle of the last group: products of w with w, w f, w y; of w f with w f, w y; of w y with w y.
        return Addends(round(n), w, wy, self.numbers[-6], self.numbers[-4], self.numbers[-1])

    def product(self, one: Sequence[float], other: Sequence[float]) -> float:
        """Sum over rows of two linear forms of their parts, each centred within the rows of one furthest tier.

        >>> sums, score = Sums.of(1, [([0.2], [1.0]), ([0.8], [1.0])]), (0.0, 0.0, 1.0)
        >>> round(sums.product(score, score), 6)                                    # (.2 - .5)^2 + (.8 - .5)^2
        0.18
        """
        width = _PARTS * self.tiers
        size = 1 + width + width * (width + 1) // 2
        total = 0.0
        for tier in range(self.tiers):
            start = self.tiers * _MOMENTS + tier * size
            group = self.numbers[start : start + size]
            if group[0]:
                total += _form(group[1 + width :], one, other)
                total -= _dot(group[1:], one) * _dot(group[1:], other) / group[0]
        return total


def _add_row(numbers: list[float], tiers: int, scores: Sequence[float], probabilities: Sequence[float]) -> None:
    """Add one row to the sums, touching only what it has a part in."""
    width = _PARTS * tiers
    linear: list[float] = []
    weight, before = 1.0, 0.0
    for tier, (score, probability) in enumerate(zip(scores, probabilities, strict=True)):
        weight /= probability
        row = (weight, weight * before, weight * score)
        linear += row
        for index, more in enumerate((1.0, *row, row[1] * score, row[2] * score), start=tier * _MOMENTS):
            numbers[index] += more
        before = score
    start = tiers * _MOMENTS + (len(scores) - 1) * (1 + width + width * (width + 1) // 2)
    numbers[start] += 1.0
    for i, one in enumerate(linear):
        numbers[start + 1 + i] += one
        triangle = start + 1 + width + i * width - i * (i - 1) // 2
        for j, other in enumerate(linear[i:]):
            numbers[triangle + j] += one * other


@dataclass(frozen=True, slots=True)
class PpiEstimate:
    """A corrected mean and what it rests on.

    Attributes:
        value: The estimate, not yet clipped to [0, 1].
        variance: Of it.
        variance_of_labels: Of the mean of labels alone, from the same rows.
        tuning: l of each tier but the last.
    """

    value: float
    variance: float
    variance_of_labels: float
    tuning: tuple[float, ...]


def solve(sums: PpiSums) -> PpiEstimate:
    """The estimate and its variance. At least two labels are needed.

    >>> rows = [([f, y], [1.0, 1.0]) for f, y in ((0.9, 1.0), (0.8, 1.0), (0.3, 0.0), (0.6, 0.0))]
    >>> judged = [([f], [1.0]) for f in (0.2, 0.4, 0.4, 0.6)]
    >>> found = solve(Sums.of(2, rows + judged))        # cov = .1, var = .415/7, l = .7/.415; .5 + l (.525 - .65)
    >>> [round(each, 4) for each in (*found.tuning, found.value)]
    [1.6867, 0.2892]
    """
    last = sums.tiers - 1
    tuning = [0.0] * last + [1.0]
    for tier in reversed(range(last)):
        tuning[tier] = tuning[tier + 1] * _tune(sums, tier)
    value = sums.mean(0) * tuning[0]
    for tier in range(1, sums.tiers):
        _, w, before, _, _, _ = sums.moments(tier)
        value += tuning[tier] * sums.mean(tier) - tuning[tier - 1] * before / w
    residual = _residual(sums, tuning)
    labels = _residual(sums, [0.0] * last + [1.0])
    return PpiEstimate(value, sums.product(residual, residual), sums.product(labels, labels), tuple(tuning[:last]))


def _tune(sums: PpiSums, tier: int) -> float:
    """Regression of tier + 1 on tier, between 0 and what takes the judge at its word (PPI's l = 1)."""
    n, w, _, wf, _, wff = sums.moments(tier)
    following, v, vf, vg, vfg, _ = sums.moments(tier + 1)
    if n <= following:
        return 0.0  # every row went on: nothing is left for this tier to tell
    variance = (wff / w - (wf / w) ** 2) * n / (n - 1.0)
    covariance = vfg / v - vf / v * (vg / v)
    if variance <= 1e-14:
        return 0.0  # a judge that says the same of everything tells nothing
    return min(n / (n - following), max(0.0, covariance / variance))


def _residual(sums: PpiSums, tuning: Sequence[float]) -> list[float]:
    """The linear form of a row's parts that is its share in the estimate's error."""
    form = [0.0] * (_PARTS * sums.tiers)
    before = 0.0
    for tier, factor in enumerate(tuning):
        _, w, wf, wg, _, _ = sums.moments(tier)
        form[tier * _PARTS] = (before * wf - factor * wg) / w / w
        form[tier * _PARTS + 1] = -before / w
        form[tier * _PARTS + 2] = factor / w
        before = factor
    return form


def _dot(numbers: Sequence[float], form: Sequence[float]) -> float:
    return fsum(one * other for one, other in zip(numbers, form, strict=False))


def _form(triangle: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float:
    """The product one' S other for a symmetric S of which the upper triangle is given, row by row."""
    total, index, width = 0.0, 0, len(one)
    for i in range(width):
        total += triangle[index] * one[i] * other[i]
        for j in range(i + 1, width):
            total += triangle[index + j - i] * (one[i] * other[j] + one[j] * other[i])
        index += width - i
    return total
