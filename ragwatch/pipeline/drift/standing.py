"""Standing alerts, as far as ragwatch knows them itself: no baseline is learnt from answers known to be bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from ragwatch.board import Board
from ragwatch.core.estimate import Estimate
from ragwatch.core.snapshot import Gauge, Snapshot
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity

MIN_EFFECTIVE = 30.0
"""Effective scores of an estimate, from which on it counts."""


class PauseReason(StrEnum):
    """Why a baseline is not learnt at present. Values of the label `reason`."""

    CANARIES = "canaries"
    THRESHOLD = "threshold"
    DRIFT = "drift"


class StandingAlerts:
    """Tells whether a route has a standing alert: degraded canaries, or an estimate significantly beyond its threshold.

    Args:
        board: Holds the latest figures.
        judge: The judge whose estimates count.
        thresholds: Returns the thresholds of a route.
    """

    def __init__(self, board: Board, judge: str, thresholds: Callable[[str], Mapping[Quantity, float]]) -> None:
        self._board = board
        self._judge = judge
        self._thresholds = thresholds

    def reason(self, route: str) -> PauseReason | None:
        """What stands against this route; None if nothing does, or before the first figures."""
        snapshot = self._board.latest()
        if snapshot is None:
            return None
        if any(value > 0.0 for (gauge, _), value in snapshot.gauges.items() if gauge is Gauge.CANARY_DEGRADED):
            return PauseReason.CANARIES
        thresholds = self._thresholds(route)
        newest = self._newest(snapshot, route)
        if any(
            _beyond(newest[quantity], quantity, limit) for quantity, limit in thresholds.items() if quantity in newest
        ):
            return PauseReason.THRESHOLD
        return None

    def _newest(self, snapshot: Snapshot, route: str) -> dict[Quantity, Estimate]:
        """By quantity, the estimate of the newest answers that are enough: that of fewest among several windows."""
        newest: dict[Quantity, Estimate] = {}
        for row in snapshot.estimates:
            if (row.route, row.judge) != (route, self._judge) or row.estimate.n_eff < MIN_EFFECTIVE:
                continue
            if row.quantity not in newest or row.estimate.n < newest[row.quantity].n:
                newest[row.quantity] = row.estimate
        return newest


def _beyond(estimate: Estimate, quantity: Quantity, limit: float) -> bool:
    return estimate.low > limit if quantity in LOW_IS_GOOD else estimate.high < limit
