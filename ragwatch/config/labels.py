"""Labels in the configuration: for how long people's words count, how many are wanted, and on which samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragwatch.config.text import duration_seconds
from ragwatch.core.scores import Quantity
from ragwatch.pipeline.labels.verdicts import DAY, LabelRules

if TYPE_CHECKING:  # the model of the whole file holds this section
    from ragwatch.config.model import JudgeOptions

Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0.0)]
Share = Annotated[float, Field(ge=0.0, le=0.9, strict=True)]


class LabelsOptions(BaseModel):
    """People's words on answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    fresh: Seconds = 30 * DAY
    minimum: int = Field(30, ge=10)
    share_unsure: Share = 0.5
    double: Share = 0.1

    def rules(self, judges: Sequence[JudgeOptions], versions: Mapping[str, str], confidence: float) -> LabelRules:
        """The same, for the judges in force.

        Args:
            judges: As configured, the default one first.
            versions: Version of each judge, by name; the default one has one.
            confidence: Two-sided level of the intervals.
        """
        first = judges[0]
        second = second_of(judges)
        return LabelRules(
            dict(versions),
            (first.name,) if second is None or second.name not in versions else (first.name, second.name),
            frozenset(Quantity if second is None or second.quantities is None else second.quantities),
            self.fresh,
            self.minimum,
            self.share_unsure,
            self.double,
            confidence,
        )


def second_of(judges: Sequence[JudgeOptions]) -> JudgeOptions | None:
    """The first judge that reads a part, with known probability, of what the default judge reads; None without one.

    Judges that draw for themselves read such a part only where the default one reads everything.
    """
    first = judges[0]
    for each in judges[1:]:
        if each.follows == first.name or (each.follows is None and first.probability >= 1.0):
            return each
    return None
