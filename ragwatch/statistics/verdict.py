"""Verdict on a draw: Judged with scores, or Unjudged with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from operator import add

from ragwatch.model.evidence import Evidence, ShapeError
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Draw
from ragwatch.model.stages import Fault, Stage
from ragwatch.statistics.scores import score_all, top_ranked_fault
from ragwatch.statistics.stage import KNOWLEDGE_GAP, counted_stage, stage
from ragwatch.statistics.text.citations import with_citations
from ragwatch.statistics.text.phrases import is_abstention


class UnjudgedReason(StrEnum):
    """Why a draw has no scores. The values are label values of a series."""

    EMPTY_ANSWER = "empty_answer"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    OVER_BUDGET = "over_budget"
    TOO_LARGE = "too_large"
    INTERNAL = "internal"
    JUDGE_REMOVED = "judge_removed"
    REJECTED = "rejected"
    PROTOCOL = "protocol"
    MISCONFIGURED = "misconfigured"
    EXPIRED = "expired"
    DAMAGED = "damaged"
    ERASED = "erased"
    PROMPT_INJECTION = "prompt_injection"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one reading. Input tokens are those that were not cached; 0 for an embedded judge."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))

    @property
    def tokens(self) -> int:
        """Total number of tokens."""
        return sum(tokens for _, tokens in self.by_direction())

    def by_direction(self) -> tuple[tuple[str, int], ...]:
        """Return tokens by direction, a label of a series; directions do not overlap."""
        return (
            ("input", self.input_tokens),
            ("output", self.output_tokens),
            ("cache_read", self.cache_read_tokens),
            ("cache_write", self.cache_write_tokens),
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Reading:
    """Judge, duration in seconds and cost of a reading; verdicts of different versions never share a mean."""

    judge: str
    kind: str
    version: str
    seconds: float = 0.0
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Judged:
    """A draw that was read, with its scores."""

    draw: Draw
    reading: Reading
    evidence: Evidence
    scores: Mapping[Quantity, float | None]
    stage: Stage | None
    fault: Fault | None

    @property
    def counted_as(self) -> str | None:
        """What counts of answers by stage count it as: its stage, or one of two kinds that are no fault of a stage.

        `ignored` is a good answer that does not use the top-ranked context. `knowledge_gap` is an abstention without a
        relevant context: nothing says that the question has an answer, neither a relevance judgement nor a reference
        that answers. None if the stage is unknown.
        """
        if self.stage is None:
            return None
        sample = self.draw.sample
        answerable = bool(sample.relevant) or (bool(sample.reference) and not is_abstention(str(sample.reference)))
        if self.stage is Stage.RETRIEVAL and self.evidence.abstained and not answerable:
            return KNOWLEDGE_GAP
        return counted_stage(self.stage, self.scores.get(Quantity.TOP_RANKED_IGNORED))


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A draw that could not be read, with the reason. It is counted, and widens the worst-case bounds."""

    draw: Draw
    reading: Reading
    reason: UnjudgedReason
    detail: str = ""


Verdict = Judged | Unjudged


def judged(draw: Draw, reading: Reading, evidence: Evidence) -> Judged:
    """Compute the verdict from the evidence, with the citations of the answer; ShapeError if of another sample."""
    sample = draw.sample
    if len(evidence.contexts) != len(sample.contexts):
        raise ShapeError(f"{len(evidence.contexts)} contexts were read of {len(sample.contexts)}")
    if any(claim.end is not None and claim.end > len(sample.answer) for claim in evidence.claims):
        raise ShapeError("a claim ends after the answer")
    evidence = with_citations(evidence, sample.answer, [context.id for context in sample.contexts])
    return Judged(
        draw,
        reading,
        evidence,
        scores=score_all(evidence),
        stage=stage(evidence),
        fault=top_ranked_fault(evidence),
    )
