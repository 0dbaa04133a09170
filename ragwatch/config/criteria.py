"""The section `criteria`: questions of the operator about each answer, and where the configuration may name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from ragwatch.config.options import FrozenOptions
from ragwatch.core.criteria import MAX_CRITERIA, MAX_EXAMPLES, Criterion, Example
from ragwatch.core.evidence import CriterionAnswer
from ragwatch.core.reference import ReferenceQuantity
from ragwatch.core.scores import Quantity, quantity_of
from ragwatch.errors import ConfigError
from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.exporter.quality import series_names

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

    text: str
    answer: Annotated[CriterionAnswer, BeforeValidator(_answer)]


class CriterionOptions(FrozenOptions):
    """A question about each answer, which LLM judges answer with yes, no, or does not apply."""

    name: Annotated[str, AfterValidator(_check_name)]
    question: str
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


def check_names(sections: Mapping[str, BaseModel], criteria: Iterable[str]) -> None:
    """Check that quantities that are named in sections of the configuration are of ragwatch, or configured criteria.

    Raises:
        ConfigError: One is neither; the path of its key.
    """
    known = frozenset(criteria)
    for where, section in sections.items():
        for path, quantity in _quantities(section, where):
            if quantity.is_criterion and quantity not in known:
                names = ", ".join((*Quantity, *ReferenceQuantity, *sorted(known)))
                raise ConfigError(
                    f"{path}: {str(quantity)!r} is no quantity, and no name of `criteria`; use one of: {names}"
                )


def _quantities(value: Any, path: str) -> Iterator[tuple[str, Quantity]]:  # noqa: ANN401 - any part of a configuration
    """Every quantity in a part of the configuration, as a value or as a key, with its path."""
    if isinstance(value, Quantity):
        yield path, value
    elif isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            key = field.alias or name
            yield from _quantities(getattr(value, name), f"{path}.{key}" if path else key)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _quantities(key if isinstance(key, Quantity) else None, f"{path}.{key}")
            yield from _quantities(item, f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _quantities(item, f"{path}[{index}]")
