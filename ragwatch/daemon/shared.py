"""Objects that a reload keeps: store, board, telemetry, clock and the secret of the state."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragwatch.board import Board
from ragwatch.pipeline.leadership import Leadership, Step
from ragwatch.ports import Clock, Store
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all configurations use in turn.

    Attributes:
        store: Open, with the lock of its directory.
        secret: Secret of the state: the key of sampling and of canary marks.
        leadership: Whether this worker leads; None where one process has the store for itself.
    """

    store: Store
    board: Board
    telemetry: Telemetry
    clock: Clock
    secret: bytes = field(default=b"", repr=False)
    leadership: Leadership | None = None

    @property
    def led(self) -> Store:
        """The store for what only the leader writes."""
        return self.store if self.leadership is None else self.leadership.store

    def in_leader(self, step: Step) -> Step:
        """Return a step that runs in the leader only."""
        return step if self.leadership is None else self.leadership.led(step)
