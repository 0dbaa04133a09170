"""Options of labels by people: how long they count, how many are needed, and which samples are selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from ragwatch.config.judge_options import JudgeOptions
from ragwatch.config.options import DAY, FrozenOptions, Name, Seconds
from ragwatch.model.criteria import Criterion
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.verdicts import LabelRules

Share = Annotated[float, Field(ge=0.0, le=0.9, strict=True)]


class LabelsOptions(FrozenOptions):
    """Labels by people."""

    fresh: Seconds = Field(
        30 * DAY,
        description="Age from which a label no longer corrects estimates; also the window of the corrected estimates.",
    )
    minimum: int = Field(30, ge=10, description="Minimum number of labels for corrected estimates of a quantity.")
    share_unsure: Share = Field(
        0.5, description="Share of the samples for annotators that is selected where judges are unsure, or disagree."
    )
    double: Share = Field(0.1, description="Share of the samples that a second annotator labels too.")
    per_hour: int = Field(
        200, ge=1, description="Labels that a user or token may send per hour; those beyond are refused with 429."
    )
    leave_out: tuple[Name, ...] = Field((), description="Annotators whose labels do not count; they are kept.")
    trusted: tuple[Name, ...] = Field(
        (),
        description="Annotators without whom no interval is computed again. Otherwise the interval includes the "
        "estimates without each annotator, so that one person cannot move it away from the truth.",
    )

    def rules(
        self,
        judges: Sequence[JudgeOptions],
        versions: Mapping[str, str],
        confidence: float,
        criteria: tuple[Criterion, ...] = (),
    ) -> LabelRules:
        """Build the rules by which labels correct the scores of the judges, of which the first is the default one.

        Their versions are by name, with at least that of the default judge.
        """
        every = (*Quantity, *(criterion.quantity for criterion in criteria))
        first, second = judges[0], second_of(judges)
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
