"""Fusion: what words say of a claim and what the model says, made into one calibrated probability. Pure.

A logit is a weighted sum of five numbers; a table of knots, fitted on labelled answers, tells what share of the claims
at such a logit were supported (or contradicted). Between knots lies a straight line, beyond them the last value, which
is strictly inside (0, 1): no claim is certain.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NAMES = ("lexical", "s", "c", "t_max", "t_mean")
"""What a weight may stand on: the logit of `lexical_logit`, then the fields of `ModelSignals` in their order."""

_NEARLY = 1e-6  # the words' probability is moved off 0 and 1 by this much before its logit is taken


class ModelSignals(NamedTuple):
    """What the model says of one pair.

    Attributes:
        supported: Logit of "supported" against the two others.
        contradicted: Logit of "contradicted" against the two others.
        worst: Highest logit, over the word pieces of the claim, that a piece is not supported by the evidence.
        mean: The mean of these logits.
    """

    supported: float
    contradicted: float
    worst: float
    mean: float


def lexical_logit(probability: float) -> float:
    """Logit of the probability that words give.

    >>> lexical_logit(0.5), round(lexical_logit(1.0), 3)
    (0.0, 13.816)
    """
    held = min(1.0 - _NEARLY, max(_NEARLY, probability))
    return math.log(held / (1.0 - held))


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """A fitted probability.

    Attributes:
        bias: Constant of the logit.
        weights: One for each of `NAMES`.
        knots: (logit, probability), logits rising, probabilities never falling and inside (0, 1).

    Raises:
        ValueError: The numbers are no such curve.
    """

    bias: float
    weights: tuple[float, ...]
    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        logits, values = [x for x, _ in self.knots], [p for _, p in self.knots]
        if len(self.weights) != len(NAMES):
            raise ValueError(f"{len(self.weights)} weights instead of {len(NAMES)}")
        if not all(map(math.isfinite, (self.bias, *self.weights, *logits, *values))):
            raise ValueError("a bias, weight or knot is not finite")
        if not self.knots or sorted(set(logits)) != logits or sorted(values) != values:
            raise ValueError("the knots of a curve do not rise")
        if values[0] <= 0.0 or values[-1] >= 1.0:
            raise ValueError("a knot is outside (0, 1)")

    def logit(self, lexical: float, signals: ModelSignals) -> float:
        """The weighted sum; `lexical` is a logit."""
        return math.fsum(
            (self.bias, *(weight * x for weight, x in zip(self.weights, (lexical, *signals), strict=True)))
        )

    def probability(self, lexical: float, signals: ModelSignals) -> float:
        """The calibrated probability of a claim whose words have this logit.

        >>> half = Curve(0.0, (1.0, 0.0, 0.0, 0.0, 0.0), ((-1.0, 0.25), (1.0, 0.75)))
        >>> [half.probability(x, Signals(0.0, 0.0, 0.0, 0.0)) for x in (-9.0, 0.0, 0.5, 9.0)]
        [0.25, 0.5, 0.625, 0.75]
        """
        return interpolated(self.knots, self.logit(lexical, signals))


def interpolated(knots: Sequence[tuple[float, float]], x: float) -> float:
    """Value at `x` of the line through the knots; before the first and behind the last it is level."""
    place = bisect_right(knots, x, key=lambda knot: knot[0])
    if place in (0, len(knots)):
        return knots[min(place, len(knots) - 1)][1]
    (left, low), (right, high) = knots[place - 1], knots[place]
    return low + (high - low) * (x - left) / (right - left)
