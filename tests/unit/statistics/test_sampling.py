"""Sampling by hash: repeatable, nested, fair, and independent for each judge and source."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_claim, an_evidence

from ragwatch.model.evidence import Evidence
from ragwatch.statistics.sampling import (
    FollowRule,
    SamplingHash,
    SamplingPlan,
    follow_probability,
    is_drawn,
    key_of,
    uncertainty,
)

KEYS = [key_of("app", f"request-{index}") for index in range(20_000)]
RULE = FollowRule(sure=0.1, unsure=0.6)


@given(st.text(), st.text())
def test_keys_are_hex(source: str, name: str) -> None:
    """Whatever an id from outside holds, its key is 32 hex digits, and the same each time.

    The boundary between source and id counts; lone surrogates of torn logs are legal.
    """
    assert len({key_of("a", "bc"), key_of("ab", "c"), key_of("abc", ""), key_of("a", "\ud800")}) == 4
    key = key_of(source, name)
    assert key == key_of(source, name)
    assert (len(key), set(key) - set("0123456789abcdef")) == (32, set())


@pytest.mark.parametrize("probability", [0.0, 0.01, 0.1, 0.5, 0.9, 1.0])
def test_frequency_is_the_probability(probability: float) -> None:
    """Over 20,000 ids the drawn share is within four standard errors of p."""
    share = sum(is_drawn(key, probability) for key in KEYS) / len(KEYS)
    assert abs(share - probability) <= 4 * math.sqrt(probability * (1 - probability) / len(KEYS))


@given(st.integers(0, 2**64 - 1), st.floats(0, 1))
def test_the_first_digits_decide(first: int, probability: float) -> None:
    """Chosen is what lies below p on the whole range of 64 bits, to the last of them: draws are nested."""
    for digits in {first, max(0, int(probability * 2**64) - 1), min(int(probability * 2**64), 2**64 - 1)}:
        for rest in ("0" * 16, "f" * 16):
            assert is_drawn(f"{digits:016x}{rest}", probability) == (digits < probability * 2**64)


def test_x15_ids_that_dodge_one_secret_do_not_dodge_another() -> None:
    """Ids chosen so that the public hash never draws them are drawn at their rate with the secret of a state."""
    chosen = [key for key in KEYS if not is_drawn(key, 0.1)][:500]
    assert not any(SamplingHash().draws(key, 0.1) for key in chosen)
    for secret in (b"one", b"two", b"three"):
        hidden = SamplingHash(secret)
        drawn = [key for key in chosen if hidden.draws(key, 0.1)]
        assert abs(len(drawn) - 50) < 4 * math.sqrt(45)
        assert drawn == [key for key in chosen if SamplingHash(secret).draws(key, 0.1)]  # after a restart
        assert all(hidden.draws(key, 0.2) for key in drawn)


def test_ends_with_a_secret() -> None:
    """Everything is drawn at 1, nothing at 0; decisions of two secrets are independent."""
    first, second = SamplingHash(b"one"), SamplingHash(b"two")
    assert all(first.draws(key, 1.0) and not first.draws(key, 0.0) for key in KEYS[:500])
    both = sum(first.draws(key, 0.5) and second.draws(key, 0.5) for key in KEYS)
    assert abs(both / len(KEYS) - 0.25) < 4 * math.sqrt(0.25 * 0.75 / len(KEYS))


def test_choices_of_judges_are_independent() -> None:
    """Whether a judge reads a draw says nothing of the draw itself or of another judge: each meets p of the rest."""
    drawn = [key for key in KEYS if is_drawn(key, 0.5)]
    mine = [key for key in drawn if is_drawn(key_of("one", key), 0.5)]
    both = [key for key in mine if is_drawn(key_of("two", key), 0.5)]
    for part, whole in ((mine, drawn), (both, mine)):
        assert abs(len(part) / len(whole) - 0.5) < 4 * 0.5 / math.sqrt(len(whole))


@pytest.mark.parametrize(
    ("route", "strata", "expected"),
    [("search", [None], 0.1), ("support", [None, "silver", 7, ["gold"]], 1.0), ("other", [None], 0.1)],
)
def test_plan(route: str, strata: list[object], expected: float) -> None:
    """A configured stratum comes before the route, the route before the rest; odd values are no stratum."""
    plan = SamplingPlan(0.1, {"support": 1.0}, "tier", {"gold": 0.5})
    assert [plan.probability_of(route, one) for one in strata] == [expected] * len(strata)
    assert (plan.probability_of(route, "gold"), plan.highest) == (0.5, 1.0)


def test_labels_come_from_configuration() -> None:
    """A route that configuration does not name is `other`: logs cannot make series."""
    plan = SamplingPlan(known_routes=frozenset({"search"}))
    labels = [plan.label(route) for route in ("search", "Search", "", "x" * 1000)]
    assert labels == ["search", "other", "other", "other"]


def evidence_of(*supports: float | None) -> Evidence:
    """Evidence of claims with these probabilities of support."""
    return an_evidence(*(replace(a_claim(), support=support) for support in supports))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_probability_lies_between_the_two(supports: list[float]) -> None:
    """Whatever was read, it is between sure and unsure: never 0, or the estimate would lose part of the traffic."""
    assert RULE.sure <= follow_probability(RULE, evidence_of(*supports)) <= RULE.unsure + 1e-12


def test_more_doubt_more_readings() -> None:
    """Certainty gives the lowest, an even chance the highest; no evidence is doubt, a judge without any is sure."""
    probabilities = [follow_probability(RULE, evidence_of(support)) for support in (0.0, 0.1, 0.3, 0.5)]
    assert probabilities == sorted(probabilities)
    assert (probabilities[0], probabilities[-1]) == (RULE.sure, RULE.unsure)
    assert follow_probability(RULE, evidence_of(1.0)) == follow_probability(RULE, evidence_of(None)) == RULE.sure
    assert follow_probability(RULE, None) == RULE.unsure
    assert uncertainty(evidence_of(None)) is None
