"""The section `rollout` of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragwatch.config import parse
from ragwatch.config.rollout import RolloutOptions
from ragwatch.errors import ConfigError

START = 1_769_851_800.0  # 2026-01-31T09:30:00Z


def options(**section: Any) -> RolloutOptions:
    """The section with two variants and these keys."""
    rollout = {"a": "vector", "b": "hybrid"} | section
    sources = [{"kind": "tail", "name": "app", "path": "/var/log/x"}]
    found = parse({"sources": sources, "rollout": rollout}, folder=Path()).settings.rollout
    assert found is not None
    return found


def test_defaults_are_those_of_the_seed() -> None:
    """NDCG@10, 100 questions, 5 % of the traffic."""
    whole = options(offline={"a": "x", "b": "y"}, judged={}, live={"start": "2026-01-31T09:30:00Z"})
    assert whole.offline is not None
    assert whole.judged is not None
    assert whole.live is not None
    assert (whole.offline.k, whole.judged.questions, whole.live.share, whole.live.start) == (10, 100, 0.05, START)
    assert options().live is None


@pytest.mark.parametrize(
    ("start", "seconds"),
    [("2026-01-31 09:30", START), ("2026-01-31T10:30:00+01:00", START), ("2026-01-31", START - 34_200.0)],
)
def test_a_start_in_any_usual_form(start: str, seconds: float) -> None:
    """Without an offset it is UTC; YAML makes dates of some."""
    live = options(live={"start": start}).live
    assert live is not None
    assert live.start == seconds


def test_dates_of_yaml() -> None:
    """Unquoted ones arrive as dates."""
    from datetime import UTC, date, datetime  # noqa: PLC0415

    for start in (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), datetime(2026, 1, 31, 9, 30)):  # noqa: DTZ001
        live = options(live={"start": start}).live
        assert live is not None
        assert live.start == START
    live = options(live={"start": date(2026, 1, 31)}).live
    assert live is not None
    assert live.start == START - 34_200.0


def test_feedback_in_short_and_in_full() -> None:
    """A field for thumbs; a scale for stars."""
    live = options(live={"start": "2026-01-31", "feedback": "metadata.thumbs"}).live
    assert live is not None
    assert live.feedback is not None
    assert (live.feedback.field, live.feedback.worst) == ("metadata.thumbs", None)
    stars = options(live={"start": "2026-01-31", "feedback": {"field": "metadata.user.stars", "worst": 1, "best": 5}})
    assert stars.live is not None
    assert stars.live.feedback is not None
    assert stars.live.feedback.best == 5.0


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"b": "vector"}, "rollout: `a` and `b` are both 'vector'; name two variants"),
        ({"offline": {"a": "x"}}, "rollout.offline.b: is missing; add it"),
        ({"offlin": {}}, "rollout.offlin: is not a known key; did you mean `offline`?"),
        (
            {"live": {"start": "2026-01-31", "shares": 0.1}},
            "rollout.live.shares: is not a known key; did you mean `share`?",
        ),
        ({"judged": {"a": "x"}}, "rollout.judged: has one log only; give both `a` and `b`"),
        ({"live": {}}, "rollout.live.start: is missing"),
        (
            {"live": {"start": "soon"}},
            "rollout.live.start: 'soon' is not a time; write one such as 2026-01-31T09:30:00Z",
        ),
        ({"live": {"start": 5}}, "rollout.live.start: 5 is not a time"),
        (
            {"live": {"start": "2026-01-31", "feedback": "thumbs"}},
            "rollout.live.feedback.field: 'thumbs' is neither user_score (all that users say) nor a field such as",
        ),
        (
            {"live": {"start": "2026-01-31", "feedback": {"field": "metadata.x", "best": 5}}},
            "rollout.live.feedback: has half a scale; give two different numbers",
        ),
        (
            {"live": {"start": "2026-01-31", "feedback": {"field": "user_score", "worst": 1, "best": 5}}},
            "rollout.live.feedback: has a scale for user_score, which is from 0 to 1",
        ),
        ({"live": {"start": "2026-01-31", "share": 1.5}}, "rollout.live.share: input should be less than 1"),
    ],
)
def test_what_is_refused(section: dict[str, Any], message: str) -> None:
    """With the path of the key, and what to write instead."""
    with pytest.raises(ConfigError) as error:
        options(**section)
    assert message in str(error.value)
