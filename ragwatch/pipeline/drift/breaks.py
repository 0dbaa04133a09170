"""Breaks: when the change behind an alarm began, and the mean before and since, for the texts of alerts and pages.

The begin is the most likely one of a single change of the mean: among the newest scores, the first of those for which
S^2 / W is greatest, where S is the sum of w (before - score) and W the sum of w (Hinkley, Biometrika 57, 1970, with a
known mean before). The variance of the scores is not needed. From the alarm on, all scores count as after the change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from ragwatch.core.drift.detect import Score
from ragwatch.core.snapshot import Gauge
from ragwatch.pipeline.drift.loop import Cell, Figures, is_segment, name_of

NEWEST = 500
"""Scores among which a begin is searched: more than a break that pages takes until it is noticed."""
NEWEST_OF_SEGMENT = 300
"""The same for a segment, of which there are many."""
_GAUGES = Gauge.DRIFT_BEGAN, Gauge.DRIFT_BEFORE, Gauge.DRIFT_SINCE, Gauge.DRIFT_ANSWERS
_SEGMENT_GAUGES = (
    Gauge.SEGMENT_DRIFT_BEGAN,
    Gauge.SEGMENT_DRIFT_BEFORE,
    Gauge.SEGMENT_DRIFT_SINCE,
    Gauge.SEGMENT_DRIFT_ANSWERS,
)


class BreakRecord(TypedDict):
    """A break as JSON values."""

    began: float
    before: float
    since: float
    answers: int
    weight: float


@dataclass(slots=True)
class Break:
    """A change of a mean.

    Attributes:
        began: Estimated time of the first answer after it, in seconds since the epoch.
        before: The mean while the reference was learnt.
        since: The mean of the answers after it.
        answers: Their number.
        weight: Their sum of weights.
    """

    began: float
    before: float
    since: float = 0.0
    answers: int = 0
    weight: float = 0.0

    def add(self, score: Score) -> None:
        """Count one more answer."""
        self.answers += 1
        self.weight += score.weight
        self.since += (score.value - self.since) * score.weight / self.weight

    @property
    def readings(self) -> tuple[float, float, float, float]:
        """Values of its gauges: begin, mean before, mean since, number of answers."""
        return self.began, self.before, self.since, float(self.answers)

    def to_record(self) -> BreakRecord:
        """The break as JSON values."""
        return {
            "began": self.began,
            "before": self.before,
            "since": self.since,
            "answers": self.answers,
            "weight": self.weight,
        }


class Breaks:
    """Follows the scores of each detector, and keeps the break behind each alarm that is active."""

    def __init__(self) -> None:
        self._newest: dict[Cell, deque[tuple[float, Score]]] = {}
        self._open: dict[Cell, Break] = {}

    def follow(self, cell: Cell, at: float, score: Score, *, before: float | None, alarmed: bool) -> None:
        """Count a score.

        Args:
            cell: Its detector.
            at: Time of the answer.
            score: The score.
            before: The mean while the reference was learnt; None where there is none, and then there is no break.
            alarmed: Whether the alarm is active, with this score taken.
        """
        if not alarmed:
            self._open.pop(cell, None)
        elif (known := self._open.get(cell)) is not None:
            known.add(score)
            return
        if (newest := self._newest.get(cell)) is None:
            newest = self._newest[cell] = deque(maxlen=NEWEST_OF_SEGMENT if is_segment(cell) else NEWEST)
        newest.append((at, score))
        if alarmed and before is not None:
            self._open[cell] = _latest_break(newest, before)
            newest.clear()  # after this alarm, another break begins later

    def of(self, cell: Cell) -> Break | None:
        """The break behind the alarm of a detector; None if it is not known."""
        return self._open.get(cell)

    def figures(self, alarmed: Mapping[Cell, object]) -> Figures:
        """Gauges of the breaks behind these alarms."""
        return {
            (gauge, cell): value
            for cell, known in self._open.items()
            if cell in alarmed
            for gauge, value in zip(_SEGMENT_GAUGES if is_segment(cell) else _GAUGES, known.readings, strict=True)
        }

    def to_dict(self) -> dict[str, BreakRecord]:
        """The breaks as JSON values. Scores before an alarm are not stored: the store has them."""
        return {name_of(cell): known.to_record() for cell, known in self._open.items()}

    def load(self, cells: Mapping[str, Cell], state: Mapping[str, BreakRecord]) -> None:
        """Continue with breaks that `to_dict` returned.

        Raises:
            TypeError: A value is missing, or has another type.
        """
        self._open = {cells[name]: Break(**record) for name, record in state.items() if name in cells}


def _latest_break(newest: deque[tuple[float, Score]], before: float) -> Break:
    """The most likely change of the mean, in whichever direction the newest scores together lie."""
    total, weight, best, first = 0.0, 0.0, -1.0, len(newest) - 1
    for index in range(len(newest) - 1, -1, -1):
        _, score = newest[index]
        total += score.weight * (before - score.value)
        weight += score.weight
        if total * total / weight > best:
            best, first = total * total / weight, index
    scores = list(newest)[first:]
    change = Break(scores[0][0], before)
    for _, score in scores:
        change.add(score)
    return change
