"""Shared: what outlives a reload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragwatch.board import Board
from ragwatch.ports import Store
from ragwatch.telemetry import Telemetry

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Shared:
    """Memory, the board, our own life, the clock."""

    store: Store
    board: Board
    telemetry: Telemetry
    clock: Clock
