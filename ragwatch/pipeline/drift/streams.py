"""Streams: what is watched of one quantity on one route, against its own past or beside a control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ragwatch.core.drift.detect import (
    Alarm,
    Score,
    Watch,
    acknowledge,
    begin,
    cap_time,
    from_dict,
    renew,
    step,
    to_dict,
)
from ragwatch.core.drift.detectors.betting import ScorePair
from ragwatch.core.drift.detectors.control import ControlScheme, ScoreQueue, pair, queue_from_dict, queue_to_dict
from ragwatch.core.drift.detectors.reference import ReferenceScheme


class Stream(Protocol):
    """Scores in their order, and what they have told so far."""

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that stands."""
        ...

    @property
    def evidence(self) -> float | None:
        """Evidence now; None while it learns what is ordinary."""
        ...

    @property
    def threshold(self) -> float | None:
        """Evidence that is an alarm; None while it learns."""
        ...

    @property
    def baseline(self) -> float | None:
        """The mean it is watched against; None where there is none (yet)."""
        ...

    def take(self, seq: int, at: float, score: Score, *, control: bool) -> None:
        """One more score; `control` says that it is the control's."""
        ...

    def no_later(self, now: float) -> None:
        """Forget that there were times behind `now`."""
        ...

    def settle(self, *, anew: bool) -> None:
        """Take the alarm down and gather evidence from nothing; `anew` learns what is ordinary once more."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Everything it remembers, as JSON values."""
        ...

    def load(self, kept: Mapping[str, Any]) -> None:
        """Continue from what `to_dict` gave.

        Raises:
            KeyError: Something is missing.
            TypeError: Something does not belong.
            ValueError: The same.
        """
        ...


class ReferenceStream:
    """Scores against a reference of their own."""

    def __init__(self, scheme: ReferenceScheme) -> None:
        self._scheme = scheme
        self._watch: Watch[Score] = begin(scheme)

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that stands."""
        return self._watch.alarm

    @property
    def evidence(self) -> float | None:
        """Evidence now; None while learning."""
        return self._watch.evidence

    @property
    def threshold(self) -> float | None:
        """Evidence that is an alarm."""
        return None if self._watch.detector is None else self._watch.detector.threshold

    @property
    def baseline(self) -> float | None:
        """The mean it is watched against; None while learning."""
        return None if self._watch.detector is None else self._scheme.baseline(self._watch.reference)

    def take(self, seq: int, at: float, score: Score, *, control: bool) -> None:
        """One more score. There is no control."""
        del control
        self._watch = step(self._scheme, self._watch, seq, at, score)

    def no_later(self, now: float) -> None:
        """The clock was ahead."""
        self._watch = cap_time(self._watch, now)

    def settle(self, *, anew: bool) -> None:
        """Start over, against the same reference or (`anew`) another one."""
        self._watch = renew(self._scheme, self._watch) if anew else acknowledge(self._watch)

    def to_dict(self) -> dict[str, Any]:
        """The watch."""
        return to_dict(self._watch)

    def load(self, kept: Mapping[str, Any]) -> None:
        """Continue."""
        self._watch = from_dict(self._scheme, kept)


class ControlStream:
    """Scores beside those of a control that runs at the same time."""

    def __init__(self, scheme: ControlScheme) -> None:
        self._scheme = scheme
        self._watch: Watch[ScorePair] = begin(scheme)
        self._queue = ScoreQueue()

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that stands."""
        return self._watch.alarm

    @property
    def evidence(self) -> float | None:
        """Evidence now."""
        return self._watch.evidence

    @property
    def threshold(self) -> float | None:
        """Evidence that is an alarm."""
        return None if self._watch.detector is None else self._watch.detector.threshold

    @property
    def baseline(self) -> float | None:
        """None: the control is the measure, and it moves."""
        return None

    def take(self, seq: int, at: float, score: Score, *, control: bool) -> None:
        """One more score of either side."""
        self._queue, found = pair(self._queue, score, control=control)
        self._watch = step(self._scheme, self._watch, seq, at, found)

    def no_later(self, now: float) -> None:
        """The clock was ahead."""
        self._watch = cap_time(self._watch, now)

    def settle(self, *, anew: bool) -> None:
        """Start over. There is nothing to learn anew."""
        del anew
        self._watch = acknowledge(self._watch)

    def to_dict(self) -> dict[str, Any]:
        """The watch, and what waits for the other side."""
        return {**to_dict(self._watch), "queue": queue_to_dict(self._queue)}

    def load(self, kept: Mapping[str, Any]) -> None:
        """Continue."""
        self._watch, self._queue = from_dict(self._scheme, kept), queue_from_dict(kept["queue"])
