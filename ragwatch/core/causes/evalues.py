"""Evidence that a slice fails more than the rest: sequential 2 x 2 e-values, and the choice of slices by e-BH.

An e-value is a bet that pays at most 1 on average if the slice fails no more than the rest, whenever it is looked at.
The logarithms of these bets add up. Answers of one cell (equal route and inclusion probability) are in the order in
which they were judged; bets only depend on earlier ones.

- *Blocks* (Turner, Ly and Grünwald, arXiv 2106.02693): a block of n_a answers of the slice and the n_b others since the
  last block pays (p_a / p_0)^k_a ((1 - p_a) / (1 - p_0))^(n_a - k_a), times the same of the others, with
  p_0 = (n_a p_a + n_b p_b) / n; p_a and p_b come from earlier blocks. It holds in each block, also if the failing share
  changes in time.
- *Totals* (Wasserman, Ramdas and Balakrishnan, PNAS 2020): the Krichevsky-Trofimov likelihoods of slice and others over
  the greatest likelihood if the slice failed no more. It needs no mixture in time, so it sees a release that replaced
  another at once, where no block holds both.

Both are multiplied over cells, and their mean counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

_PRIOR_ANSWERS = 2.0  # that the first bets are worth
_PRIOR_EXCESS = 0.35  # of the answers that do not fail elsewhere, the share that fails in the slice by the first bet
_BLOCKS_PER_OCTAVE = 4
_MAX_ANSWERS = 1 << 20


def _ends() -> tuple[int, ...]:
    """Numbers of answers of a slice after which a block ends: fixed in advance, so that no later answer moves one."""
    ends, size = [0], 1
    while ends[-1] < _MAX_ANSWERS:
        for _ in range(_BLOCKS_PER_OCTAVE):
            ends.append(ends[-1] + size)
        size *= 2
    return tuple(ends[1:])


_ENDS = _ends()


class Cell(NamedTuple):
    """Answers of one cell, in the order in which they were judged.

    Attributes:
        start: Place of the first one among all answers.
        failures: Number of failing answers before each place of the cell, and in all of it.
    """

    start: int
    failures: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of answers."""
        return len(self.failures) - 1


class Counts(NamedTuple):
    """Answers and failing ones in the slice, and among the others."""

    inside: int
    inside_failing: int
    outside: int
    outside_failing: int


def log_blocks(places: Sequence[int], marks: Sequence[int], failures: Sequence[int]) -> float:
    """Logarithm of the e-value by blocks, of one cell.

    >>> failures = list(accumulate([0, 1] * 40, initial=0))
    >>> log_blocks(range(1, 80, 2), [1] * 40, failures) > 20 > 0 >= log_blocks(range(0, 80, 2), [0] * 40, failures)
    True

    Args:
        places: Of the answers of the slice in the cell, ascending.
        marks: 1 for each of these answers that fails, 0 for the others.
        failures: See `Cell.failures`.
    """
    inside = list(accumulate(marks, initial=0))
    total, begin, previous = 0.0, 0, 0
    for end in _ENDS:
        if end > len(places):
            break
        stop = places[end - 1] + 1
        others = stop - begin - (end - previous)
        if others:
            earlier = Counts(previous, inside[previous], begin - previous, failures[begin] - inside[previous])
            fails = inside[end] - inside[previous]
            total += _block(earlier, Counts(end - previous, fails, others, failures[stop] - failures[begin] - fails))
        begin, previous = stop, end
    return total


def _block(earlier: Counts, block: Counts) -> float:
    """Logarithm of what a block pays: 0 where earlier blocks show no excess, because nothing is bet then."""
    rest = (earlier.outside_failing + 0.5) / (earlier.outside + 1.0)
    guess = rest + _PRIOR_EXCESS * (1.0 - rest)
    slice_ = (earlier.inside_failing + _PRIOR_ANSWERS * guess) / (earlier.inside + _PRIOR_ANSWERS)
    if slice_ <= rest:
        return 0.0
    both = (block.inside * slice_ + block.outside * rest) / (block.inside + block.outside)
    return (
        block.inside_failing * math.log(slice_ / both)
        + (block.inside - block.inside_failing) * math.log((1.0 - slice_) / (1.0 - both))
        + block.outside_failing * math.log(rest / both)
        + (block.outside - block.outside_failing) * math.log((1.0 - rest) / (1.0 - both))
    )


def log_totals(counts: Counts) -> float:
    """Logarithm of the e-value by totals, of one cell.

    >>> log_totals(Counts(40, 40, 40, 0)) > 20 > 0 > log_totals(Counts(40, 0, 40, 40))
    True
    """
    inside, inside_failing, outside, outside_failing = counts
    likelihood = _log_mixture(inside, inside_failing) + _log_mixture(outside, outside_failing)
    if inside_failing * outside > outside_failing * inside:
        return likelihood - _log_greatest(inside + outside, inside_failing + outside_failing)
    return likelihood - _log_greatest(inside, inside_failing) - _log_greatest(outside, outside_failing)


_LOG_PI = math.log(math.pi)


def _log_mixture(answers: int, failing: int) -> float:
    """Log likelihood, averaged over failing shares by Beta(1/2, 1/2): that of Krichevsky and Trofimov."""
    return math.lgamma(failing + 0.5) + math.lgamma(answers - failing + 0.5) - math.lgamma(answers + 1.0) - _LOG_PI


def _log_greatest(answers: int, failing: int) -> float:
    """Log likelihood at the observed failing share."""
    passing = answers - failing
    return (failing * math.log(failing / answers) if failing else 0.0) + (
        passing * math.log(passing / answers) if passing else 0.0
    )


def log_mean(first: float, second: float) -> float:
    """Logarithm of the mean of two e-values given by their logarithms.

    >>> round(log_mean(0.0, 0.0), 6), round(log_mean(1000.0, 0.0), 3)
    (0.0, 999.307)
    """
    greater = max(first, second)
    return greater + math.log((math.exp(first - greater) + math.exp(second - greater)) / 2.0)


def selected(logs: Sequence[float], looked_at: int, rate: float) -> int:
    """Number of the greatest e-values, sorted, that e-BH selects (Wang and Ramdas, JRSS B 2022).

    The false discovery rate is at most `rate` whatever the dependence, also if some candidates were left out by any
    rule, as long as all that were looked at are counted.

    >>> selected([9.0, 4.7, 1.0], looked_at=10, rate=0.05)    # log(10 / .05) = 5.3, log(10 / .1) = 4.6
    2
    """
    return max(
        (rank for rank, log in enumerate(logs, 1) if log >= math.log(looked_at / (rate * rank))),
        default=0,
    )
