"""Multiwindow burn-rate alerts on an error budget (Google SRE Workbook, chapter 5).

The error budget is 1 - objective over 30 days. A mean error of `factor` budgets burns the given share of it within the
long window; the short window resolves the alert soon after the error ends. The windows are longer than those of the
Workbook, because sampled judging yields few scores in five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

PERIOD = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class BurnRate:
    """One burn rate.

    Attributes:
        long: Long window in seconds, in which the share of the budget burns.
        short: Short window in seconds, which must burn at the same rate.
        budget: Share of the 30-day error budget, 0 to 1.
        severity: `critical` or `warning`.
    """

    long: float
    short: float
    budget: float
    severity: Literal["critical", "warning"]

    @property
    def factor(self) -> float:
        """Burn rate: mean error / budget that burns the share within the long window.

        >>> round(BurnRate(3600.0, 900.0, 0.02, "critical").factor, 9)
        14.4
        """
        return self.budget * PERIOD / self.long


BURNS = (
    BurnRate(3600.0, 900.0, 0.02, "critical"),
    BurnRate(21600.0, 3600.0, 0.05, "critical"),
    BurnRate(86400.0, 21600.0, 0.10, "warning"),
    BurnRate(259200.0, 21600.0, 0.10, "warning"),
)


def impossible(objective: float, burn: BurnRate) -> str | None:
    """Explains why a burn-rate alert could never fire, and what to configure instead; None if it can.

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
