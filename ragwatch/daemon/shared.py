"""Objects that a reload keeps: store, board, telemetry and clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.board import Board
from ragwatch.ports import Store
from ragwatch.telemetry import Telemetry

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class SharedState:
    """Store, board, telemetry and clock (seconds since the epoch), which all configurations use in turn."""

    store: Store
    board: Board
    telemetry: Telemetry
    clock: Clock
