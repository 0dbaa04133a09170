"""Control: watching against something that runs at the same time (previous release, frozen canaries), without learning.

What moves both, a different hour or different questions, is no alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ragwatch.core.drift.detect import Detector, Numbers, Score, Unit
from ragwatch.core.drift.detectors.betting import ScorePair, TwoSample

_MOST_WAITING = 1000


@dataclass(frozen=True, slots=True)
class AgainstControl:
    """A scheme that needs no reference.

    Attributes:
        test: The detector.
        unit: What run length is counted in.
    """

    test: TwoSample
    unit: Unit = Unit.SCORES

    @property
    def span(self) -> float:
        """None."""
        return 0.0

    def size(self, reading: ScorePair) -> float:
        """One pair."""
        del reading
        return 1.0

    def learn(self, reference: Numbers, reading: ScorePair) -> Numbers:
        """Nothing is learnt."""
        del reading
        return reference

    def detector(self, reference: Numbers) -> Detector[ScorePair]:
        """The detector, at once."""
        del reference
        return self.test


@dataclass(frozen=True, slots=True)
class ScoreQueue:
    """Scores of one side that wait for one of the other, oldest first.

    Attributes:
        scores: Those that wait.
        control: Whether they are the control's.
    """

    scores: tuple[Score, ...] = ()
    control: bool = False


def pair(queue: ScoreQueue, score: Score, *, control: bool) -> tuple[ScoreQueue, ScorePair | None]:
    """One more score of either side: the queue after it, and the pair it makes with the oldest of the other side.

    Pairs are made in the order of arrival, whatever the scores are. Where one side runs ahead by more than a thousand
    its oldest are let go, which says nothing about their value either.

    >>> queue, found = pair(Queue(), Score(0.9), control=True)
    >>> pair(queue, Score(0.5), control=False)
    (Queue(scores=(), control=True), Pair(score=Score(value=0.5, weight=1.0), control=Score(value=0.9, weight=1.0)))
    """
    if not queue.scores or queue.control == control:
        return ScoreQueue((*queue.scores, score)[-_MOST_WAITING:], control), None
    first, rest = queue.scores[0], queue.scores[1:]
    return replace(queue, scores=rest), ScorePair(first, score) if control else ScorePair(score, first)


def queue_to_dict(queue: ScoreQueue) -> dict[str, Any]:
    """The queue as plain values."""
    return {"control": queue.control, "scores": [asdict(each) for each in queue.scores]}


def queue_from_dict(kept: Mapping[str, Any]) -> ScoreQueue:
    """The queue that `queue_to_dict` gave.

    Raises:
        KeyError: Something is missing.
        TypeError: Something does not belong.
    """
    return ScoreQueue(tuple(Score(**each) for each in kept["scores"]), bool(kept["control"]))
