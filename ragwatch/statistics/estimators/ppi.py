"""PPI++: many scores of a judge, corrected by few labels (Angelopoulos, Duchi and Zrnic, arXiv 2311.01453).

The tiers form a chain of increasing cost that ends with labels by people: an embedded judge scores every draw, an LLM a
subsample of those, people a subsample of these. With f_k the score of tier k, m_k the weighted mean over its rows, and
y the label, the last tier, the estimate is

    sum_k m_k(l_k f_k - l_(k-1) f_(k-1)),    l of the last tier 1, l_(-1) = 0

whose expectation is the mean of the labels, for any judges and any l. Each l minimises the variance: l_k = l_(k+1)
cov(f_(k+1), f_k) / var(f_k), the covariance over rows of both tiers and the variance over all rows of tier k. With two
tiers and equal weights that is PPI++, in its form where the judged rows include the labelled ones.

Weights are 1 / inclusion probability of each tier, self-normalised (Hajek), as in Datta and Polson (arXiv 2508.10149)
and active inference (arXiv 2403.03208): labels may be requested more often where judges disagree. The variance is that
of the linearised sum over rows, centred within rows that reached the same tier. All are sums over rows, which add up
over hours and replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from ragwatch.model.estimate import Addends

_PARTS = 3  # of a row and tier: w, w f_(k-1), w f_k
_MOMENTS = 6  # of a tier: n, w, w f_(k-1), w f_k, w f_(k-1) f_k, w f_k^2


@dataclass(frozen=True, slots=True)
class PpiSums:
    """Sums over rows, which add up over time and replicas."""

    tiers: int  # length of the chain, including labels
    # the sums: moments of each tier; then, for the rows that end at each tier, their number and the first and second
    # moments of their linear parts
    numbers: tuple[float, ...]

    @classmethod
    def none(cls, tiers: int) -> PpiSums:
        """Return the sums over no row."""
        width = _PARTS * tiers
        return cls(tiers, (0.0,) * (tiers * _MOMENTS + tiers * (1 + width + width * (width + 1) // 2)))

    @classmethod
    def of(cls, tiers: int, rows: Iterable[tuple[Sequence[float], Sequence[float]]]) -> PpiSums:
        """Return the sums over rows of scores by tier, up to the last one that a row reached, and of probabilities.

        These are those of reaching each tier, given the tier before; the first is that of the draw.
        """
        numbers = list(cls.none(tiers).numbers)
        for scores, probabilities in rows:
            _add_row(numbers, tiers, scores, probabilities)
        return cls(tiers, tuple(numbers))

    def __add__(self, other: PpiSums) -> PpiSums:
        return PpiSums(self.tiers, tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))

    def rows(self, tier: int) -> int:
        """Return the number of rows that reached a tier."""
        return round(self.numbers[tier * _MOMENTS])

    def mean(self, tier: int) -> float:
        """Return the weighted mean of a tier over its rows."""
        return self.numbers[tier * _MOMENTS + 3] / self.numbers[tier * _MOMENTS + 1]

    def moments(self, tier: int) -> tuple[float, ...]:
        """Return the sums of 1, w, w f_(k-1), w f_k, w f_(k-1) f_k and w f_k^2 over the rows of a tier."""
        return self.numbers[tier * _MOMENTS : (tier + 1) * _MOMENTS]

    def without_last(self) -> PpiSums:
        """Return the sums of the same rows without the last tier, which no row may have reached.

        Of a chain of two judges and people it leaves the two judges: the last judge corrects the first.

        >>> rows = [([0.2], [0.5]), ([0.8, 1.0], [0.5, 0.1])]
        >>> PpiSums.of(3, rows).without_last() == PpiSums.of(2, rows)
        True
        """
        tiers, width = self.tiers - 1, _PARTS * self.tiers
        shorter = width - _PARTS
        size = 1 + width + width * (width + 1) // 2
        numbers = list(self.numbers[: tiers * _MOMENTS])
        for tier in range(tiers):
            start = self.tiers * _MOMENTS + tier * size
            numbers += self.numbers[start : start + 1 + shorter]
            triangle = start + 1 + width
            for i in range(shorter):
                row = triangle + i * width - i * (i - 1) // 2
                numbers += self.numbers[row : row + shorter - i]
        return PpiSums(tiers, tuple(numbers))

    def addends(self) -> Addends:
        """Return the addends of the last tier, the labels, without sums of w^3 and w^4."""
        n, w, _, wy, _, _ = self.moments(self.tiers - 1)
        # The last triangle ends with the products of w with w, w f, w y; of w f with w f, w y; of w y with w y.
        numbers = self.numbers
        return Addends(n=round(n), w=w, wx=wy, w2=numbers[-6], w2x=numbers[-4], w2x2=numbers[-1])

    def product(self, left: Sequence[float], right: Sequence[float]) -> float:
        """Return the sum over rows of the product of two linear forms, centred within rows that end at one tier."""
        width = _PARTS * self.tiers
        size = 1 + width + width * (width + 1) // 2
        total = 0.0
        for tier in range(self.tiers):
            start = self.tiers * _MOMENTS + tier * size
            group = self.numbers[start : start + size]
            if group[0]:
                total += _form(group[1 + width :], left, right)
                total -= _dot(group[1:], left) * _dot(group[1:], right) / group[0]
        return total


def _add_row(numbers: list[float], tiers: int, scores: Sequence[float], probabilities: Sequence[float]) -> None:
    """Add one row to the sums in place; only entries that it contributes to are touched."""
    width = _PARTS * tiers
    linear: list[float] = []
    weight, before = 1.0, 0.0
    for tier, (score, probability) in enumerate(zip(scores, probabilities, strict=True)):
        weight /= probability
        row = (weight, weight * before, weight * score)
        linear += row
        for index, term in enumerate((1.0, *row, row[1] * score, row[2] * score), start=tier * _MOMENTS):
            numbers[index] += term
        before = score
    start = tiers * _MOMENTS + (len(scores) - 1) * (1 + width + width * (width + 1) // 2)
    numbers[start] += 1.0
    for i, left in enumerate(linear):
        numbers[start + 1 + i] += left
        triangle = start + 1 + width + i * width - i * (i - 1) // 2
        for j, right in enumerate(linear[i:]):
            numbers[triangle + j] += left * right


@dataclass(frozen=True, slots=True)
class PpiEstimate:
    """A corrected mean with its variance."""

    value: float  # the mean, not yet clipped to [0, 1]
    variance: float  # variance of the mean
    variance_of_labels: float  # variance of the mean of the labels alone, from the same rows
    tuning: tuple[float, ...]  # L of each tier but the last


def solve(sums: PpiSums) -> PpiEstimate:
    """Compute the corrected mean and its variance from at least two labels."""
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
    """Return the regression coefficient of tier + 1 on tier, between 0 and that of plain PPI (l = 1)."""
    n, w, _, wf, _, wff = sums.moments(tier)
    following, v, vf, vg, vfg, _ = sums.moments(tier + 1)
    if n <= following:
        return 0.0  # every row has the next tier: this one adds no information
    variance = (wff / w - (wf / w) ** 2) * n / (n - 1.0)
    covariance = vfg / v - vf / v * (vg / v)
    if variance <= 1e-14:
        return 0.0  # a constant judge adds no information
    return min(n / (n - following), max(0.0, covariance / variance))


def _residual(sums: PpiSums, tuning: Sequence[float]) -> list[float]:
    """Return the linear form that gives the contribution of a row to the error of the estimate."""
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
    return fsum(number * factor for number, factor in zip(numbers, form, strict=False))


def _form(triangle: Sequence[float], left: Sequence[float], right: Sequence[float]) -> float:
    """Return left' S right for a symmetric S that is given by its upper triangle, row by row."""
    total, index, width = 0.0, 0, len(left)
    for i in range(width):
        total += triangle[index] * left[i] * right[i]
        for j in range(i + 1, width):
            total += triangle[index + j - i] * (left[i] * right[j] + left[j] * right[i])
        index += width - i
    return total
