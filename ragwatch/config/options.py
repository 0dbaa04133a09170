"""Base class of the configuration models, and the field types that several of them share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragwatch.config.text import duration_seconds
from ragwatch.core.units import size_bytes

HOUR, DAY = 3600.0, 86400.0


class FrozenOptions(BaseModel):
    """An immutable section of the configuration. Forbids unknown keys, and the numbers `.nan` and `.inf`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _reject_boolean(value: object) -> object:
    """Reject true and false: YAML reads yes, no, on and off as booleans, and pydantic reads booleans as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number; write one")  # noqa: TRY004 - pydantic wants ValueError
    return value


_Number = BeforeValidator(_reject_boolean)
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
# A weight is 1 / probability: below one in a million, one answer would outweigh all others for months.
Probability = Annotated[float, Field(ge=1e-6, le=1.0), _Number]
Ratio = Annotated[float, Field(ge=0.0, le=1.0), _Number]
StrictRatio = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]  # not a number in quotes or from a variable
Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0.0), _Number]
Bytes = Annotated[int, BeforeValidator(size_bytes), Field(ge=0), _Number]
