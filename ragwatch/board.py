"""Holds the latest Snapshot: the digest publishes it, and exporter and pages read it."""

from ragwatch.statistics.snapshot import Snapshot


class Board:
    """Holds one Snapshot. Thread-safe without a lock: both methods are single reference assignments."""

    def __init__(self) -> None:
        self._latest: Snapshot | None = None

    def publish(self, snapshot: Snapshot) -> None:
        """Publishes a Snapshot and replaces the previous one."""
        self._latest = snapshot

    def latest(self) -> Snapshot | None:
        """Returns the latest Snapshot, None before the first digest."""
        return self._latest
