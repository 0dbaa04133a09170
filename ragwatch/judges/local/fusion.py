"""Combines the lexical probability and the outputs of the model to one calibrated probability. Pure.

A logit is a weighted sum of the numbers of `NAMES`. A table of knots, fitted on labelled answers, maps the logit to the
share of claims that were supported (or contradicted). It is linear between knots and constant outside them, and its
values are strictly inside (0, 1), because no claim is certain.

An answer is as good as its least claim, so a number that is a little wrong on every claim spoils the least of many.
Therefore two of the numbers speak only where the model is sure: `s_low` and `c_high`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NAMES = ("lexical", "s", "c", "t_max", "t_mean", "run", "s_low", "c_high")
"""Names of the weights: the logit of the lexical probability, the fields of `ModelSignals` in their order, the weight
of the heaviest run of words that no context has (`features.missing_run`), and what `numbers` makes of them."""

STRONG = 0.5
"""From this logit on a contradiction counts against support."""


class ModelSignals(NamedTuple):
    """Outputs of the model for one pair.

    Attributes:
        supported: Logit of "supported" against the two others.
        contradicted: Logit of "contradicted" against the two others.
        worst: Highest logit, over the word pieces of the claim, that a piece is not supported by the evidence.
        mean: Mean of these logits.
    """

    supported: float
    contradicted: float
    worst: float
    mean: float


def numbers(lexical: float, signals: ModelSignals, run: float) -> tuple[float, ...]:
    """The numbers that are weighed, in the order of `NAMES`.

    >>> numbers(1.0, ModelSignals(-2.0, 3.0, 0.5, 0.25), 4.0)
    (1.0, -2.0, 3.0, 0.5, 0.25, 4.0, -2.0, 2.5)
    """
    return (lexical, *signals, run, min(0.0, signals.supported), max(0.0, signals.contradicted - STRONG))


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """A fitted and calibrated probability.

    Attributes:
        bias: Constant of the logit.
        weights: One for each of `NAMES`.
        knots: (logit, probability); logits increase, probabilities never decrease and are inside (0, 1).

    Raises:
        ValueError: The numbers are invalid.
    """

    bias: float
    weights: tuple[float, ...]
    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        logits, values = [x for x, _ in self.knots], [p for _, p in self.knots]
        if not all(map(math.isfinite, (self.bias, *self.weights, *logits, *values))):
            raise ValueError("a bias, weight or knot is not finite")
        if not self.knots or sorted(set(logits)) != logits or sorted(values) != values:
            raise ValueError("the knots of a curve do not increase")
        if values[0] <= 0.0 or values[-1] >= 1.0:
            raise ValueError("a knot is outside (0, 1)")

    def logit(self, values: Sequence[float]) -> float:
        """The weighted sum of what `numbers` returns."""
        return math.fsum((self.bias, *(weight * x for weight, x in zip(self.weights, values, strict=True))))

    def probability(self, values: Sequence[float], less: float = 0.0) -> float:
        """The calibrated probability of a claim with these `numbers`, after `less` is taken from its logit.

        >>> half = FittedCurve(0.0, (1.0, *[0.0] * 7), ((-1.0, 0.25), (1.0, 0.75)))
        >>> [half.probability(numbers(x, ModelSignals(0.0, 0.0, 0.0, 0.0), 0.0)) for x in (-9.0, 0.0, 0.5, 9.0)]
        [0.25, 0.5, 0.625, 0.75]
        """
        return interpolate(self.knots, self.logit(values) - less)


def interpolate(knots: Sequence[tuple[float, float]], x: float) -> float:
    """Interpolate linearly between knots; constant before the first and after the last."""
    index = bisect_right(knots, x, key=lambda knot: knot[0])
    if index in (0, len(knots)):
        return knots[min(index, len(knots) - 1)][1]
    (start, low), (end, high) = knots[index - 1], knots[index]
    return low + (high - low) * (x - start) / (end - start)
