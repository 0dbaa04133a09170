"""Feedback of users: what is read as a score, and what is a counted reason instead."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.feedback import FIELDS, FeedbackOutcome, Scale, UnreadFeedbackError, read_feedback, score_of

FIVE = Scale(1, 5)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8) | st.sampled_from(["4/5", "up"]),
    lambda parts: (
        st.lists(parts, max_size=2)
        | st.dictionaries(st.sampled_from([*FIELDS, "score", "value", "max", "min"]), parts, max_size=4)
    ),
    max_leaves=6,
)


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
