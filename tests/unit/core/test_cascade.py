"""Cascade: the second judge reads more of what the first was unsure of."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_claim, an_evidence

from ragwatch.core.evidence import Evidence
from ragwatch.core.sampling import FollowRule, follow_probability, uncertainty

RULE = FollowRule(sure=0.1, unsure=0.6)


def evidence_of(*supports: float | None) -> Evidence:
    """Evidence of claims with these probabilities of support."""
    return an_evidence(*(replace(a_claim(), support=support) for support in supports))


def test_a_judge_without_probabilities_is_taken_as_sure() -> None:
    """Where nothing is known of its doubts, the plain probability holds."""
    assert uncertainty(evidence_of(None)) is None
    assert follow_probability(RULE, evidence_of(None)) == RULE.sure


def test_what_the_first_could_not_read_counts_as_unsure() -> None:
    """No evidence at all is the greatest doubt."""
    assert follow_probability(RULE, None) == RULE.unsure


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_probability_lies_between_the_two(supports: list[float]) -> None:
    """Whatever was read, it is between sure and unsure: never 0, or the estimate would lose part of the traffic."""
    assert RULE.sure <= follow_probability(RULE, evidence_of(*supports)) <= RULE.unsure + 1e-12


def test_more_doubt_more_readings() -> None:
    """Certainty on either side gives the lowest, an even chance the highest probability."""
    probabilities = [follow_probability(RULE, evidence_of(support)) for support in (0.0, 0.1, 0.3, 0.5)]
    assert probabilities == sorted(probabilities)
    assert (probabilities[0], probabilities[-1]) == (RULE.sure, RULE.unsure)
    assert follow_probability(RULE, evidence_of(1.0)) == RULE.sure
