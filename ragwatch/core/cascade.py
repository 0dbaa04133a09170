"""Computes the probability with which a judge reads a draw that another judge has read: higher if that one was unsure.

The inclusion probability of the second judge is that of the first times this one. It depends only on the evidence of
the first, so weighting by its inverse keeps estimates unbiased (two-phase sampling: Saerndal, Swensson and Wretman
1992, chapter 9); sampling more where the first is unsure is Neyman allocation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt

from ragwatch.core.evidence import Evidence


@dataclass(frozen=True, slots=True)
class FollowRule:
    """Sampling probabilities of a judge that follows another judge.

    Attributes:
        sure: Probability if the first judge is certain.
        unsure: Probability if the first judge has the maximum uncertainty, or failed.
    """

    sure: float
    unsure: float


def uncertainty(evidence: Evidence) -> float | None:
    """Returns a judge's uncertainty about its claims, 0 to 1: 2 sqrt(mean of s(1 - s)) over their supports s.

    None if the judge gives no probabilities, or there is no claim.

    >>> from ragwatch.core.evidence import Claim, ClaimVerdict
    >>> claims = tuple(Claim("c", None, None, ClaimVerdict.NOT_IN_CONTEXT, (), support=share) for share in (0.5, 1.0))
    >>> round(uncertainty(Evidence(claims, ())), 3)
    0.707
    """
    supports = [claim.support for claim in evidence.counted if claim.support is not None]
    if not supports:
        return None
    return 2.0 * sqrt(fsum(support * (1.0 - support) for support in supports) / len(supports))


def follow_probability(rule: FollowRule, evidence: Evidence | None) -> float:
    """Returns the probability that the second judge reads a draw; `evidence` is None if the first judge failed."""
    if evidence is None:
        return rule.unsure
    return rule.sure + (rule.unsure - rule.sure) * (uncertainty(evidence) or 0.0)
