"""The stages that can be at fault, and the faults of an ignored document: what they mean, and what to do."""

from enum import StrEnum
from typing import Self

from ragwatch.model.enumerations import Described


class Stage(StrEnum):
    """The stage at fault. Alignment: the generator does not use the relevant context that the retriever ranks first."""

    text: str  # what it says about an answer, for its page
    advice: str  # what to check, for a gate
    colour: str  # its colour in a terminal

    def __new__(cls, name: str, text: str, advice: str, colour: str) -> Self:
        """Make a member from its row."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.text, member.advice, member.colour = text, advice, colour
        return member

    NONE = ("none", "The judge found no fault in this answer.", "", "green")
    RETRIEVAL = (
        "retrieval",
        (
            "The contexts do not contain what the question needs. Check the retriever first: index, embedding, "
            "chunking, number of contexts, reranker. A generator cannot make up for missing contexts."
        ),
        (
            "check the retriever first (index, embedding, chunking, k, reranker): "
            "the generator cannot use contexts that were not retrieved"
        ),
        "blue",
    )
    GENERATION = (
        "generation",
        (
            "The contexts are sufficient, but the answer adds to them, contradicts them, or does not address the "
            "question. Check the generator: prompt, model, temperature."
        ),
        "check the generator (prompt, model, temperature)",
        "red",
    )
    ALIGNMENT = (
        "alignment",
        (
            "Retrieval and generation work separately, but the answer ignores the best context. Check how contexts "
            "enter the prompt: order, number, chunk size, position."
        ),
        "check how contexts reach the generator (chunk size, reranker calibration, order in the prompt)",
        "magenta",
    )


FAULTS = (Stage.RETRIEVAL, Stage.GENERATION, Stage.ALIGNMENT)
"""The stages at fault of failing answers."""


class Fault(Described):
    """Why the top-ranked context was not used."""

    RETRIEVER = ("retriever", "The top-ranked context was not used because it is not relevant: the ranking is wrong.")
    GENERATOR = (
        "generator",
        "The top-ranked context is relevant but was not used; some claims have no supporting context.",
    )
    REDUNDANT = (
        "redundant",
        "The top-ranked context is relevant but was not used; other contexts support every claim.",
    )
