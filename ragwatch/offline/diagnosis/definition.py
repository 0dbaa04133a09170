"""Defines what the checklist reads (questions with the chunks that were retrieved for them) and what it finds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ragwatch.statistics.canary.definition import Direction

MAX_EXAMPLES = 5


class Check(StrEnum):
    """Steps of the checklist, in the order in which they are made."""

    COHERENCE = "chunk_coherence"
    LENGTH = "chunk_length"
    DUPLICATES = "duplicates"
    EMBEDDING = "embedding"
    RECALL = "recall"
    SCORES = "similarity_scores"
    RANKING = "ranking"
    VOCABULARY = "vocabulary"
    BOUNDARIES = "chunk_boundaries"
    FRESHNESS = "freshness"


class Status(StrEnum):
    """Outcome of a check."""

    PROBLEM = "problem"
    FINE = "fine"
    NOT_MEASURABLE = "not_measurable"


class RelevanceSource(StrEnum):
    """Who says which chunks are relevant to a question."""

    LABELS = "labels"
    CANARIES = "canaries"
    JUDGE = "judge"


LACKS_A_FACT = frozenset({Check.RECALL, Check.BOUNDARIES, Check.VOCABULARY, Check.FRESHNESS})
"""Problems of which the generator lacks a fact: they cost 1, the others 0.5, as it gets the fact among noise."""

REMEDIES: Mapping[Check, str] = {
    Check.COHERENCE: "Split documents at sentences and headings, so that a chunk holds complete thoughts.",
    Check.LENGTH: "Choose one chunk size: merge fragments with their neighbours, and split chunks of many topics.",
    Check.DUPLICATES: "Remove copies before indexing, and keep only the newest version of a document.",
    Check.EMBEDDING: "Embed known similar pairs again: check the model, its version, the prefix for queries and "
    "documents, and normalization.",
    Check.RECALL: "Found only further down: retrieve more chunks and rerank them. Found nowhere: check that the "
    "document is indexed, and how it is chunked and embedded.",
    Check.SCORES: "Do not cut by score alone: add a reranker or hybrid search, and tune the embedding on pairs of "
    "questions and relevant chunks.",
    Check.RANKING: "Add or recalibrate a reranker, and filter by metadata that the question names.",
    Check.VOCABULARY: "Rewrite or expand questions, add synonyms to the documents, or combine keyword and vector "
    "search.",
    Check.BOUNDARIES: "Let chunks overlap, or retrieve the neighbours of a chunk (parent document) as well.",
    Check.FRESHNESS: "Index the newer documents, delete old versions, and index whenever a document changes.",
}


class Chunk(NamedTuple):
    """A chunk that was retrieved for a question; what was not logged, not stored whole, or is unknown is None."""

    id: str | None
    text: str | None
    score: float | None = None
    relevant: bool | None = None

    @property
    def key(self) -> str:
        """Identity: the id, else the text."""
        return self.id or self.text or ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its retrieved chunks, the day of the answer, and dates of the index or its documents."""

    id: str
    text: str | None
    chunks: tuple[Chunk, ...]
    relevance: RelevanceSource = RelevanceSource.JUDGE
    direction: Direction | None = None
    # for each supported claim of the answer: positions of the chunks that support it, if none of them does alone;
    # otherwise empty
    together: tuple[tuple[int, ...], ...] = ()
    claims: tuple[str, ...] = ()  # the supported claims themselves, in the same order; empty if they are not stored
    # whether the judge names retrieval as the stage at fault; None if it names no stage
    retrieval_failed: bool | None = None
    day: str = ""
    dates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: the affected share in [0, 1], if measurable, and samples or canaries to look at."""

    check: Check
    status: Status
    share: float | None
    summary: str
    evidence: tuple[str, ...] = ()
    figures: Mapping[str, float | None] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def importance(self) -> float:
        """Affected share x cost of the problem; 0 for any other status."""
        cost = 1.0 if self.check in LACKS_A_FACT else 0.5
        return (self.share or 0.0) * cost if self.status is Status.PROBLEM else 0.0

    @property
    def remedy(self) -> str | None:
        """What to do; None if there is no problem."""
        return REMEDIES[self.check] if self.status is Status.PROBLEM else None


def not_measurable(check: Check, reason: str) -> Finding:
    """Returns the finding of a check that lacks data."""
    return Finding(check, Status.NOT_MEASURABLE, None, f"not measurable here because {reason}")


def measured(
    check: Check,
    share: float,
    limit: float,
    summary: str,
    *,
    evidence: Sequence[str] = (),
    figures: Mapping[str, float | None],
    examples: Iterable[str] = (),
) -> Finding:
    """Returns a finding that is a problem if the affected share reaches `limit`; see `Finding` for the rest."""
    status = Status.PROBLEM if share >= limit else Status.FINE
    names = tuple(dict.fromkeys(examples))[:MAX_EXAMPLES]
    return Finding(check, status, share, summary, evidence=tuple(evidence), figures=figures, examples=names)


def distinct(questions: Sequence[Question]) -> dict[str, tuple[Chunk, str]]:
    """Returns each chunk with a text once, by its key, with the id of the first question that it was retrieved for."""
    chunks: dict[str, tuple[Chunk, str]] = {}
    for question in questions:
        for chunk in question.chunks:
            if chunk.text:
                chunks.setdefault(chunk.key, (chunk, question.id))
    return chunks


def percent(share: float) -> str:
    """Returns a share as text."""
    return f"{share:.0%}".replace("%", " %") if share == 0.0 or share >= 0.01 else f"{share:.1%}".replace("%", " %")
