"""Cascade: with which probability a second judge reads what a first one has read, more often where that one was unsure.

The second judge's inclusion probability is the first's times this one. It depends on nothing but what the first judge
read, so weighting by its inverse keeps the second judge's estimate unbiased (two-phase sampling: Saerndal, Swensson
and Wretman 1992, chapter 9); to read more of what the first is unsure of is Neyman's allocation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt

from ragwatch.core.evidence import Evidence


@dataclass(frozen=True, slots=True)
class FollowRule:
    """How often a judge reads behind another one.

    Attributes:
        sure: Probability where the first judge is certain.
        unsure: Probability where it is as unsure as can be, or could not read at all.
    """

    sure: float
    unsure: float


def uncertainty(evidence: Evidence) -> float | None:
    """How unsure a judge was of its claims, 0 to 1: the root of the mean variance s(1 - s) of their support, doubled.

    None when it gives no probabilities, or there is no claim.

    >>> from ragwatch.core.evidence import Claim, ClaimVerdict
    >>> rows = tuple(Claim("c", None, None, ClaimVerdict.NOT_IN_CONTEXT, (), support) for support in (0.5, 1.0))
    >>> round(uncertainty(Evidence(rows, ())), 3)
    0.707
    """
    known = [claim.support for claim in evidence.claims if claim.support is not None]
    if not known:
        return None
    return 2.0 * sqrt(fsum(each * (1.0 - each) for each in known) / len(known))


def follow_probability(rule: FollowRule, evidence: Evidence | None) -> float:
    """Conditional probability that the second judge reads a draw; `evidence` is None where the first could not read.

    >>> rule = FollowRule(0.05, 0.45)
    >>> follow_probability(rule, None), follow_probability(rule, Evidence((), ()))
    (0.45, 0.05)
    """
    if evidence is None:
        return rule.unsure
    return rule.sure + (rule.unsure - rule.sure) * (uncertainty(evidence) or 0.0)
