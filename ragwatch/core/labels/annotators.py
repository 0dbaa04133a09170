"""How far a corrected estimate depends on one annotator: leave one out, and widen the interval by what that changes.

With labels of several people the interval spans those of the estimates without each of them: whoever of them is
hostile or mistaken, one of these intervals does without. Where too few labels remain without somebody, the figure
stands on that person, and its interval reaches to what the judge says by itself, unless that person is trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ragwatch.core.estimate import Estimate


@dataclass(frozen=True, slots=True)
class WithoutAnnotator:
    """What a corrected estimate would be without so many labels of one annotator; None if the others are too few."""

    annotator: str
    labels: int
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class AnnotatorShares:
    """The annotators behind a corrected estimate.

    Attributes:
        without: The estimate without each of those with most labels, most first.
        stands_on: The annotator without whose labels there is no estimate; None if there is none.
        change: Greatest change of the mean without one annotator; None if no estimate remains without any.
    """

    count: int
    without: tuple[WithoutAnnotator, ...]
    stands_on: str | None
    change: float | None


def shares_of(estimate: Estimate, count: int, without: Sequence[WithoutAnnotator]) -> AnnotatorShares:
    """Return the annotators behind an estimate, given those without each of them."""
    ordered = tuple(sorted(without, key=lambda one: (-one.labels, one.annotator)))
    changes = [abs(one.estimate.value - estimate.value) for one in ordered if one.estimate is not None]
    alone = next((one.annotator for one in ordered if one.estimate is None), None)
    return AnnotatorShares(count, ordered, alone, max(changes, default=None))


def widened(
    estimate: Estimate, shares: AnnotatorShares, by_judge: tuple[float, float] | None, trusted: Collection[str] = ()
) -> Estimate:
    """Return the estimate with an interval that no single annotator can move away from the truth.

    `by_judge` is the interval of the judge by itself, if known. Because of trusted annotators nothing is widened.
    """
    others = [one.estimate for one in shares.without if one.estimate is not None and one.annotator not in trusted]
    low = min((estimate.low, *(other.low for other in others)))
    high = max((estimate.high, *(other.high for other in others)))
    if shares.stands_on is not None and shares.stands_on not in trusted and by_judge is not None:
        low, high = min(low, by_judge[0]), max(high, by_judge[1])
    return replace(estimate, low=low, high=high)
