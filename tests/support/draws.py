"""How many examples Hypothesis draws where the usual count is not enough, or too much; and how many seeds a test has.

`EXAMPLES` scales examples as it scales those of all other tests: fewer under other Pythons, many in `make slow`.
"""

import os
from typing import Any

import pytest

USUAL = 15
EXAMPLES = int(os.environ.get("EXAMPLES", str(USUAL)))


def draws(usual: int) -> int:
    """Number of examples where a usual run draws so many; at least one."""
    return max(1, usual * EXAMPLES // USUAL)


def seeds(few: int, many: int) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: the first `few` seeds, and the others marked `slow`."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))]
