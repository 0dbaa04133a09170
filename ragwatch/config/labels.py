"""Options of labels by people: how long they count, how many are needed, and which samples are selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from ragwatch.config.judge_options import JudgeOptions
from ragwatch.config.options import DAY, FrozenOptions, Name, Seconds
from ragwatch.core.criteria import Criterion
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.verdicts import LabelRules

Share = Annotated[float, Field(ge=0.0, le=0.9, strict=True)]


class LabelsOptions(FrozenOptions):
    """Labels by people."""

    fresh: Seconds = 30 * DAY
    minimum: int = Field(30, ge=10)
    share_unsure: Share = 0.5
    double: Share = 0.1
    per_hour: int = Field(200, ge=1)
    leave_out: tuple[Name, ...] = ()
    trusted: tuple[Name, ...] = ()

    def rules(
        self,
        judges: Sequence[JudgeOptions],
        versions: Mapping[str, str],
        confidence: float,
        criteria: tuple[Criterion, ...] = (),
    ) -> LabelRules:
        """Build the rules by which labels correct the scores of the judges.

        Args:
            judges: In the order of the configuration: the default judge is the first.
            versions: Version of each judge, by name; contains at least the default judge.
            confidence: Two-sided confidence level of the intervals.
            criteria: The configured criteria.
        """
        every = (*Quantity, *(criterion.quantity for criterion in criteria))
        first = judges[0]
        second = second_of(judges)
        chain = (first.name,) if second is None or second.name not in versions else (first.name, second.name)
        return LabelRules(
            dict(versions),
            chain=chain,
            reference=second is not None and second.name in chain and second.reference,
            second=frozenset(every if second is None or second.quantities is None else second.quantities),
            fresh=self.fresh,
            minimum=self.minimum,
            share_unsure=self.share_unsure,
            double=self.double,
            confidence=confidence,
            leave_out=frozenset(self.leave_out),
            trusted=frozenset(self.trusted),
            per_hour=self.per_hour,
            criteria=criteria,
        )


def second_of(judges: Sequence[JudgeOptions]) -> JudgeOptions | None:
    """Return the first judge that reads a known share of what the default judge reads; None if there is none.

    A judge that follows no other one reads such a share only if the default judge reads every draw.
    """
    first = judges[0]
    for judge in judges[1:]:
        if judge.follows == first.name or (judge.follows is None and first.probability >= 1.0):
            return judge
    return None
