"""How long tests wait before they fail.

Tests wait for conditions, so a limit only decides how late a broken test fails: these are far above what a busy
machine needs. One scale stretches them all: RAGWATCH_TEST_PATIENCE, or else what this machine needs for a fixed piece
of work at the start, compared with two quiet cores.
"""

import os
import re
from collections.abc import Callable, Iterator
from time import monotonic, perf_counter, process_time, sleep

_FLOOR_SECONDS = 0.03  # for `_floor` on the machine where limits were chosen
_MAX_MEASURED_SCALE = 8.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _PAUSE_GROWTH = 0.02, 0.4, 1.5
_WORDS = " ".join(f"word{number} of {number * 7}." for number in range(2000))


def _floor(clock: Callable[[], float]) -> float:
    """Seconds that a fixed piece of work takes: the kind of work that reading text is."""
    start = clock()
    for _ in range(8):
        counts: dict[str, int] = {}
        for word in re.findall(r"[\w']+|[^\s\w]", _WORDS):
            counts[word] = counts.get(word, 0) + len(word.lower())
    return clock() - start


def _measured() -> float:
    return min(max(1.0, _floor(perf_counter) / _FLOOR_SECONDS), _MAX_MEASURED_SCALE)


SCALE = float(os.environ.get("RAGWATCH_TEST_PATIENCE") or _measured())
DEADLINE = 120.0 * SCALE
"""Seconds until one condition must hold."""

TIMEOUT = min(600.0 * SCALE, 1800.0)
"""Seconds after which a test is stuck."""


def pauses() -> Iterator[None]:
    """Yield before each look at a condition, for `DEADLINE` seconds; the pauses between looks grow.

    A look at a daemon takes CPU that the daemon needs.

        for _ in pauses():
            if condition():
                return
        raise AssertionError("not in time")
    """
    end, pause = monotonic() + DEADLINE, _FIRST_PAUSE_SECONDS
    while True:
        yield
        if monotonic() > end:
            return
        sleep(pause)
        pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE_SECONDS)


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    end = monotonic() + DEADLINE
    while not holds():
        assert monotonic() < end, f"never happened: {what}"
        sleep(0.01)


def cpu_limit(seconds: float) -> float:
    """A limit on seconds of CPU, stated for two quiet cores, for this machine as it is now.

    A core that is shared or slow stretches the work and the floor alike.
    """
    return seconds * max(SCALE, _floor(process_time) / _FLOOR_SECONDS)
