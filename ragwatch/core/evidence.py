"""Evidence: the observations of a judge on one answer, without any score.

It is a matrix with a row per claim of the answer and a column per context, in the order of the retriever. Each object
validates its shape when it is created.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ClaimVerdict(StrEnum):
    """Whether the contexts together support or contradict a claim."""

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
    """Evidence is inconsistent: an error of a judge or its parser, not of the answer."""


def _check_ratio(value: float | None, name: str) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ShapeError(f"{name} must be in [0, 1], not {value}")


@dataclass(frozen=True, slots=True)
class Claim:
    """One row: a claim of the answer and the contexts that support it.

    Attributes:
        text: The claim, as it stands in the answer.
        start: Offset of its first character in the answer; None if it is not a verbatim part of the answer.
        end: Offset after its last character.
        verdict: Verdict on the claim, given all contexts together.
        cells: For each context, whether that context alone supports the claim.
        support: Probability that the contexts together support it; None if the judge gives no probability.
        evidence: The sentence that supports or contradicts it, if the judge quotes one.
        in_reference: Whether the reference contains it; None without a reference, or if not read.
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
        """0-based ranks of the contexts that alone support the claim."""
        return tuple(rank for rank, supports in enumerate(self.cells) if supports)


@dataclass(frozen=True, slots=True)
class ContextReading:
    """One column: the relevance of a context to the answer.

    Attributes:
        relevant: Whether it is useful for the answer; None if the judge does not decide that.
        relevance: Probability that it is relevant; None if the judge gives no probability.
        sentences: Number of sentences in the context; None if the judge does not count them.
        relevant_sentences: Number of relevant sentences.
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
    """A sub-question, and whether the contexts answer it."""

    text: str
    answerable: bool


@dataclass(frozen=True, slots=True)
class ReferenceClaim:
    """A claim of the reference (the known good answer), and where else it is found.

    Attributes:
        text: The claim, as it stands in the reference.
        start: Offset of its first character in the reference.
        end: Offset after its last character.
        cells: For each context, whether that context supports the claim.
        in_answer: Whether the answer contains it; None if not read.
    """

    text: str
    start: int
    end: int
    cells: tuple[bool, ...]
    in_answer: bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ShapeError(f"offsets {self.start}..{self.end} do not enclose text of the reference")


class UnreadReason(StrEnum):
    """Why a judge could not read an answer that it reads otherwise."""

    LANGUAGE = "language"
    SHORT_ANSWER = "short_answer"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a judge read in one sample.

    Attributes:
        claims: Rows; empty if the answer has no claims (an abstention, an empty answer).
        contexts: Columns, in the order of the retriever.
        address: How the answer addresses the question; None if unknown.
        needs: Sub-questions of the question; None if the judge does not read them.
        reads_contradiction: False if the judge cannot distinguish contradicted claims from unsupported ones.
        reads_claims: False if the judge does not read claims; then their absence does not describe the answer.
        reference: Claims of the reference; empty if it has none, None without a reference, or if not read.
        unread: Why the claims could not be read (with `language` nothing else was read either); None if they were.
    """

    claims: tuple[Claim, ...]
    contexts: tuple[ContextReading, ...]
    address: Address | None = None
    needs: tuple[Need, ...] | None = None
    reads_contradiction: bool = True
    reads_claims: bool = True
    reference: tuple[ReferenceClaim, ...] | None = None
    unread: UnreadReason | None = None

    def __post_init__(self) -> None:
        columns = len(self.contexts)
        for row, claim in enumerate(self.claims):
            if len(claim.cells) != columns:
                raise ShapeError(f"claim {row} has {len(claim.cells)} cells for {columns} contexts")
        for row, reference_claim in enumerate(self.reference or ()):
            if len(reference_claim.cells) != columns:
                raise ShapeError(f"reference claim {row} has {len(reference_claim.cells)} cells for {columns} contexts")

    @property
    def abstained(self) -> bool:
        """Whether the answer is an abstention ("I don't know")."""
        return self.address is Address.ABSTAINED

    @property
    def used(self) -> tuple[bool, ...]:
        """u_j: whether context j alone supports at least one claim."""
        return tuple(any(claim.cells[rank] for claim in self.claims) for rank in range(len(self.contexts)))
