"""What a month recorded, as JSON between the play and the page. Times are in days of the month."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Points = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Happened:
    """A change of the story, as it was played.

    Attributes:
        number: Its place in the story.
        begin: When it began.
        end: When it was mended; the begin of a deploy that breaks nothing.
        answered: Times of the answers of its route from its begin on, until a day after its end.
    """

    number: int
    begin: float
    end: float
    answered: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """An alert that somebody was notified of.

    Attributes:
        receiver: Who: `oncall` or `morning`.
        alert: Its name.
        route: Its route; empty for none.
        what: Quantity or signal; empty where the alert is about a whole route.
        heard: When the notification came.
        ended: When it ended; None if it still fired.
        summary: Its summary.
        stage: The stage that it named; empty for none.
    """

    receiver: str
    alert: str
    route: str
    what: str
    heard: float
    ended: float | None
    summary: str
    stage: str


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a route.

    Attributes:
        level: Faithfulness in people's terms: day, level, low, high.
        faithfulness: The same, as the judge reads it: day, mean, low, high.
        precision: Context precision, as the judge reads it, likewise.
        alarms: Alarms of detectors by quantity or signal: begin, end, change of the figure at its most.
    """

    level: Points
    faithfulness: Points
    precision: Points
    alarms: Mapping[str, Points]


@dataclass(frozen=True, slots=True)
class Record:
    """A whole month.

    Attributes:
        seed: Of the answers.
        days: How long it was.
        hour: Seconds of its hours.
        made: Date of the run.
        version: Of ragwatch.
        prometheus: Version of Prometheus.
        answers: Answers of each route.
        slowest: Most answers that waited for the judge at once.
        missed: Share of the scrapes that failed.
        happened: What was played.
        notices: Who was notified, in order.
        courses: By route.
    """

    seed: int
    days: float
    hour: float
    made: str
    version: str
    prometheus: str
    answers: Mapping[str, int]
    slowest: float
    missed: float
    happened: Sequence[Happened]
    notices: Sequence[Notice]
    courses: Mapping[str, Course] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Keep it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)))


def read(path: Path) -> Record:
    """A record that was kept."""
    kept: dict[str, Any] = json.loads(path.read_text())
    kept["happened"] = [Happened(**one) for one in kept["happened"]]
    kept["notices"] = [Notice(**one) for one in kept["notices"]]
    kept["courses"] = {route: Course(**one) for route, one in kept["courses"].items()}
    return Record(**kept)
