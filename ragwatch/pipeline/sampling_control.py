"""Shares: with which probability each judge reads a draw at present.

It falls, before the draw, where money or time is short, and is stored with each draw, so that estimates stay unbiased:
nothing is first come, first served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwatch.core.budget import Cost, SpendingCap, SpendingForecast, remaining
from ragwatch.core.sampling import shedding_factor
from ragwatch.core.tally import Tallies, Tally
from ragwatch.ports import Accounts

SHED_AT = 8  # parts of the longest queue: an eighth halves what a judge is given, two quarter it


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What one judge is to read.

    Attributes:
        probability: Conditional probability that it reads a draw, where nothing is short.
        caps: What it may spend; empty for no limits.
        waits: Whether the sources wait for it when it is behind; other judges are given less instead.
    """

    probability: float
    caps: tuple[SpendingCap, ...] = ()
    waits: bool = False


class SamplingControl:
    """The factors by which judges' probabilities are lowered.

    Args:
        plans: By judge.
        accounts: What was spent.
        max_pending: Length of the longest queue.
    """

    def __init__(self, plans: Mapping[str, JudgePlan], accounts: Accounts, max_pending: int) -> None:
        self._plans = dict(plans)
        self._accounts = accounts
        self._shed_above = max(1, max_pending // SHED_AT)
        self._paces = {name: SpendingForecast() for name, plan in self._plans.items() if plan.caps}
        self._factors = dict.fromkeys(self._plans, 1.0)
        self._left: dict[str, float] = {}

    def factor(self, judge: str) -> float:
        """What the judge's probability is multiplied with at present, in (0, 1]."""
        return self._factors[judge]

    def in_force(self) -> dict[str, float]:
        """Probability that each judge reads a draw, at present."""
        return {name: plan.probability * self._factors[name] for name, plan in self._plans.items()}

    def budgets(self) -> dict[str, float]:
        """Share of its budget that is left, by judge that has one."""
        return dict(self._left)

    def update(self, tallies: Tallies, pending: Mapping[str, int], now: float) -> None:
        """Look at queues and accounts, and set the factors until the next time."""
        for name, plan in self._plans.items():
            waiting = pending.get(name, 0)
            factor = 1.0 if plan.waits else shedding_factor(waiting, self._shed_above)
            if plan.caps:
                factor *= self._affordable(name, plan, tallies, waiting, now)
            self._factors[name] = factor

    def _affordable(self, name: str, plan: JudgePlan, tallies: Tallies, waiting: int, now: float) -> float:
        pace = self._paces[name]
        within = [self._accounts.spent(name, now - cap.seconds) for cap in plan.caps]
        self._left[name] = remaining(plan.caps, within)
        pace.see(
            now,
            assigned=tallies[Tally.ASSIGNED, (name,)],
            settled=sum(count for (tally, at), count in tallies.items() if tally is Tally.JUDGED and at[1] == name),
            spent=Cost() if pace.since is None else self._accounts.spent(name, pace.since),
            factor=self._factors[name],
        )
        return pace.factor(plan.caps, within, waiting)
