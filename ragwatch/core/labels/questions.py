"""Defines the questions that people are asked about an answer, and what their replies mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NotRequired, TypedDict

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.sample import SampleRecord
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.quantity_row import LabelQuestionRow, Reply

SKIP = "-"
CLAIM: Mapping[str, ClaimVerdict | None] = MappingProxyType(
    {"s": ClaimVerdict.SUPPORTED, "c": ClaimVerdict.CONTRADICTED, "n": ClaimVerdict.NOT_IN_CONTEXT, SKIP: None}
)
DEGREE: Mapping[str, float | None] = MappingProxyType({"f": 1.0, "p": 0.5, "n": 0.0, SKIP: None})
HOLDS: Mapping[str, float | None] = MappingProxyType({"y": 1.0, "n": 0.0, SKIP: None})
NOT_HOLDS: Mapping[str, float | None] = MappingProxyType({"y": 0.0, "n": 1.0, SKIP: None})
NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "claim": MappingProxyType({"s": "supported", "c": "contradicted", "n": "not in the contexts", SKIP: "skip"}),
        "degree": MappingProxyType({"f": "fully", "p": "partly", "n": "not at all", SKIP: "skip"}),
        "yes": MappingProxyType({"y": "yes", "n": "no", SKIP: "skip"}),
    }
)
"""Replies in words, by kind of question."""


class TaskClaim(TypedDict):
    """A claim of a sample that is labelled, without a verdict, and its place if it is a part of the answer."""

    text: str
    start: int | None
    end: int | None


class TaskCriterion(TypedDict):
    """A criterion of the operator that people are asked about, too."""

    name: str
    question: str


class LabelTask(TypedDict):
    """A sample that a person labels."""

    key: str
    route: str
    at: float
    sample: SampleRecord
    claims: list[TaskClaim]
    criteria: NotRequired[list[TaskCriterion]]


class LabelQueue(TypedDict):
    """What was given to a person, and how far they are.

    Attributes:
        given: Keys of all samples that were given to the person.
        done: How many have been labelled lately.
        twice: How many of the open and the done ones two people are given.
        last: The sample that was labelled last, lately.
    """

    given: list[str]
    open: list[str]
    done: int
    twice: int
    last: str | None


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """A question about an answer as a whole, with the score by reply (None to skip) and their kind in `NAMES`."""

    quantity: Quantity
    text: str
    replies: Mapping[str, float | None]
    kind: str


def label_questions(
    *, has_claims: bool, has_contexts: bool, criteria: Sequence[tuple[str, str]] = ()
) -> list[LabelQuestion]:
    """Returns the questions about an answer as a whole, in order.

    With `has_claims` these are asked about one by one; criteria are name and question.
    """
    questions = [
        LabelQuestion(quantity, row.text, _replies(row), str(row.reply))
        for quantity in Quantity
        if (row := quantity.row.question) is not None
        and not (row.unless_claims and has_claims)
        and not (row.about_contexts and not has_contexts)
    ]
    return questions + [LabelQuestion(quantity_of(name), text, HOLDS, "yes") for name, text in criteria]


def _replies(row: LabelQuestionRow) -> Mapping[str, float | None]:
    if row.reply is Reply.DEGREE:
        return DEGREE
    return HOLDS if row.yes else NOT_HOLDS


REPLIES: Mapping[str, Mapping[str, float | None]] = MappingProxyType(
    {quantity: _replies(row) for quantity in Quantity if (row := quantity.row.question) is not None}
)
"""Score by reply, of each quantity that people are asked about."""
