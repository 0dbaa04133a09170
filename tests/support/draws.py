"""How many examples Hypothesis draws for tests whose usual count is not enough, or too much.

`EXAMPLES` scales them as it scales those of all other tests: fewer under other Pythons, many in `make slow`.
"""

from __future__ import annotations

import os

USUAL = 15
EXAMPLES = int(os.environ.get("EXAMPLES", str(USUAL)))


def draws(usual: int) -> int:
    """Number of examples where a usual run draws so many; at least one."""
    return max(1, usual * EXAMPLES // USUAL)
