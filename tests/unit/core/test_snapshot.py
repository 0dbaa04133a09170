"""A Snapshot of nothing holds nothing: no zero stands for an unknown."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from ragwatch.core.snapshot import Snapshot


def test_empty() -> None:
    """Only the instant is known; everything else is absent."""
    result = Snapshot(at=1.0)
    assert (result.estimates, dict(result.coverage), dict(result.tallies), result.problems) == ((), {}, {}, ())


def test_snapshots_do_not_share_tallies() -> None:
    """Each has counts of its own, and cannot be changed in place."""
    assert Snapshot(at=1.0).tallies is not Snapshot(at=1.0).tallies
    with pytest.raises(FrozenInstanceError):
        Snapshot(at=1.0).at = 2.0  # type: ignore[misc]
