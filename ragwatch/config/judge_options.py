"""Options that all judges have: name, share of the draws, cascade, budget and self-tests."""

from __future__ import annotations

from pydantic import Field, StrictBool

from ragwatch.config.options import DAY, HOUR, AnyQuantity, FrozenOptions, Name, Probability, Ratio
from ragwatch.core.budget import SpendingCap


class BudgetOptions(FrozenOptions):
    """Limits on what a judge may spend within any hour and any day (sliding windows)."""

    usd_per_hour: float | None = Field(None, gt=0.0)
    usd_per_day: float | None = Field(None, gt=0.0)
    tokens_per_hour: int | None = Field(None, gt=0)
    tokens_per_day: int | None = Field(None, gt=0)

    @property
    def caps(self) -> tuple[SpendingCap, ...]:
        """The limits that are set, one per window."""
        caps = (
            SpendingCap(HOUR, self.usd_per_hour, self.tokens_per_hour),
            SpendingCap(DAY, self.usd_per_day, self.tokens_per_day),
        )
        return tuple(cap for cap in caps if cap.usd is not None or cap.tokens is not None)


class JudgeOptions(FrozenOptions):
    """Options that every judge has in addition to those of its kind."""

    name: Name
    probability: Probability = 1.0
    follows: Name | None = None
    unsure_probability: Probability | None = None
    reference: StrictBool = False
    quantities: tuple[AnyQuantity, ...] | None = Field(None, min_length=1)
    budget: BudgetOptions = BudgetOptions()
    repeat: Ratio = 0.0
    known_bad: Ratio = 0.0
