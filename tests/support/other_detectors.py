"""Detectors that others use, for comparison on the same streams: each is given a score and its time, and says alarm."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

Watcher = Callable[[float, float], bool]
"""Called with the time in seconds and the score of each answer; True when an alarm begins."""


def adwin() -> Watcher:
    """ADWIN (Bifet and Gavalda 2007) of river, at its defaults; it starts again after an alarm.

    Raises:
        ImportError: River is not installed.
    """
    drift: Any = import_module("river.drift")
    detector = drift.ADWIN()

    def watch(_: float, score: float) -> bool:
        before = detector.estimation
        detector.update(score)
        return bool(detector.drift_detected) and detector.estimation < before  # a rise is no breakage

    return watch


def page_hinkley() -> Watcher:
    """Page-Hinkley test for a fall (Page 1954) of river, which forgets nothing; it starts again after an alarm.

    Raises:
        ImportError: River is not installed.
    """
    drift: Any = import_module("river.drift")
    detector = drift.PageHinkley(alpha=1.0, mode="down")

    def watch(_: float, score: float) -> bool:
        detector.update(score)
        return bool(detector.drift_detected)

    return watch


def windowed_mean(limit: float, seconds: float, least: int = 1) -> Watcher:
    """A threshold on the mean of a sliding window: the rule that Langfuse, Opik and Grafana document.

    Args:
        limit: An alarm begins when the mean comes below it.
        seconds: Length of the window.
        least: Number of scores below which nothing is said.
    """
    window: deque[tuple[float, float]] = deque()
    total, below = 0.0, False

    def watch(at: float, score: float) -> bool:
        nonlocal total, below
        window.append((at, score))
        total += score
        while window[0][0] <= at - seconds:
            total -= window.popleft()[1]
        before, below = below, len(window) >= least and total / len(window) < limit
        return below and not before

    return watch
