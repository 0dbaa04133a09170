"""Detectors: one file a kind. `betting` is the default, because it is the only one with a promise."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from ragwatch.core.drift.detect import Detector, Direction, Score
from ragwatch.core.drift.detectors.betting import Betting
from ragwatch.core.drift.detectors.cusum import Cusum
from ragwatch.core.drift.detectors.page_hinkley import PageHinkley

Kind = Callable[[float, float, Direction, float], Detector[Score]]


def _page_hinkley(baseline: float, threshold: float, direction: Direction, heaviest: float) -> PageHinkley:
    """It takes its own running mean for a baseline."""
    del baseline
    return PageHinkley(threshold, direction, heaviest)


KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {"betting": Betting, "cusum": Cusum, "page_hinkley": _page_hinkley}
)
"""By name: baseline, threshold, direction and heaviest weight to a detector."""
