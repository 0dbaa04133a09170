"""Evidence: what a judge read. It holds observations only, never a score.

Rows are claims of the answer, columns are contexts in the retriever's order. Each object checks its own
shape when it is made, so that no arithmetic downstream meets a torn matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ClaimVerdict(StrEnum):
    """How the contexts, taken together, stand to one claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_IN_CONTEXT = "not_in_context"


class Address(StrEnum):
    """How the answer addresses the question."""

    FULLY = "fully"
    PARTIALLY = "partially"
    NOT_AT_ALL = "not_at_all"
    ABSTAINED = "abstained"


class ShapeError(ValueError):
    """Evidence contradicts itself: a judge (or its parser) is wrong, not the answer."""


def _check_ratio(value: float | None, name: str) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ShapeError(f"{name} must be in [0, 1], not {value}")


@dataclass(frozen=True, slots=True)
class Claim:
    """One row: a claim of the answer and how each context stands to it.

    Attributes:
        text: The claim, as it stands in the answer.
        start: Offset of its first character in the answer; None when it is not a verbatim part.
        end: Offset behind its last character.
        verdict: What all contexts together say of it.
        cells: For each context, whether that context alone supports the claim.
        support: Probability that the contexts together support it; None where the judge gives none.
        evidence: The sentence that speaks for (or against) it, if the judge named one.
        in_reference: Whether the reference says it too; None without a reference, or unread.
    """

    text: str
    start: int | None
    end: int | None
    verdict: ClaimVerdict
    cells: tuple[bool, ...]
    support: float | None = None
    evidence: str | None = None
    in_reference: bool | None = None

    def __post_init__(self) -> None:
        _check_ratio(self.support, "support")
        if (self.start is None) != (self.end is None):
            raise ShapeError("a claim has both offsets or none")
        if self.start is not None and self.end is not None and not 0 <= self.start < self.end:
            raise ShapeError(f"claim offsets {self.start}..{self.end} do not enclose text")
        if any(self.cells) and self.verdict is not ClaimVerdict.SUPPORTED:
            raise ShapeError(f"a context supports the claim, yet its verdict is {self.verdict}")

    @property
    def contexts(self) -> tuple[int, ...]:
        """0-based ranks of the contexts that support the claim alone."""
        return tuple(rank for rank, supports in enumerate(self.cells) if supports)


@dataclass(frozen=True, slots=True)
class ContextReading:
    """One column: how one context relates to the answer that was produced.

    Attributes:
        relevant: Useful for arriving at the produced answer; None when the judge cannot say.
        relevance: The judge's probability of that; None where it gives none.
        sentences: Sentences in this context; None when the judge did not count them.
        relevant_sentences: How many of them are relevant.
    """

    relevant: bool | None
    relevance: float | None = None
    sentences: int | None = None
    relevant_sentences: int | None = None

    def __post_init__(self) -> None:
        _check_ratio(self.relevance, "relevance")
        if (self.sentences is None) != (self.relevant_sentences is None):
            raise ShapeError("sentences and relevant_sentences are both counted or neither")
        if self.sentences is not None and not 0 <= (self.relevant_sentences or 0) <= self.sentences:
            raise ShapeError(f"{self.relevant_sentences} relevant of {self.sentences} sentences")


@dataclass(frozen=True, slots=True)
class Need:
    """One sub-question, and whether the contexts answer it."""

    text: str
    answerable: bool


@dataclass(frozen=True, slots=True)
class ReferenceClaim:
    """A claim of the reference, the known good answer, and who else says it.

    Attributes:
        text: The claim, as it stands in the reference.
        start: Offset of its first character in the reference.
        end: Offset behind its last character.
        cells: For each context, whether that context supports the claim.
        in_answer: Whether the answer says it too; None when unread.
    """

    text: str
    start: int
    end: int
    cells: tuple[bool, ...]
    in_answer: bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ShapeError(f"offsets {self.start}..{self.end} do not enclose text of the reference")


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a judge read in one sample.

    Attributes:
        claims: Rows. Empty means the answer claims nothing (an abstention, an empty answer).
        contexts: Columns, in the retriever's order.
        address: How the answer addresses the question; None when unknown.
        needs: Sub-questions of the question; None when the judge does not read them.
        reads_contradiction: False when the judge cannot tell a contradiction from an invention.
        reads_claims: False when the judge was not asked about claims: having none then says nothing of the answer.
        reference: Claims of the reference; empty when it claims nothing, None without one, or unread.
    """

    claims: tuple[Claim, ...]
    contexts: tuple[ContextReading, ...]
    address: Address | None = None
    needs: tuple[Need, ...] | None = None
    reads_contradiction: bool = True
    reads_claims: bool = True
    reference: tuple[ReferenceClaim, ...] | None = None

    def __post_init__(self) -> None:
        columns = len(self.contexts)
        for row, claim in enumerate(self.claims):
            if len(claim.cells) != columns:
                raise ShapeError(f"claim {row} has {len(claim.cells)} cells for {columns} contexts")
        for row, known in enumerate(self.reference or ()):
            if len(known.cells) != columns:
                raise ShapeError(f"reference claim {row} has {len(known.cells)} cells for {columns} contexts")

    @property
    def abstained(self) -> bool:
        """The answer says that it does not know."""
        return self.address is Address.ABSTAINED

    @property
    def used(self) -> tuple[bool, ...]:
        """u_j: context j alone supports at least one claim."""
        return tuple(any(claim.cells[rank] for claim in self.claims) for rank in range(len(self.contexts)))
