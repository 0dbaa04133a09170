"""Measures whether a judge prefers long answers: rank correlation of its scores with answer length at equal labels.

Answers to which people gave the same score form a stratum: among them a judge has no reason to score long answers
higher. Scores and lengths are replaced by their ranks within the stratum (Spearman 1904; ties get their mean rank),
centred and scaled by the size of the stratum, and pooled over strata into one correlation. Strata in which all scores
or all lengths are equal show nothing and are left out. The interval is Fisher's z with the standard error of Bonett and
Wright (2000) for rank correlations; each stratum costs one degree of freedom, because its mean is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist

from ragwatch.core.labels.agreement import MIN_LABELS, ShareEstimate, TooFewLabels

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
    """Preference of a judge for long answers.

    Attributes:
        correlation: Rank correlation of score and length at equal label, in [-1, 1]; positive if long answers get
            higher scores.
        answers: Number of answers, those of strata that show nothing included.
    """

    correlation: ShareEstimate
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
    """Computes the rank correlation of score and length at equal label, or the number of labels that are missing.

    Below `minimum` answers, in strata whose scores and lengths differ, nothing is concluded.
    """
    answers = list(rows)
    ordered = sorted(answers, key=lambda row: round(row.people, _DIGITS))
    strata = [list(members) for _, members in groupby(ordered, key=lambda row: round(row.people, _DIGITS))]
    pairs = [pair for members in strata if (pair := _centred_ranks(members)) is not None]
    n = sum(len(scores) for scores, _ in pairs)
    degrees = n - len(pairs) - 2
    if n < minimum or degrees < 1:
        return TooFewLabels(n, max(minimum - n, 1))
    value = _correlation([score for scores, _ in pairs for score in scores], [rank for _, own in pairs for rank in own])
    low, high = _fisher_interval(value, degrees, confidence)
    return LengthPreference(ShareEstimate(value, low, high, n), len(pairs), len(answers))


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


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    product = math.fsum(a * b for a, b in zip(first, second, strict=True))
    value = product / math.sqrt(math.fsum(a * a for a in first) * math.fsum(b * b for b in second))
    return max(-1.0, min(1.0, value))


def _fisher_interval(value: float, degrees: int, confidence: float) -> tuple[float, float]:
    """Interval of a rank correlation; `degrees` is n - 3 for one stratum."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    half = z * math.sqrt((1.0 + value * value / 2.0) / degrees)
    centre = math.atanh(max(-1.0 + 1e-12, min(1.0 - 1e-12, value)))
    return math.tanh(centre - half), math.tanh(centre + half)
