"""Shared snapshot: the leader of several workers computes the figures and stores them, and the others show the same.

What belongs to one worker (how far its sources are behind, its disk, what it has counted) is its own everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ragwatch.core.snapshot import Snapshot
from ragwatch.core.tally import Tallies
from ragwatch.pipeline.snapshot_record import snapshot_of, to_record
from ragwatch.ports import Store

STATE = "snapshot"


class SharedSnapshot:
    """The Snapshot of the leader, in the store.

    Args:
        store: The store of this worker; writes are refused unless it leads.
        leads: Whether this worker leads.
        own_tallies: What this worker has counted.
    """

    def __init__(self, store: Store, leads: Callable[[], bool], own_tallies: Callable[[], Tallies]) -> None:
        self._store = store
        self._leads = leads
        self.own_tallies = own_tallies

    @property
    def leads(self) -> bool:
        """Whether this worker computes the figures."""
        return self._leads()

    def save(self, snapshot: Snapshot) -> None:
        """Store the figures for the other workers.

        Raises:
            StoreError: They could not be written, or another worker leads.
        """
        shared = replace(snapshot, lags={}, probabilities={}, exported=None)
        self._store.remember(STATE, {"snapshot": to_record(shared)})

    def latest(self) -> Snapshot | None:
        """Return the figures of the leader; None if there are none, or only those of another version.

        Raises:
            StoreError: They cannot be read.
        """
        state = self._store.recall(STATE)
        if state is None:
            return None
        try:
            return snapshot_of(state.get("snapshot"))
        except ValueError:
            return None
