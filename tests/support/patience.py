"""How long tests wait before they fail.

Tests wait for conditions, so a limit only decides how late a broken test fails: these are far above what a busy
machine needs. On a slower one, RAGWATCH_TEST_PATIENCE multiplies them all (and the limit that pytest-timeout sets).
"""

from __future__ import annotations

import os
import re
from time import process_time

SCALE = float(os.environ.get("RAGWATCH_TEST_PATIENCE", "1"))
DEADLINE = 120.0 * SCALE
"""Seconds until one condition must hold."""

_FLOOR_SECONDS = 0.03  # of CPU, for `_floor` on the machine where limits were chosen
_WORDS = " ".join(f"word{number} of {number * 7}." for number in range(2000))


def cpu_limit(seconds: float) -> float:
    """A limit on seconds of CPU, stated for a machine of two quiet cores, for the machine that runs this, as it is now.

    A core that is shared or slow stretches the work and the floor alike.
    """
    return seconds * SCALE * max(1.0, _floor() / _FLOOR_SECONDS)


def _floor() -> float:
    """Seconds of CPU that a fixed piece of work takes: the kind of work that reading text is."""
    start = process_time()
    for _ in range(8):
        found: dict[str, int] = {}
        for word in re.findall(r"[\w']+|[^\s\w]", _WORDS):
            found[word] = found.get(word, 0) + len(word.lower())
    return process_time() - start
