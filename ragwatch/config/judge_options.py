"""Options that all judges have: name, share of the draws, cascade, budget and self-tests."""

from __future__ import annotations

from pydantic import Field, StrictBool

from ragwatch.config.options import DAY, HOUR, AnyQuantity, FrozenOptions, Name, Probability, Ratio
from ragwatch.model.budget import SpendingCap


class BudgetOptions(FrozenOptions):
    """Limits on what a judge may spend within any hour and any day (sliding windows)."""

    usd_per_hour: float | None = Field(
        None, gt=0.0, description="US dollars within any hour; near the limit the judge's probability falls."
    )
    usd_per_day: float | None = Field(None, gt=0.0, description="US dollars within any day.")
    tokens_per_hour: int | None = Field(None, gt=0, description="Tokens within any hour.")
    tokens_per_day: int | None = Field(None, gt=0, description="Tokens within any day.")

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

    name: Name = Field(description="Name of the judge (label `judge`). The first judge is the default one.")
    probability: Probability = Field(1.0, description="Share of the draws that this judge reads.")
    follows: Name | None = Field(None, description="Cascade: another judge, of whose draws this one reads a share.")
    unsure_probability: Probability | None = Field(
        None, description="Share of the draws that the followed judge is most unsure of."
    )
    reference: StrictBool = Field(
        default=False, description="Its verdicts correct the judge that it follows (label `corrected`)."
    )
    quantities: tuple[AnyQuantity, ...] | None = Field(
        None, min_length=1, description="Quantities that it judges, such as [faithfulness]; null for all."
    )
    budget: BudgetOptions = BudgetOptions()
    repeat: Ratio = Field(0.0, description="Share of its samples that it reads twice, to measure its repeatability.")
    known_bad: Ratio = Field(
        0.0,
        description="Share of its samples tested with a known-bad answer, as it is (with a prompt injection) and "
        "padded: two calls.",
    )
