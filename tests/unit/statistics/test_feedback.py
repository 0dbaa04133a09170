"""Feedback of users: what is read as a score, and what is a counted reason instead."""

import math
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.statistics.feedback import (
    FIELDS,
    MIN_PAIRS,
    FeedbackOutcome,
    PairSums,
    Scale,
    UnreadFeedbackError,
    correlate,
    feedback_score,
    read_feedback,
    score_of,
)

FIVE = Scale(1, 5)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8) | st.sampled_from(["4/5", "up"]),
    lambda parts: (
        st.lists(parts, max_size=2)
        | st.dictionaries(st.sampled_from([*FIELDS, "score", "value", "max", "min"]), parts, max_size=4)
    ),
    max_leaves=6,
)
SCORE = st.floats(0.0, 1.0, allow_subnormal=False)
PAIRS = st.lists(st.tuples(SCORE, SCORE, st.sampled_from([0.05, 0.5, 1.0])), min_size=MIN_PAIRS, max_size=70)


@pytest.mark.parametrize(
    ("record", "scale", "score"),
    [
        ({"user_score": 0.25}, None, 0.25),
        ({"user_score": 0.25}, FIVE, 0.25),
        ({"feedback": True}, None, 1.0),
        ({"feedback": "DOWN "}, None, 0.0),
        ({"feedback": 4}, FIVE, 0.75),
        ({"thumbs": 1}, FIVE, 1.0),
        ({"thumbs": -1}, None, 0.0),
        ({"thumbs_up": False}, None, 0.0),
        ({"thumbs_down": True}, None, 0.0),
        ({"thumbs_down": 1}, None, 0.0),
        ({"thumbs_down": "yes"}, None, 0.0),
        ({"rating": 5}, FIVE, 1.0),
        ({"rating": 1}, Scale(5, 1), 1.0),
        ({"rating": "2 / 5"}, None, 0.25),
        ({"rating": {"value": 7, "min": 0, "max": 10}}, None, 0.7),
        ({"stars": {"rating": 5, "best": 5}}, None, 1.0),
        ({"feedback": {"score": "👍", "comment": "thanks"}}, None, 1.0),
        ({"feedback": "Thanks a lot!", "rating": 3}, FIVE, 0.5),
        ({"task_outcome": "resolved"}, None, 1.0),
        ({"task_success": 0}, None, 0.0),
        ({"feedback": None, "thumbs": "up"}, None, 1.0),
        ({"answer": "so"}, None, None),
        ({}, FIVE, None),
    ],
)
def test_scores(record: dict[str, object], scale: Scale | None, score: float | None) -> None:
    """Thumbs, ratings and outcomes become scores; a record without feedback has none."""
    assert read_feedback(record, scale) == score


@pytest.mark.parametrize(
    ("record", "scale", "outcome", "field"),
    [
        ({"feedback": "meh"}, None, FeedbackOutcome.UNKNOWN_TEXT, "feedback"),
        ({"rating": 4}, None, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"rating": 6}, FIVE, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"feedback": 4}, None, FeedbackOutcome.UNKNOWN_SCALE, "feedback"),
        ({"user_score": 4}, FIVE, FeedbackOutcome.UNKNOWN_SCALE, "user_score"),
        ({"user_score": -1}, None, FeedbackOutcome.UNKNOWN_SCALE, "user_score"),
        ({"rating": "3/1"}, None, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"rating": {"value": 3, "max": "five"}}, None, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"rating": math.nan}, FIVE, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"rating": 10**400}, FIVE, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"rating": {"value": 3, "max": 10**400}}, None, FeedbackOutcome.UNKNOWN_SCALE, "rating"),
        ({"feedback": ["up"]}, None, FeedbackOutcome.WRONG_TYPE, "feedback"),
        ({"feedback": {"comment": "thanks"}}, None, FeedbackOutcome.MISSING, "feedback"),
    ],
)
def test_reasons(record: dict[str, object], scale: Scale | None, outcome: FeedbackOutcome, field: str) -> None:
    """What cannot be read is never a number: it has a reason and names its field."""
    with pytest.raises(UnreadFeedbackError) as raised:
        read_feedback(record, scale)
    assert (raised.value.outcome, raised.value.field) == (outcome, field)


def test_a_value_without_a_field_is_a_score_or_unknown() -> None:
    """Thumbs, words and numbers of a configured path, on a scale or without one: unknown instead of a reason."""
    assert [feedback_score(value) for value in ("Up", "👎", -1, None, ["up"], math.nan)] == [1.0, 0.0, 0.0, *[None] * 3]
    assert [feedback_score(value, 1, 5) for value in (True, 5, 6)] == [1.0, 1.0, None]
    assert feedback_score(1, 5, 1) == 1.0


@given(JSON, st.sampled_from(FIELDS), st.none() | st.just(FIVE))
def test_any_value_is_a_score_or_a_reason(value: object, name: str, scale: Scale | None) -> None:
    """Whatever JSON a field holds, it is read as a score in [0, 1] or refused with a reason, never anything else."""
    with suppress(UnreadFeedbackError):
        assert 0.0 <= score_of(value, name, scale) <= 1.0


@given(st.integers(-50, 50), st.integers(-50, 50), st.floats(0.0, 1.0))
def test_a_scale_turns_round(worst: int, best: int, share: float) -> None:
    """Worst is 0, best is 1, and exchanging them turns every score round."""
    if worst == best:
        return
    scale, turned = Scale(worst, best), Scale(best, worst)
    assert (scale.score(worst), scale.score(best)) == (0.0, 1.0)
    rating = worst + share * (best - worst)
    score, other = scale.score(rating), turned.score(rating)
    assert score is None or other is None or score == pytest.approx(1.0 - other)


@given(PAIRS)
def test_laws(pairs: list[tuple[float, float, float]]) -> None:
    """A correlation lies in its interval, and this in [-1, 1]; it is symmetric, and changes sign with 1 - y."""
    one = correlate(PairSums.of(pairs))
    other = correlate(PairSums.of([(y, x, p) for x, y, p in pairs]))
    turned = correlate(PairSums.of([(x, 1.0 - y, p) for x, y, p in pairs]))
    if one is None or other is None or turned is None:
        return
    assert -1.0 <= one.low <= one.value <= one.high <= 1.0
    for mine, theirs in ((one.value, other.value), (one.low, other.low), (one.value, -turned.value)):
        assert mine == pytest.approx(theirs, abs=1e-5)


@given(PAIRS, st.integers(1, 40))
def test_sums_add_up(pairs: list[tuple[float, float, float]], place: int) -> None:
    """The sums of two halves are those of the whole, however they are added."""
    halves = [PairSums.of(pairs[:place]), PairSums.of(pairs[place:])]
    whole = PairSums.of(pairs)
    for added in (halves[0] + halves[1], PairSums.total(halves)):
        assert added.n == whole.n
        assert added.first == pytest.approx(whole.first)
        assert added.second == pytest.approx(whole.second)
    assert PairSums.total([whole]) is whole


def test_value_of_weighted_pairs() -> None:
    """The value is that of the pairs repeated by their weights."""
    rng = Random(1)
    pairs = [(rng.random(), rng.random(), 1.0 / rng.randrange(1, 4)) for _ in range(60)]
    repeated = [(x, y) for x, y, p in pairs for _ in range(round(1.0 / p))]
    mean_x, mean_y = (math.fsum(column) / len(repeated) for column in zip(*repeated, strict=True))
    products = math.fsum((x - mean_x) * (y - mean_y) for x, y in repeated)
    squares = [math.fsum((x - mean_x) ** 2 for x, _ in repeated), math.fsum((y - mean_y) ** 2 for _, y in repeated)]
    correlation = correlate(PairSums.of(pairs))
    assert correlation.value == pytest.approx(products / math.sqrt(squares[0] * squares[1]))


def test_too_little_is_unknown() -> None:
    """Few pairs, a score that never varies, or one heavy pair give no correlation, and never a zero."""
    varied = [(place / 60, place / 60, 1.0) for place in range(60)]
    assert correlate(PairSums.of(varied[: MIN_PAIRS - 1])) is None
    assert correlate(PairSums.of([(1.0, y, p) for _, y, p in varied])) is None
    assert correlate(PairSums.of([*varied, (0.5, 0.5, 1e-6)])) is None
    assert correlate(PairSums()) is None


def test_agreement_without_exception_is_not_certain() -> None:
    """Scores that always agree have correlation 1, and an interval that allows for exceptions not met yet."""
    correlation = correlate(PairSums.of([(float(place % 2), float(place % 2), 1.0) for place in range(60)]))
    assert (correlation.value, correlation.high) == (pytest.approx(1.0), pytest.approx(1.0))
    assert 0.7 < correlation.low < 0.95


@pytest.mark.costly
@pytest.mark.parametrize("cut", [None, -0.8])
def test_the_interval_covers(cut: float | None) -> None:
    """Over many samples, the interval holds the true correlation about as often as it promises, also of thumbs."""
    rng = Random(7)

    def pairs(count: int) -> list[tuple[float, float, float]]:
        drawn = []
        for _ in range(count):
            shared = rng.gauss(0.0, 0.8)
            x, y = (shared + rng.gauss(0.0, 0.6) for _ in range(2))
            score = min(1.0, max(0.0, 0.6 + 0.2 * x))
            drawn.append((score, float(y > cut) if cut is not None else min(1.0, max(0.0, 0.5 + 0.2 * y)), 1.0))
        return drawn

    true = correlate(PairSums.of(pairs(20_000)))
    intervals = [correlate(PairSums.of(pairs(80))) for _ in range(150)]
    covered = sum(one.low <= true.value <= one.high for one in intervals if one is not None)
    assert covered >= 0.9 * len(intervals)
