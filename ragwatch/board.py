"""The Board: where the latest Snapshot hangs. The one place where computing and showing meet."""

from __future__ import annotations

from ragwatch.core.snapshot import Snapshot


class Board:
    """Holds one Snapshot. Hanging and looking are single reference assignments: safe across threads, no lock."""

    def __init__(self) -> None:
        self._latest: Snapshot | None = None

    def hang(self, snapshot: Snapshot) -> None:
        """Replace what is shown."""
        self._latest = snapshot

    def look(self) -> Snapshot | None:
        """The latest Snapshot, None before the first digest."""
        return self._latest
