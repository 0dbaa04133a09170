"""Monitoring against a concurrent control (previous release, frozen canaries), without a learnt reference.

A change that affects both, such as another time of day or other questions, raises no alarm.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TypedDict

from ragwatch.core.drift.detect import Detector, Numbers, Score, Unit
from ragwatch.core.drift.detectors.betting import ScorePair, TwoSample

_MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class ControlScheme:
    """Scheme that compares with a concurrent control and needs no reference."""

    test: TwoSample
    unit: Unit = Unit.SCORES

    @property
    def span(self) -> float:
        """Minimum learning time: 0 seconds."""
        return 0.0

    def size(self, reading: ScorePair) -> float:
        """Return 1: a reading is one pair."""
        del reading
        return 1.0

    @property
    def looks(self) -> int:
        """0: nothing is learnt."""
        return 0

    def look(self, reference: Numbers) -> int:
        """Return 0: nothing is learnt."""
        del reference
        return 0

    def learn(self, reference: Numbers, reading: ScorePair, at: float = 0.0) -> Numbers:
        """Return the reference unchanged: nothing is learnt."""
        del reading, at
        return reference

    def detector(self, reference: Numbers) -> Detector[ScorePair]:
        """Return the detector, which is available from the start."""
        del reference
        return self.test


@dataclass(frozen=True, slots=True)
class ScoreQueue:
    """Scores of one side that wait for a score of the other side."""

    scores: tuple[Score, ...] = ()
    control: bool = False


def pair(queue: ScoreQueue, score: Score, *, control: bool) -> tuple[ScoreQueue, ScorePair | None]:
    """Add a score of either side; return the queue after it, and the pair it forms with the oldest of the other side.

    Pairs are formed in the order of arrival, independently of the scores. If one side is ahead by more than 1000
    scores, its oldest ones are dropped, which does not depend on their values either.
    """
    if not queue.scores or queue.control == control:
        return ScoreQueue((*queue.scores, score)[-_MAX_WAITING:], control), None
    first, rest = queue.scores[0], queue.scores[1:]
    return replace(queue, scores=rest), ScorePair(first, score) if control else ScorePair(score, first)


class QueueRecord(TypedDict):
    """A queue as JSON values."""

    control: bool
    scores: list[dict[str, float]]


def queue_to_dict(queue: ScoreQueue) -> QueueRecord:
    """Return the queue as plain values for JSON."""
    return {"control": queue.control, "scores": [asdict(score) for score in queue.scores]}


def queue_from_dict(stored: QueueRecord) -> ScoreQueue:
    """Return the queue that `queue_to_dict` stored."""
    return ScoreQueue(tuple(Score(**score) for score in stored["scores"]), bool(stored["control"]))
