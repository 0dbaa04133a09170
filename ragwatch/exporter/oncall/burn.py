"""Burn: how fast an error budget may be used up before somebody is told (Google SRE Workbook, chapter 5).

A budget of 1 - objective is meant to last thirty days. A pair of windows uses up a share of it within the long one
when the mean error is `factor` budgets; the short window ends the alert soon after the error ends. The pairs here are
longer than the Workbook's, because sampled judging leaves few scores in five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

PERIOD = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Burn:
    """One speed.

    Attributes:
        long: Window that the share is used up in, in seconds.
        short: Window that must burn as well, in seconds.
        budget: Share of thirty days' budget, 0 to 1.
        severity: `critical` or `warning`.
    """

    long: float
    short: float
    budget: float
    severity: Literal["critical", "warning"]

    @property
    def factor(self) -> float:
        """Mean error, in budgets, that uses up the share within the long window.

        >>> round(Burn(3600.0, 900.0, 0.02, "critical").factor, 9)
        14.4
        """
        return self.budget * PERIOD / self.long


BURNS = (
    Burn(3600.0, 900.0, 0.02, "critical"),
    Burn(21600.0, 3600.0, 0.05, "critical"),
    Burn(86400.0, 21600.0, 0.10, "warning"),
    Burn(259200.0, 21600.0, 0.10, "warning"),
)


def impossible(objective: float, burn: Burn) -> str | None:
    """Why an alert could never fire, and what to write instead; None when it can.

    >>> impossible(0.95, BURNS[0]) is None
    True
    >>> impossible(0.9, BURNS[0])
    'can never fire: 14.4 times a budget of 0.1 is a mean error of 1.44; raise the objective above 0.9306, or lower \
the share of the budget of that pair below 0.0138'
    """
    error = burn.factor * (1.0 - objective)
    if error < 1.0:
        return None
    least = ceil((1.0 - 1.0 / burn.factor) * 1e4) / 1e4
    most = floor(burn.long / (PERIOD * (1.0 - objective)) * 1e4) / 1e4
    return (
        f"can never fire: {burn.factor:.4g} times a budget of {1.0 - objective:.4g} is a mean error of {error:.4g}; "
        f"raise the objective above {least:.4f}, or lower the share of the budget of that pair below {most:.4f}"
    )
