"""Labels that come from clients and files: their times."""

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.labels.label import CLAIM, NAMES, Label, label_questions, parse_label
from ragwatch.statistics.labels.selection import (
    JudgeScores,
    LabelCandidate,
    is_double,
    joint_probabilities,
    pool,
    scores_of,
    unsure,
)
from ragwatch.statistics.sampling import SamplingHash

NOW = 1_700_000_000.0
RUNS = 4000


def a_record(**changes: Any) -> dict[str, Any]:
    """A valid label."""
    return {"key": "k", "annotator": "ann", "at": NOW - 1.0, "scores": {}} | changes


@pytest.mark.parametrize("at", [-1.0, NOW + 3601.0, 1e300, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["at", "revoked", "earlier"])
def test_a_time_that_cannot_be_is_refused(name: str, at: float) -> None:
    """Neither a label nor its revocation nor an earlier label is from before 1970 or from later than in an hour."""
    value: object = [{"at": at, "scores": {}}] if name == "earlier" else at
    with pytest.raises(ValueError, match=r"must be seconds since the epoch, no later than in an hour"):
        parse_label(a_record(**{name: value}), NOW)


@pytest.mark.parametrize(
    ("probability", "score", "name"), [(0.0, 1.0, "probability"), (1.5, 1.0, "probability"), (1.0, 2.0, "faithfulness")]
)
def test_a_label_of_no_share_is_refused(probability: float, score: float, name: str) -> None:
    """A weight needs a probability above 0, and scores by people are shares as well."""
    with pytest.raises(ValueError, match=name):
        Label("k", "ada", NOW, {Quantity.FAITHFULNESS: score}, probability=probability)


@pytest.mark.parametrize(("at", "stored"), [(0.0, 0.0), (NOW, NOW), (NOW + 3600.0, NOW)])
def test_a_clock_that_is_ahead_by_less_counts_as_now(at: float, stored: float) -> None:
    """Clocks of clients differ."""
    assert parse_label(a_record(at=at), NOW).at == stored


def test_each_question_has_words_for_each_reply() -> None:
    """Terminal and page offer the same replies; skipping is always one of them, and gives no score.

    Support is asked about where there are no claims, use of a context where there is one.
    """
    questions = label_questions(has_claims=False, has_contexts=True, criteria=[("polite", "is it polite?")])
    assert [str(question.quantity) for question in questions] == [
        "faithfulness", "answer_relevancy", "top_ranked_ignored", "polite",
    ]  # fmt: skip
    for question in questions:
        assert list(NAMES[question.kind]) == list(question.replies)
        assert question.replies["-"] is None
    assert list(NAMES["claim"]) == list(CLAIM)
    (only,) = label_questions(has_claims=True, has_contexts=False)
    assert str(only.quantity) == "answer_relevancy"


def candidates() -> list[LabelCandidate]:
    """Ten candidates, of which the first two are doubted most."""
    return [LabelCandidate(f"k{index}", 0.1, 0.9 if index < 2 else 0.1) for index in range(10)]


@pytest.mark.uncounted
@pytest.mark.parametrize(("people", "counted"), [(1, None), (3, None), (3, [0, 1]), (3, [1])])
def test_the_probability_is_that_of_being_given(people: int, counted: list[int] | None) -> None:
    """Over many pools of which one person takes three, or three take one to three of groups of their own.

    Weights 1 / probability of what all, some or one of them have labelled add up to one a candidate.
    """
    rng, weights = Random(5), dict.fromkeys((candidate.key for candidate in candidates()), 0.0)
    pools = RUNS * (people + 1) // 2
    for number in range(pools):
        groups = pool(candidates(), 0.5, rng.random, 10).groups(people, SamplingHash(str(number).encode()))
        taken = zip((3,) if people == 1 else (1, 2, 3), groups, strict=True)
        shown = {place.key for count, group in taken for place in group.places[:count]}
        for key, probability in joint_probabilities(groups, shown, counted).items():
            weights[key] += 0.1 / probability / pools  # each has been drawn at 0.1
    assert list(weights.values()) == pytest.approx([1.0] * 10, abs=0.15 if people == 1 else 0.25)


def test_a_share_goes_to_the_unsure() -> None:
    """The most doubted are given more often, as their size says; where nothing is doubted all are alike."""
    rng, first = Random(2), 0
    for _ in range(RUNS):
        first += pool(candidates(), 0.5, rng.random, 10).places[0].key in {"k0", "k1"}
    # Size .5 + .5 * .9/.26 = 2.23 for two of ten, and about two thirds as much for each of the others: 45 % at least.
    assert first / RUNS > 0.4
    sure = [replace(candidate, unsure=0.0) for candidate in candidates()]
    for ordered in (pool(candidates(), 0.0, rng.random, 10), pool(sure, 0.9, rng.random, 10)):
        assert {place.size for place in ordered.places} == {1.0}


def test_places_left_out_limit_the_probability() -> None:
    """Where more candidates came than there are places, the last place is no certainty."""
    ordered = pool(candidates(), 0.5, Random(3).random, 4)
    given = {place.key for place in ordered.places}
    assert ordered.threshold(given) == ordered.beyond < math.inf
    assert all(
        probability < 0.1 for probability in joint_probabilities([ordered], given).values() if ordered.beyond < 0.4
    )
    everything = pool(candidates(), 0.5, Random(3).random, 10)
    assert set(joint_probabilities([everything], {candidate.key for candidate in candidates()}).values()) == {0.1}


def test_words_ahead_of_their_turn_have_no_probability() -> None:
    """A sample further down the order than the first that was not given was not chosen by it."""
    ordered = pool(candidates(), 0.5, Random(4).random, 10)
    first, ahead = ordered.places[0].key, ordered.places[5].key
    assert set(joint_probabilities([ordered], {first, ahead})) == {first}


def test_doubt_needs_something_that_is_known() -> None:
    """No line, no probability, no common quantity: no doubt."""
    blind = JudgeScores({Quantity.FAITHFULNESS: None}, [])
    other = JudgeScores({Quantity.FAITHFULNESS: 1.0}, [])
    assert (unsure([]), unsure([blind]), unsure([blind, other])) == (0.0, 0.0, 0.0)


def test_doubles_are_a_share_of_all() -> None:
    """A tenth of the samples is given twice, the same tenth to everybody."""
    keys = [f"{index:032x}" for index in range(3000)]
    assert sum(is_double(key, 0.1, SamplingHash()) for key in keys) == pytest.approx(300, abs=60)


def test_a_word_on_claims_goes_before_one_on_the_whole() -> None:
    """Where every claim was judged, the share of supported ones is what counts; else what was said of the answer."""
    whole = {Quantity.FAITHFULNESS: 1.0, Quantity.ANSWER_RELEVANCY: 0.5}
    scores = scores_of([ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT], whole)
    assert scores == {Quantity.FAITHFULNESS: 0.5, Quantity.ANSWER_RELEVANCY: 0.5, Quantity.CONTRADICTION: 0.0}
    assert scores_of([ClaimVerdict.SUPPORTED, None], whole) == whole
