"""`ragwatch estimate`: means of a judge's scores, and levels: what they mean in people's terms."""

import json
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

import click
import orjson
from rich.console import Console
from rich.table import Column, Table

from ragwatch.errors import ConfigError, FormatError
from ragwatch.judges.error_rates import rates
from ragwatch.model.estimate import Addends, Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.offline.input_files import records
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS, Level
from ragwatch.statistics.quantity_level import KnownError, PersonsLabel, ScoredAnswer
from ragwatch.terminal.options.offline import EstimateArguments
from ragwatch.terminal.output import file_name_in_errors, say

NOT_ENOUGH_DATA = 3
MIN_PROBABILITY = 1e-6


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The scores of one answer, by quantity (None where unknown); its language, if the judge was not measured there."""

    scores: Mapping[Quantity, float | None]
    probability: float
    language: str | None = None


@dataclass(slots=True)
class Verdicts:
    """The verdicts of one version of a judge, by id of the answer."""

    kind: str = ""
    version: str = ""
    answers: dict[str, JudgedAnswer] = field(default_factory=dict)


def estimate(given: EstimateArguments) -> int:
    """Print the mean of each quantity and its level."""
    verdicts = _read_verdicts(given.files or (sys.stdin.buffer,))
    if not verdicts.answers:
        raise ConfigError("no verdict was read; give what `ragwatch judge` prints")
    people = {} if given.labels is None else read_labels(given.labels)
    warn_of_unmatched_labels(given.labels, people, verdicts.answers)
    error = known_error(verdicts.kind, verdicts.version, people)
    rows = [row for quantity in Quantity if (row := _row(quantity, verdicts, error)) is not None]
    if given.as_json:
        click.echo(json.dumps({str(quantity): _as_json(mean, share) for quantity, mean, share in rows}))
    else:
        _show(rows, verdicts)
    return 0 if rows else NOT_ENOUGH_DATA


def warn_of_unmatched_labels(path: Path | None, labels: Iterable[str], answers: Container[str]) -> None:
    """Say on stderr how many labels are of answers without a verdict."""
    unknown = [key for key in labels if key not in answers]
    if unknown:
        text = f"{path}: {len(unknown)} labels of answers without a verdict, such as {unknown[0]}"
        say(text)


Row = tuple[Quantity, Estimate, Level | None]


def _row(quantity: Quantity, verdicts: Verdicts, error: KnownError) -> Row | None:
    """The mean and the level of one quantity; None if no answer has a score."""
    scored = [
        ScoredAnswer(key, score, one.probability, one.language)
        for key, one in verdicts.answers.items()
        if (score := one.scores.get(quantity)) is not None
    ]
    mean = hajek.estimate(Addends.of((one.score, one.probability) for one in scored))
    counts = error.counts(quantity, scored)
    return None if mean is None else (quantity, mean, None if counts is None else counts.level())


def known_error(kind: str, version: str, labels: Mapping[str, PersonsLabel]) -> KnownError:
    """What is known about the error of this judge: its rates on labelled families, and these labels."""
    return KnownError(rates(kind, version), labels)


def _as_json(mean: Estimate, share: Level | None) -> dict[str, object]:
    level_line = None if share is None else {**asdict(share), "calibrated": share.calibrated}
    return {"mean": mean.value, "low": mean.low, "high": mean.high, "n": mean.n, "level": level_line}


def _show(rows: Iterable[Row], verdicts: Verdicts) -> None:
    table = Table(
        Column("quantity", no_wrap=True),
        "level",
        "labels",
        "mean of the judge",
        "answers",
        title=f"{len(verdicts.answers)} answers, {verdicts.version}",
    )
    languages = sorted({one.language for one in verdicts.answers.values() if one.language is not None})
    no_level = f"unknown: not measured in {', '.join(languages)}" if languages else "unknown"
    for quantity, mean, share in rows:
        text, labels = no_level, "0"
        if share is not None:
            text = f"{share.value:.3f}, between {share.low:.3f} and {share.high:.3f}"
            labels = f"{share.labels}" if share.calibrated else f"{share.labels} of {CALIBRATED_LABELS}, not calibrated"
        table.add_row(str(quantity), text, labels, f"{mean.value:.3f} ({mean.low:.3f} .. {mean.high:.3f})", str(mean.n))
    Console().print(table)


def _read_verdicts(files: Sequence[BinaryIO]) -> Verdicts:
    """Read lines of `ragwatch judge`; `ConfigError` names the first that is none, or that is of another judge."""
    verdicts = Verdicts()
    for place, line in _objects(files):
        judge, scores = line.get("judge"), line.get("scores")
        if not isinstance(judge, dict) or not isinstance(scores, dict):
            raise ConfigError(f"{place}: is no verdict; give what `ragwatch judge` prints")
        version = str(judge.get("version"))
        if verdicts.version not in ("", version):
            raise ConfigError(
                f"{place}: judge.version: is {version}, before {verdicts.version}; give one judge at a time"
            )
        verdicts.kind, verdicts.version = str(judge.get("kind")), version
        verdicts.answers[_text(line, "id", place)] = JudgedAnswer(
            _scores(scores, place),
            _probability(line, place),
            None if line.get("language") is None else str(line["language"]),
        )
    return verdicts


def read_labels(path: Path) -> dict[str, PersonsLabel]:
    """Read labels by id of the answer; of several for one the last counts."""
    labels = {}
    try:
        with path.open("rb") as stream:
            for place, line in _objects([stream]):
                if "key" in line and "id" not in line:
                    raise ConfigError(f"{place}: is of `ragwatch label --export`, without the id of the answer; add it")
                given = line.get("scores")  # as an export has them, else in the line
                scores = _scores(given if isinstance(given, dict) else line, place)
                labels[_text(line, "id", place)] = PersonsLabel(scores, _probability(line, place))
    except OSError as error:
        raise ConfigError(f"--labels {path}: cannot be read: {error.strerror}") from error
    return labels


def _objects(files: Iterable[BinaryIO]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each line of the files as an object, and where it stands."""
    for stream in files:
        name = str(getattr(stream, "name", "-"))
        with file_name_in_errors(name):
            for number, text in records(stream):
                yield f"{name} line {number}", _object(text, f"{name} line {number}")


def _object(text: bytes | FormatError, place: str) -> Mapping[str, object]:
    if isinstance(text, FormatError):
        raise ConfigError(f"{place}: {text}")
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{place}: is not JSON: {error}") from error
    if not isinstance(line, dict):
        raise ConfigError(f"{place}: is not a JSON object")
    return line


def _scores(line: Mapping[str, object], place: str) -> dict[Quantity, float | None]:
    return {quantity: _ratio(line, str(quantity), place) for quantity in Quantity if str(quantity) in line}


def _ratio(line: Mapping[str, object], name: str, place: str) -> float | None:
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ConfigError(f"{place}: {name}: must be a number from 0 to 1, or null")
    return float(value)


def _probability(line: Mapping[str, object], place: str) -> float:
    value = _ratio(line, "probability", place)
    if value is not None and value < MIN_PROBABILITY:
        raise ConfigError(f"{place}: probability: must be at least {MIN_PROBABILITY:g}")
    return 1.0 if value is None else value


def _text(line: Mapping[str, object], name: str, place: str) -> str:
    value = line.get(name)
    if not isinstance(value, str):
        raise ConfigError(f"{place}: {name}: {'must be a text' if name in line else 'is missing; add it'}")
    return value
