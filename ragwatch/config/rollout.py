"""Options of `ragwatch rollout`, the three stages that a variant has to pass. The daemon ignores them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from ragwatch.config.options import DAY, FrozenOptions, Ratio, Seconds
from ragwatch.statistics.feedback import NAME

_FIELD = re.compile(r"metadata(\.[^.]{1,128}){1,8}")
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]


def _parse_time(value: object) -> object:
    """Convert a time to seconds since the epoch; without an offset it is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise ValueError(f"{value!r} is not a time; write one such as 2026-01-31T09:30:00Z") from error
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    raise ValueError(f"{value!r} is not a time; write one such as 2026-01-31T09:30:00Z")


class OfflineOptions(FrozenOptions):
    """Stage 1: two suites of `canaries`, or two files with the output of `ragwatch canary --json`."""

    a: Text = Field(
        description="A suite of `canaries`, or an output of `ragwatch canary --json`, with the current variant."
    )
    b: Text = Field(description="The same with the other variant.")
    k: int = Field(10, ge=1, le=1000, description="Cut-off of the comparison.")


class JudgedOptions(FrozenOptions):
    """Stage 2: two logs of answers; without them, the stored answers of live traffic."""

    a: Text | None = Field(None, description="A log of answers of the current variant; null for live answers.")
    b: Text | None = Field(None, description="A log of answers of the other one to the same questions.")
    questions: int = Field(100, ge=1, le=10_000, description="Number of questions that are compared.")
    since: Seconds = Field(7 * DAY, description="Age of the oldest live answer that is compared.")

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if (self.a is None) != (self.b is None):
            raise ValueError("has one log only; give both `a` and `b`, or neither for live traffic")
        return self


def _check_field(value: str) -> str:
    if value != NAME and not _FIELD.fullmatch(value):
        raise ValueError(f"{value!r} is neither {NAME} (all that users say) nor a field such as metadata.thumbs")
    return value


class FeedbackOptions(FrozenOptions):
    """What users say: `user_score` as the daemon has read it, or a field of the metadata and what its numbers mean."""

    field: Annotated[str, AfterValidator(_check_field)] = Field(
        description="Path of the user metric, such as metadata.thumbs."
    )
    worst: float | None = Field(None, description="Worst value of ratings; null for thumbs.")
    best: float | None = Field(None, description="Best value of ratings.")

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if (self.worst is None) != (self.best is None) or (self.worst is not None and self.worst == self.best):
            raise ValueError("has half a scale; give two different numbers `worst` and `best`, or neither for thumbs")
        if self.field == NAME and self.worst is not None:
            raise ValueError(
                f"has a scale for {NAME}, which is from 0 to 1; write the scale at the top-level `feedback`"
            )
        return self


def _parse_feedback(value: object) -> object:
    return {"field": value} if isinstance(value, str) else value


class LiveOptions(FrozenOptions):
    """Stage 3: a share of the live traffic."""

    start: Annotated[float, BeforeValidator(_parse_time)] = Field(
        description="When the split of the traffic began; fixed, because the sequences begin there."
    )
    share: float = Field(0.05, gt=0.0, lt=1.0, description="Share of the traffic that b gets.")
    margin: Ratio = Field(0.05, description="Largest loss that is accepted.")
    feedback: Annotated[FeedbackOptions, BeforeValidator(_parse_feedback)] | None = None


class RolloutOptions(FrozenOptions):
    """Rollout of the variant `b` in place of `a`; stages without a section are not decided."""

    a: Text = Field(description="The current variant: its value of `label` in the metadata of an answer.")
    b: Text = Field(description="The variant that is to replace it.")
    label: Text = Field("variant", description="Metadata key of the variant.")
    offline: OfflineOptions | None = None
    judged: JudgedOptions | None = None
    live: LiveOptions | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.a == self.b:
            raise ValueError(f"`a` and `b` are both {self.a!r}; name two variants")
        return self
