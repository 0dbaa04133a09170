"""The section `criteria`: questions of the operator about each answer."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ragwatch.config.options import FrozenOptions
from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.exporter.quality import series_names
from ragwatch.model.criteria import MAX_CRITERIA, MAX_EXAMPLES, Criterion, Example
from ragwatch.model.evidence import CriterionAnswer
from ragwatch.model.quantities import is_quantity_name, quantity_of

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
        """Build the criterion.

        Raises:
            ValueError: A text is empty, too long, or has more than one line.
        """
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
