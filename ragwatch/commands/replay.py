"""Replay: scores of the past through the detectors of today."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ragwatch.core.drift.detect import Alarm, Score
from ragwatch.core.sample import OTHER
from ragwatch.core.scores import Quantity
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.times import epoch_seconds
from ragwatch.pipeline.drift.rules import Cell, DriftRules

DAY = 86400.0
LEAST_PROBABILITY = 1e-12
"""A weight is 1 / probability: below this its powers leave all arithmetic. The configuration allows 1e-6 twice."""


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """Scores of one answer.

    Attributes:
        index: Its place in the file, from 0; in the store, in the order of judging.
        at: When it was given, in seconds since the epoch.
        route: Value of the label `route`.
        probability: With which it was drawn.
        scores: By quantity; None where there is none.
    """

    index: int
    at: float
    route: str
    probability: float
    scores: Mapping[Quantity, float | None]


@dataclass(slots=True)
class DetectorTrace:
    """What one detector would have done.

    Attributes:
        cell: Quantity and route.
        lines: The lines with a score, in order of time.
        points: (time, evidence / threshold) after each score, once it watched.
        alarms: Each with the line that raised it.
        baseline: Mean watched against in the end; None where there is none.
        threshold: Evidence that is an alarm; None when it never watched.
    """

    cell: Cell
    lines: list[ScoredAnswer] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)
    alarms: list[tuple[ScoredAnswer, Alarm]] = field(default_factory=list)
    baseline: float | None = None
    threshold: float | None = None

    @property
    def name(self) -> str:
        """Quantity, and route where one is named."""
        quantity, route = self.cell
        return quantity if route == OTHER else f"{quantity} on {route}"

    def days_watched(self, until: float) -> float:
        """Days from the first score it watched to an instant, or to the last score if that is earlier."""
        return max(0.0, min(until, self.points[-1][0]) - self.points[0][0]) / DAY if self.points else 0.0


def replay(rules: DriftRules, lines: Sequence[ScoredAnswer], acknowledged_after: float) -> list[DetectorTrace]:
    """What each detector would have done, had somebody acknowledged each alarm so many seconds later.

    Args:
        rules: What to watch.
        lines: In order of time.
        acknowledged_after: Seconds; until then an alarm stands, and no other is raised.
    """
    readers = rules.readers()
    traces: dict[Cell, DetectorTrace] = {cell: DetectorTrace(cell) for cell in rules.cells}
    streams = {cell: rules.stream(Quantity(cell[0]), cell[1]) for cell in traces}
    for seq, line in enumerate(lines):
        for cell, control in readers.get(line.route, ()):
            value, stream, trace = line.scores.get(Quantity(cell[0])), streams[cell], traces[cell]
            if value is None:
                continue
            if stream.alarm is not None and line.at >= stream.alarm.at + acknowledged_after:
                stream.acknowledge()
            stood, watches = stream.alarm, stream.evidence is not None
            stream.take(seq, line.at, Score(value, 1.0 / line.probability), control=control)
            if stood is None and stream.alarm is not None:
                trace.alarms.append((line, stream.alarm))
            if not control:
                trace.lines.append(line)
            if watches and stream.evidence is not None and stream.threshold is not None:
                trace.points.append((line.at, stream.evidence / stream.threshold))
            trace.threshold, trace.baseline = stream.threshold, stream.baseline
    return [trace for trace in traces.values() if trace.lines]


def read_lines(path: Path) -> list[ScoredAnswer]:
    """The lines of a CSV file with a header, or of JSON objects, in order of time.

    Columns: `at` (ISO 8601 or seconds), one for each quantity, and, where wanted, `route` and `probability`. Others
    are passed over; scores may also stand in an object `scores`, as in the lines of `ragwatch judge`.

    Raises:
        ConfigError: It cannot be read, or the first line that is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    rows = _json_rows(text) if text.lstrip().startswith("{") else _csv_rows(text)
    found = []
    for number, index, row in rows:
        try:
            found.append(_line(index, row))
        except (FormatError, ValueError) as error:
            raise ConfigError(f"{path.name} line {number}: {error}") from error
    if not any(line.scores for line in found):
        raise ConfigError(f"{path.name}: no column is a quantity; name one of: {', '.join(Quantity)}")
    return sorted(found, key=lambda line: line.at)


def _json_rows(text: str) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    filled = ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
    for index, (number, line) in enumerate(filled):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"line {number}: is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise ConfigError(f"line {number}: is not an object with `at` and scores")
        inner = row.get("scores")
        yield number, index, {**row, **inner} if isinstance(inner, dict) else row


def _csv_rows(text: str) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    reader = csv.DictReader(text.splitlines())
    for index, row in enumerate(reader):
        yield reader.line_num, index, row


def _line(index: int, row: Mapping[str, Any]) -> ScoredAnswer:
    if row.get("at") in (None, ""):
        raise FormatError("missing_field", "at", "is missing; when was it answered?")
    scores = {each: _ratio(row[each], each) for each in Quantity if each in row}
    probability = _ratio(row.get("probability"), "probability")
    if probability is not None and probability < LEAST_PROBABILITY:
        raise ValueError(f"probability: must be above 0, and {LEAST_PROBABILITY:g} at least")
    route = row.get("route")
    return ScoredAnswer(
        index,
        epoch_seconds(row["at"], "at"),
        str(route) if route else OTHER,
        1.0 if probability is None else probability,
        scores,
    )


def _ratio(value: object, name: str) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if 0.0 <= number <= 1.0:
            return number
    raise ValueError(f"{name}: must be a number from 0 to 1, or empty, not {value!r}")


def routes_of(lines: Iterable[ScoredAnswer]) -> tuple[str, ...]:
    """All routes, in order of appearance."""
    return tuple(dict.fromkeys(line.route for line in lines))


def lowest_of(lines: Iterable[ScoredAnswer]) -> dict[str, float]:
    """Lowest probability with which a line was drawn, by route."""
    found: dict[str, float] = {}
    for line in lines:
        found[line.route] = min(line.probability, found.get(line.route, 1.0))
    return found
