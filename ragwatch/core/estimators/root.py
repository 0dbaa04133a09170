"""Root finding for a function of one variable, with about a third of the evaluations that bisection needs.

Illinois variant of regula falsi (Dowell and Jarratt 1971), with a bisection step whenever two steps have not halved the
bracket; so a step or a flat stretch costs no more than bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable

WIDTH = 2.0**-32
_MAX_SLOW_STEPS = 2


def crossing(height: Callable[[float], float], start: float) -> float:
    """Return the largest evaluated place with height >= 0 before the crossing, at most WIDTH below it.

    Args:
        height: Function on (0, 1); it is not evaluated at the ends.
        start: Height at 0, above 0. The height at 1 is taken to be below 0.

    >>> round(crossing(lambda x: 0.3 - x, 0.3), 9), crossing(lambda x: 1.0, 1.0) > 1.0 - 1e-9
    (0.3, True)
    """
    inside, outside, above, below = 0.0, 1.0, start, -math.inf
    slow, side = 0, 0.0
    while outside - inside > WIDTH:
        width = outside - inside
        if below == -math.inf or slow == _MAX_SLOW_STEPS:
            middle, slow = inside + width / 2.0, 0
        else:
            guess = inside + width * above / (above - below)
            middle = min(max(guess, inside + WIDTH / 2.0), outside - WIDTH / 2.0)
        value = height(middle)
        if value >= 0.0:
            inside, above = middle, value
            below /= 1.0 + (side > 0.0)  # the other end has not moved for two steps: it counts half
        else:
            outside, below = middle, value
            above /= 1.0 + (side < 0.0)
        side = math.copysign(1.0, value)
        slow = slow + 1 if outside - inside > width / 2.0 else 0
    return inside
