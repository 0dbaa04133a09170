"""CanaryDiff: what changed for one canary since a run in which all was well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ragwatch.core.canary.definition import Expected, Hit
from ragwatch.core.canary.report import CanaryReport


@dataclass(frozen=True, slots=True)
class RankChange:
    """An expected context at another rank than before.

    Attributes:
        label: Its id, or the beginning of its text.
        before: Rank from 1; None when it was not among the top k.
        after: The same, now.
        instead: The passage that has its old rank now; None where nothing came back at that rank.
    """

    label: str
    before: int | None
    after: int | None
    instead: Hit | None = None


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """How the retriever's scores lie among the top k: lowest, median, highest."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class CanaryDiff:
    """What changed.

    Attributes:
        canary: Its name.
        vanished: Expected contexts that were among the top k and are not; `after` is None.
        moved: Expected contexts whose rank changed otherwise, those that came back included.
        newcomers: Passages among the top k that were not there, by rank.
        scores_before: Spread of the scores; None when a passage came without one.
        scores_after: The same, now.
    """

    canary: str
    vanished: tuple[RankChange, ...]
    moved: tuple[RankChange, ...]
    newcomers: tuple[tuple[int, Hit], ...]
    scores_before: ScoreRange | None
    scores_after: ScoreRange | None

    @property
    def shift(self) -> float | None:
        """Change of the median score; None when it is unknown on either side."""
        if self.scores_before is None or self.scores_after is None:
            return None
        return self.scores_after.median - self.scores_before.median


def diff(before: CanaryReport, after: CanaryReport) -> CanaryDiff | None:
    """What changed between two runs of a canary. None when either had no usable reply: nothing can be compared.

    Expected contexts are told apart by their id or text, so a canary that was edited in between is compared in what it
    still expects.
    """
    if before.failure is not None or after.failure is not None:
        return None
    old = {key: rank for key, (_, rank) in _ranks(before).items()}
    new = _ranks(after)
    hits = after.retrieved.hits
    moves = [
        RankChange(each.label, old[key], rank, _at(hits, old[key]))
        for key, (each, rank) in new.items()
        if key in old and old[key] != rank
    ]
    known = {hit.key for hit in before.retrieved.hits}
    return CanaryDiff(
        after.canary.name,
        tuple(move for move in moves if move.after is None),
        tuple(move for move in moves if move.after is not None),
        tuple((rank, hit) for rank, hit in enumerate(hits, start=1) if hit.key not in known),
        _spread(before.retrieved.hits),
        _spread(hits),
    )


def _ranks(found: CanaryReport) -> dict[str | None, tuple[Expected, int | None]]:
    """By id, or the whole text: labels of passages that begin alike are the same."""
    return {each.id or each.text: (each, rank) for each, rank in zip(found.canary.expected, found.ranks, strict=True)}


def _at(hits: Sequence[Hit], rank: int | None) -> Hit | None:
    return None if rank is None or rank > len(hits) else hits[rank - 1]


def _spread(hits: Sequence[Hit]) -> ScoreRange | None:
    scores = [hit.score for hit in hits if hit.score is not None]
    if not scores or len(scores) < len(hits):
        return None
    return ScoreRange(min(scores), median(scores), max(scores))
