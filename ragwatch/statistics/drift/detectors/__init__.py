"""Drift detectors by kind. `betting` is the default: it alone guarantees a false alarm rate."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from ragwatch.statistics.drift.detect import Detector, Direction, Score
from ragwatch.statistics.drift.detectors.betting import Betting
from ragwatch.statistics.drift.detectors.cusum import Cusum, PageHinkley

Kind = Callable[[float, float, Direction, float], Detector[Score]]


KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {"betting": Betting, "cusum": Cusum, "page_hinkley": lambda _, *settings: PageHinkley(*settings)}
)
"""Builders by kind, called with baseline, threshold, direction and largest weight.

A Page-Hinkley test compares with its own running mean instead of a baseline.
"""
