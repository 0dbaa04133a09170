"""Root: where a function of one number falls below 0, in a third of the looks that halving takes.

Regula falsi that does not stick to one end (Illinois: Dowell and Jarratt 1971), with a halving wherever two turns have
not halved what is left: a step or a flat stretch costs no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

WIDTH = 2.0**-32
_PATIENCE = 2


def crossing(height: Callable[[float], float], start: float) -> float:
    """The last place known to be above 0 before the crossing, which is at most WIDTH behind it.

    Args:
        height: At a place in (0, 1); not asked at the ends.
        start: Height at 0, above 0. The one at 1 is taken to be below 0.

    >>> round(crossing(lambda x: 0.3 - x, 0.3), 9), crossing(lambda x: 1.0, 1.0) > 1.0 - 1e-9
    (0.3, True)
    """
    inside, outside, above, below = 0.0, 1.0, start, -math.inf
    slow, side = 0, 0.0
    while outside - inside > WIDTH:
        width = outside - inside
        if below == -math.inf or slow == _PATIENCE:
            middle, slow = inside + width / 2.0, 0
        else:
            guess = inside + width * above / (above - below)
            middle = min(max(guess, inside + WIDTH / 2.0), outside - WIDTH / 2.0)
        found = height(middle)
        if found >= 0.0:
            inside, above = middle, found
            below /= 1.0 + (side > 0.0)  # the other end stayed where it was twice: it counts for half
        else:
            outside, below = middle, found
            above /= 1.0 + (side < 0.0)
        side = math.copysign(1.0, found)
        slow = slow + 1 if outside - inside > width / 2.0 else 0
    return inside
