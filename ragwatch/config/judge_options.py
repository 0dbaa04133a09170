"""Options that all judges have, of the questions that operators ask (criteria), and of labels that correct judges."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from ragwatch.config.options import DAY, HOUR, AnyQuantity, FrozenOptions, Name, Probability, Ratio, Seconds
from ragwatch.exporter.catalogue import CATALOGUE, series_names
from ragwatch.model.budget import SpendingCap
from ragwatch.model.evidence import CriterionAnswer
from ragwatch.model.quantities import (
    MAX_CRITERIA,
    MAX_EXAMPLES,
    Criterion,
    Example,
    Quantity,
    is_quantity_name,
    quantity_of,
)
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.statistics.estimators.corrected import MIN_LABELS


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


_TAKEN = frozenset(series.name for series in CATALOGUE)


def _check_name(name: str) -> str:
    if not quantity_of(name).is_criterion:
        raise ValueError(f"{name!r} is a quantity of ragwatch; use another name")
    taken = sorted(_TAKEN.intersection(series_names(name)))
    if taken:
        raise ValueError(f"{name!r} would be exported as {taken[0]}, which is another series; use another name")
    return name


def _answer(value: object) -> object:
    """YAML reads yes and no as booleans."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


class ExampleOptions(FrozenOptions):
    """A text for which the answer is known."""

    text: str = Field(description="An answer.")
    answer: Annotated[CriterionAnswer, BeforeValidator(_answer)] = Field(description="yes, no or does_not_apply.")


class CriterionOptions(FrozenOptions):
    """A question about each answer, which LLM judges answer with yes, no, or does not apply."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(
        description="Lower-case words with underscores: the name of the quantity; not that of another series."
    )
    question: str = Field(description="One line of at most 500 characters; yes is good.")
    examples: tuple[ExampleOptions, ...] = Field((), max_length=MAX_EXAMPLES)

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        self.build()
        return self

    def build(self) -> Criterion:
        """Build the criterion. `ValueError` if a text is empty, too long, or has more than one line."""
        return Criterion(
            self.name, self.question, tuple(Example(example.text, example.answer) for example in self.examples)
        )


def _check_unique(criteria: tuple[CriterionOptions, ...]) -> tuple[CriterionOptions, ...]:
    names = [criterion.name for criterion in criteria]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"{name!r} is the name of two criteria; names must differ")
    return criteria


Criteria = Annotated[tuple[CriterionOptions, ...], Field(max_length=MAX_CRITERIA), AfterValidator(_check_unique)]


def names_in(data: object) -> frozenset[str]:
    """Names in the section `criteria` before it is validated; those that are no names of quantities are left out.

    >>> sorted(names_in([{"name": "polite"}, {"name": "Polite"}, {"name": ["polite"]}, "polite"])), names_in(None)
    (['polite'], frozenset())
    """
    items = data if isinstance(data, list) else []
    names = (item.get("name") for item in items if isinstance(item, dict))
    return frozenset(name for name in names if isinstance(name, str) and is_quantity_name(name))


Share = Annotated[float, Field(ge=0.0, le=0.9, strict=True)]


class LabelsOptions(FrozenOptions):
    """Labels by people."""

    fresh: Seconds = Field(
        30 * DAY,
        description="Age from which a label no longer corrects estimates; also the window of the corrected estimates.",
    )
    minimum: int = Field(
        MIN_LABELS, ge=10, description="Minimum number of labels for corrected estimates of a quantity."
    )
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
