"""Estimate corrected by labels: PPI++, or the labels alone if failures are rare.

The interval is Wilson's (1927) for m = value (1 - value) / variance trials, with Student's t of the labels. The normal
approximation behind the variance does not hold for rare failures (plain PPI++ misses in 13 to 28 % at rates of 2 to
3 %): with fewer than MIN_MINORITY_LABELS effective labels in the smaller class, the estimate uses the labels alone. If
the judge agrees with every label, the variance is at least that of 3 disagreements in n^2 (the rule of three).

How far it depends on one annotator: with labels of several people the interval spans those of the estimates without
each of them, so that whoever is hostile or mistaken, one of these does without. Where too few labels remain without
somebody, the figure stands on that person, and its interval reaches to what the judge says by itself, unless that
person is trusted.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ragwatch.model.estimate import Addends, Estimate
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.interval import clip, quantile, wilson
from ragwatch.statistics.estimators.ppi import PpiSums, solve

MIN_LABELS = 30
"""Labels below which nothing is estimated from them, unless `labels.minimum` says otherwise."""
MIN_MINORITY_LABELS = 5.0


class Method(StrEnum):
    """Method of the estimate."""

    PPI = "ppi++"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class CorrectedEstimate:
    """A corrected estimate."""

    estimate: Estimate  # `n` counts labels; `n_eff`, those that alone would give the same precision
    gain: float  # variance of the labels alone / variance of the estimate: 2 is worth twice the labels


def correct(
    sums: PpiSums, *, unjudged_weight: float = 0.0, confidence: float = 0.95, min_labels: int = MIN_LABELS
) -> CorrectedEstimate | None:
    """Compute the corrected estimate, None with too few labels.

    `unjudged_weight` is that of draws that the first judge could not score.
    """
    labels = sums.rows(sums.tiers - 1)
    if labels < max(3, min_labels):
        return None
    judged, people = sums.moments(0)[1], sums.addends()
    coverage, mean = judged / (judged + unjudged_weight), clip(people.wx / people.w)
    if min(mean, 1.0 - mean) * _effective(people) >= MIN_MINORITY_LABELS:
        (figures, gain), method = _by_ppi(sums, confidence), Method.PPI
    else:
        figures, gain, method = hajek.interval(people, confidence), 1.0, Method.LABELS
    value, low, high, effective = figures
    estimate = Estimate(
        value=value,
        low=low,
        high=high,
        n=labels,
        n_eff=effective,
        coverage=coverage,
        bound_low=value * coverage,
        bound_high=clip(value * coverage + 1.0 - coverage),
        interval=method,
    )
    return CorrectedEstimate(estimate, gain)


def judge_interval(sums: PpiSums, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean of the first judge by itself, without labels.

    >>> rows = [([f], [1.0]) for f in (0.0, 1.0) * 50]
    >>> [round(end, 2) for end in judge_interval(PpiSums.of(2, rows))]
    [0.4, 0.6]
    """
    rows, w, _, wf, _, _ = sums.moments(0)
    value = clip(wf / w)
    form = [-wf / w / w, 0.0, 1.0 / w] + [0.0] * (3 * sums.tiers - 3)
    variance = max(sums.product(form, form), 3.0 / rows**2)
    return wilson(value, max(value * (1.0 - value), 1.0 / rows) / variance, quantile(confidence, rows))


def _by_ppi(sums: PpiSums, confidence: float) -> tuple[hajek.Interval, float]:
    """Return mean, lower end, upper end and effective number of labels, and the gain."""
    ppi, labels, effective = solve(sums), sums.rows(sums.tiers - 1), _effective(sums.addends())
    value = clip(ppi.value)
    # Two parameters, a mean and a tuning, were estimated from the labels.
    min_variance, factor = 3.0 / effective**2, labels / (labels - 2)
    variance = max(ppi.variance * factor, min_variance)
    gain = max(ppi.variance_of_labels * factor, min_variance) / variance
    # At 0 and 1, where value (1 - value) is 0, it is taken as if one label in n were a failure.
    spread = max(value * (1.0 - value), 1.0 / effective)
    low, high = wilson(value, spread / variance, quantile(confidence, effective - 2.0))
    return (value, low, high, effective * gain), gain


def _effective(labels: Addends) -> float:
    """Return the effective number of labels (Kish)."""
    return labels.w * labels.w / labels.w2


@dataclass(frozen=True, slots=True)
class WithoutAnnotator:
    """What a corrected estimate would be without so many labels of one annotator; None if the others are too few."""

    annotator: str
    labels: int
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class AnnotatorShares:
    """The annotators behind a corrected estimate."""

    count: int
    without: tuple[WithoutAnnotator, ...]  # the estimate without each of those with most labels, most first
    stands_on: str | None  # the annotator without whose labels there is no estimate; None if there is none
    change: float | None  # greatest change of the mean without one annotator; None if no estimate remains without any


def shares_of(estimate: Estimate, count: int, without: Sequence[WithoutAnnotator]) -> AnnotatorShares:
    """Return the annotators behind an estimate, given those without each of them."""
    ordered = tuple(sorted(without, key=lambda one: (-one.labels, one.annotator)))
    changes = [abs(one.estimate.value - estimate.value) for one in ordered if one.estimate is not None]
    alone = next((one.annotator for one in ordered if one.estimate is None), None)
    return AnnotatorShares(count, ordered, alone, max(changes, default=None))


def widened(
    estimate: Estimate, shares: AnnotatorShares, by_judge: tuple[float, float] | None, trusted: Collection[str] = ()
) -> Estimate:
    """Return the estimate with an interval, given that of the judge, that no annotator can move away from the truth."""
    others = [one.estimate for one in shares.without if one.estimate is not None and one.annotator not in trusted]
    low = min((estimate.low, *(other.low for other in others)))
    high = max((estimate.high, *(other.high for other in others)))
    if shares.stands_on is not None and shares.stands_on not in trusted and by_judge is not None:
        low, high = min(low, by_judge[0]), max(high, by_judge[1])
    return replace(estimate, low=low, high=high)
