"""Criteria: questions of the operator about each answer, answered by an LLM judge with yes, no, or does not apply.

A criterion is a quantity like those of ragwatch: 1 for yes, 0 for no, unknown where it does not apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import Quantity, quantity_of

MAX_CRITERIA = 20
MAX_QUESTION_CHARS, MAX_EXAMPLE_CHARS, MAX_EXAMPLES = 500, 500, 5


@dataclass(frozen=True, slots=True)
class Example:
    """An answer of a service, or a part of one, for which the answer to a criterion is known."""

    text: str
    answer: CriterionAnswer


@dataclass(frozen=True, slots=True)
class Criterion:
    """A question about each answer of the service. Yes is good.

    Attributes:
        name: Name of the quantity; see `statistics.scores.quantity_of` for its form.

    Raises:
        ValueError: The name is that of another quantity or has another form, or a text is empty, too long or has more
            than one line.
    """

    name: str
    question: str
    examples: tuple[Example, ...] = ()

    def __post_init__(self) -> None:
        if not quantity_of(self.name).is_criterion:
            raise ValueError(f"{self.name!r} is a quantity of ragwatch; use another name")
        _check_text("question", self.question, MAX_QUESTION_CHARS)
        if len(self.examples) > MAX_EXAMPLES:
            raise ValueError(f"examples: are {len(self.examples)}; give at most {MAX_EXAMPLES}")
        for example in self.examples:
            _check_text("examples", example.text, MAX_EXAMPLE_CHARS)

    @property
    def quantity(self) -> Quantity:
        """The quantity that it is scored as."""
        return quantity_of(self.name)


def _check_text(what: str, text: str, limit: int) -> None:
    if not text.strip() or len(text) > limit or not text.isprintable():
        raise ValueError(f"{what}: must be one line of 1 to {limit} characters")


def unread(names: Iterable[str]) -> tuple[CriterionReading, ...]:
    """Return the readings of a judge that does not read criteria."""
    return tuple(CriterionReading(name, None) for name in names)
