"""What a month recorded, as JSON between the play and the page. Times are in days of the month."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Points = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Happened:
    """A change of the story, as it was played."""

    number: int  # its place in the story
    begin: float  # when it began
    end: float  # when it was mended; the begin of a deploy that breaks nothing
    answered: Sequence[float] = ()  # times of the answers of its route from its begin on, until a day after its end


@dataclass(frozen=True, slots=True)
class Notice:
    """An alert that somebody was notified of."""

    receiver: str  # who: `oncall` or `morning`
    alert: str  # its name
    route: str  # its route; empty for none
    what: str  # quantity or signal; empty where the alert is about a whole route
    heard: float  # when the notification came
    ended: float | None  # when it ended; None if it still fired
    summary: str  # its summary
    stage: str  # the stage that it named; empty for none


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a route."""

    level: Points  # faithfulness in people's terms: day, level, low, high
    faithfulness: Points  # the same, as the judge reads it: day, mean, low, high
    precision: Points  # context precision, as the judge reads it, likewise
    # alarms of detectors by quantity or signal: begin, end, change of the figure at its most
    alarms: Mapping[str, Points]


@dataclass(frozen=True, slots=True)
class Record:
    """A whole month."""

    seed: int  # of the answers
    days: float  # how long it was
    hour: float  # seconds of its hours
    made: str  # date of the run
    version: str  # of ragwatch
    prometheus: str  # version of Prometheus
    answers: Mapping[str, int]  # answers of each route
    slowest: float  # most answers that waited for the judge at once
    missed: float  # share of the scrapes that failed
    happened: Sequence[Happened]  # what was played
    notices: Sequence[Notice]  # who was notified, in order
    courses: Mapping[str, Course] = field(default_factory=dict)  # by route

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
