"""The Board shows the latest Snapshot, or nothing."""

from __future__ import annotations

from ragwatch.board import Board
from ragwatch.core.snapshot import Snapshot


def test_latest_is_shown() -> None:
    """Empty at first; then whatever was hung last, the very object."""
    board = Board()
    assert board.latest() is None
    for at in (1.0, 2.0):
        latest = Snapshot(at=at)
        board.publish(latest)
        assert board.latest() is latest
