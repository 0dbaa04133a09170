"""Evidence that a slice fails more than the rest: sequential 2 x 2 e-values, and the choice of slices by e-BH.

An e-value is a bet that pays at most 1 on average if the slice fails no more than the rest. These are e-processes: that
holds at whatever answer somebody stops looking, and for whatever reason (Grünwald, de Heide and Koolen, JRSS B 2024).

In a cell (answers of equal route and inclusion probability), the bet on each answer follows from the earlier ones: the
failing shares inside and outside are learnt by Beta priors. What they pay together is compared with the greatest
likelihood of any failing shares of which that inside is not above that outside (universal inference: Wasserman, Ramdas
and Balakrishnan, PNAS 2020). Half of the stake is kept back in each cell, so that one without the slice costs little,
and the values of cells are multiplied, as the tests of Turner, Ly and Grünwald (arXiv 2106.02693). Their own e-values
are of blocks, within which somebody who sees the answers can gain by stopping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_PRIOR_INSIDE, _PRIOR_OUTSIDE = (1.0, 1.0), (1.0, 4.0)  # Beta: of a cause all is possible, and few other answers fail


class Counts(NamedTuple):
    """Answers and failing ones in the slice, and among the others of its cell."""

    inside: int
    inside_failing: int
    outside: int
    outside_failing: int


def log_e_value(counts: Counts) -> float:
    """Logarithm of the e-value of one cell; those of several cells add up."""
    return _log_mean_with_1(_log_ratio(counts))


def _log_ratio(counts: Counts) -> float:
    """Logarithm of what the bets pay."""
    inside, inside_failing, outside, outside_failing = counts
    paid = _log_learnt(inside, inside_failing, _PRIOR_INSIDE) + _log_learnt(outside, outside_failing, _PRIOR_OUTSIDE)
    if inside_failing * outside > outside_failing * inside:
        return paid - _log_greatest(inside + outside, inside_failing + outside_failing)
    return paid - _log_greatest(inside, inside_failing) - _log_greatest(outside, outside_failing)


def _log_learnt(answers: int, failing: int, prior: tuple[float, float]) -> float:
    """Log likelihood of predictions that are learnt answer by answer, which is that of the mixture over the prior."""
    a, b = prior
    return (
        math.lgamma(failing + a)
        + math.lgamma(answers - failing + b)
        - math.lgamma(answers + a + b)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
    )


def _log_greatest(answers: int, failing: int) -> float:
    """Log likelihood at the observed failing share.

    >>> _log_greatest(0, 0), _log_greatest(3, 3), round(_log_greatest(2, 1), 3)
    (0, 0.0, -1.386)
    """
    return sum(count * math.log(count / answers) for count in (failing, answers - failing) if count)


def _log_mean_with_1(log: float) -> float:
    """Logarithm of the mean of 1 and an e-value."""
    greater = max(log, 0.0)
    return greater + math.log((math.exp(-greater) + math.exp(log - greater)) / 2.0)


def selected(logs: Sequence[float], looked_at: int, rate: float) -> int:
    """Number of the greatest e-values, given sorted, that e-BH selects (Wang and Ramdas, JRSS B 2022).

    The false discovery rate is at most `rate` whatever the dependence, also if some candidates were left out by any
    rule, as long as all that were looked at are counted.
    """
    return max(
        (rank for rank, log in enumerate(logs, 1) if log >= math.log(looked_at / (rate * rank))),
        default=0,
    )
