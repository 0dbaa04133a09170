"""Replays past scores through the drift detectors."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from reprlib import repr as excerpt

import orjson

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.fields import epoch_seconds
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.sample import OTHER
from ragwatch.pipeline.drift.rules import Cell, DriftRules
from ragwatch.statistics.drift.detect import Alarm, Score
from ragwatch.terminal.given import read_text

DAY = 86400.0
_Row = tuple[int, int, Mapping[str, object]]
"""Number of its line, index and values."""
MIN_PROBABILITY = 1e-12
"""A weight is 1 / probability: below this, powers of it overflow. The configuration allows 1e-6 twice."""


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """Scores of one answer."""

    index: int  # its position in the file, from 0; in the store, in the order of judging
    at: float  # when it was given, in seconds since the epoch
    route: str  # value of the label `route`
    probability: float  # inclusion probability
    scores: Mapping[Quantity, float | None]  # by quantity; None where there is none


@dataclass(slots=True)
class DetectorTrace:
    """What one detector would have done."""

    cell: Cell  # quantity and route
    answers: list[ScoredAnswer] = field(default_factory=list)  # the answers with a score, in order of time
    # (time, evidence / threshold) after each score, once the detector has a baseline
    points: list[tuple[float, float]] = field(default_factory=list)
    alarms: list[tuple[ScoredAnswer, Alarm]] = field(default_factory=list)  # each with the answer that raised it
    baseline: float | None = None  # the last baseline mean; None where there is none
    threshold: float | None = None  # evidence at which an alarm is raised; None when the detector never had a baseline

    @property
    def name(self) -> str:
        """Quantity, and route unless it is `other`."""
        quantity, route = self.cell
        return quantity if route == OTHER else f"{quantity} on {route}"

    def days_watched(self, until: float) -> float:
        """Days from the first monitored score to an instant, or to the last score if that is earlier."""
        return max(0.0, min(until, self.points[-1][0]) - self.points[0][0]) / DAY if self.points else 0.0


def replay(rules: DriftRules, answers: Sequence[ScoredAnswer], acknowledged_after: float) -> list[DetectorTrace]:
    """Run each detector over past scores, in order of time.

    An alarm ends when its break is over, or after so many seconds; until then no other one is raised.
    """
    readers = rules.readers()
    traces: dict[Cell, DetectorTrace] = {cell: DetectorTrace(cell) for cell in rules.cells}
    streams = {cell: rules.stream(quantity_of(cell[0]), cell[1]) for cell in traces}
    for seq, answer in enumerate(answers):
        for cell, control in readers.get(answer.route, ()):
            value, stream, trace = answer.scores.get(quantity_of(cell[0])), streams[cell], traces[cell]
            if value is None:
                continue
            if stream.alarm is not None and (stream.mend or answer.at >= stream.alarm.at + acknowledged_after):
                stream.acknowledge()
            active, has_baseline = stream.alarm, stream.evidence is not None
            stream.take(seq, answer.at, Score(value, 1.0 / answer.probability), control=control)
            if active is None and stream.alarm is not None:
                trace.alarms.append((answer, stream.alarm))
            if not control:
                trace.answers.append(answer)
            if has_baseline and stream.evidence is not None and stream.threshold is not None:
                trace.points.append((answer.at, stream.evidence / stream.threshold))
            trace.threshold, trace.baseline = stream.threshold, stream.baseline
    return [trace for trace in traces.values() if trace.answers]


def read_answers(path: Path, quantities: Iterable[Quantity] = tuple(Quantity)) -> list[ScoredAnswer]:
    """Read the rows of a CSV file with a header, or of JSON objects, sorted by time.

    Columns: `at` (ISO 8601 or seconds), one for each quantity, and optionally `route` and `probability`. Others are
    ignored; scores may also be in an object `scores`, as in the output of `ragwatch judge`. A header without rows gives
    no answers.

    `ConfigError` names the first invalid row.
    """
    text = read_text(str(path), path, "utf-8-sig")
    wanted, is_json = tuple(dict.fromkeys(quantities)), text.lstrip().startswith("{")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a column that is ignored may hold whole answers
    table = csv.DictReader(StringIO("" if is_json else text, newline=""))
    answers = []
    try:
        columns = ((table.line_num, index, row) for index, row in enumerate(table))
        for number, index, row in _json_rows(text, path.name) if is_json else columns:
            try:
                answers.append(_answer(index, row, wanted))
            except (FormatError, ValueError) as error:
                raise ConfigError(f"{path.name} line {number}: {error}") from error
    except csv.Error as error:
        raise ConfigError(f"{path.name} line {table.line_num}: is not CSV: {error}") from error
    if not any(answer.scores for answer in answers) and not set(wanted).intersection(table.fieldnames or ()):
        raise ConfigError(f"{path.name}: no column is a quantity; name one of: {', '.join(wanted)}")
    return sorted(answers, key=lambda answer: answer.at)


def _json_rows(text: str, name: str) -> Iterator[_Row]:
    lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    for index, (number, line) in enumerate(lines):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"{name} line {number}: is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise ConfigError(f"{name} line {number}: is not an object with `at` and scores")
        scores = row.get("scores")
        yield number, index, {**row, **scores} if isinstance(scores, dict) else row


def _answer(index: int, row: Mapping[str, object], quantities: Iterable[Quantity]) -> ScoredAnswer:
    if row.get("at") in (None, ""):
        raise FormatError("missing_field", "at", "is missing; add the time of the answer")
    scores = {quantity: _ratio(row[quantity], quantity) for quantity in quantities if quantity in row}
    probability = _ratio(row.get("probability"), "probability")
    if probability is not None and probability < MIN_PROBABILITY:
        raise ValueError(f"probability: must be at least {MIN_PROBABILITY:g}")
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
    raise ValueError(f"{name}: must be a number from 0 to 1, or empty, not {excerpt(value)}")


def lowest_probabilities(answers: Iterable[ScoredAnswer]) -> dict[str, float]:
    """Lowest inclusion probability of an answer, by route."""
    lowest: dict[str, float] = {}
    for answer in answers:
        lowest[answer.route] = min(answer.probability, lowest.get(answer.route, 1.0))
    return lowest
