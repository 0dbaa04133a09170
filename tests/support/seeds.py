"""Seeds of tests that repeat a random course of events: a few for every change, many in `make slow`."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, many: int) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: the first `few` seeds, and the others marked `slow`."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))]
