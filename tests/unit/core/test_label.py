"""Labels that come from clients and files: their times."""

from __future__ import annotations

from typing import Any

import pytest

from ragwatch.core.labels.label import parse_label

NOW = 1_700_000_000.0


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


@pytest.mark.parametrize(("at", "stored"), [(0.0, 0.0), (NOW, NOW), (NOW + 3600.0, NOW)])
def test_a_clock_that_is_ahead_by_less_counts_as_now(at: float, stored: float) -> None:
    """Clocks of clients differ."""
    assert parse_label(a_record(at=at), NOW).at == stored
