"""Reads the first records of a log of unknown shape, shows how they are read, and lists their routes."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple

import orjson

from ragwatch.config.model import Settings
from ragwatch.errors import FormatError
from ragwatch.formats import CUSTOM
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.guessing.guess import guess
from ragwatch.formats.guessing.suspicion import example
from ragwatch.formats.record import Parse, Record, RecordReader, parse
from ragwatch.formats.selection import line_parser, record_finder
from ragwatch.model.sample import OTHER, Sample, SkipReason
from ragwatch.offline.input_files import Rejects, records
from ragwatch.sources.tail.lines import Framing, detect, frame_of
from ragwatch.terminal.output import moment, printable

MAX_RECORDS, MAX_BEGIN = 500, 1000
_MIN_SHARE = 0.5  # of the records in lists that have to be readable
_MAX_DEPTH = 3
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class FormatTrial(NamedTuple):
    """Result of reading the records with one reader."""

    samples: list[Sample]  # the samples
    answers: list[Mapping[str, object]]  # the records that they were read from
    others: list[tuple[int, Mapping[str, object], FormatError]]  # number, record and error of the others


@dataclass(slots=True)
class LogHead:
    """The first records of a log."""

    records: list[tuple[int, dict[str, object]]] = field(default_factory=list)  # line number and record
    rejects: Rejects = field(default_factory=Rejects)  # lines with a torn object
    texts: Rejects = field(default_factory=Rejects)  # line numbers and errors of lines without a JSON object
    prefixed: int = 0  # number of records with text before the JSON object in their line
    begin: str = ""  # of the first line
    several: str | None = None  # expression of the records in lines that hold several; None where a line is one

    @property
    def bare(self) -> Sequence[Mapping[str, object]]:
        """The records without their line numbers."""
        return [record for _, record in self.records]

    def read_with(self, reader: RecordReader) -> FormatTrial:
        """Read every record with a reader."""
        trial = FormatTrial([], [], [])
        for place, (number, record) in enumerate(self.records):
            try:
                trial.samples.append(reader.read(record, f"{number}" if self.several is None else f"{number}.{place}"))
            except FormatError as error:
                trial.others.append((number, record, error))
            else:
                trial.answers.append(record)
        return trial


def read_head(file: BinaryIO) -> LogHead:
    """Read the first records of a file; text before the JSON object of a line, and framing, are removed."""
    log = LogHead()
    framing: Framing | None = None
    after_prefix = line_parser(prefix="auto")
    for number, line in records(file):
        if len(log.records) == MAX_RECORDS:
            break
        try:
            if isinstance(line, FormatError):
                raise line
            log.begin = log.begin or line[:MAX_BEGIN].decode("utf-8", "replace")
            framing = framing or detect(line + b"\n") or "plain"
            frame = None if framing == "plain" else frame_of(line, framing)  # as `framing: auto` does
            _add(log, number, line if frame is None else frame.text, after_prefix)
        except FormatError as error:
            log.rejects.add(number, error)
    return _unpacked(log)


def _unpacked(log: LogHead) -> LogHead:
    """The records in lines that hold several of them in a list, if only these can be read."""
    if not log.records or _reads(log.bare):
        return log
    for path in _list_paths(log.records[0][1]):
        expand = record_finder(path)
        rows = [(number, row) for number, line in log.records for row in expand(line) if isinstance(row, dict)]
        if rows and _reads([row for _, row in rows[:MAX_RECORDS]]):
            return replace(log, records=rows[:MAX_RECORDS], several=path)
    return log


def _reads(records: Sequence[Mapping[str, object]]) -> bool:
    """Whether records are answers: they have a question, contexts and an answer outside of any list."""
    best = guess(records)
    parts = (best.mapping.get(key, "[") for key in ("question", "answer"))
    return best.share >= _MIN_SHARE and (
        best.format != CUSTOM or not any("[0]" in part or part == "[" for part in parts)
    )


def _list_paths(record: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Paths of lists of objects, in a record and in the objects in it."""
    for key, value in record.items():
        path = f"{prefix}{key}" if _NAME.fullmatch(key) else f'{prefix}"{key}"'
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from (f"{path}[?starts_with({key}, '{{')].from_json({key})" for key in _wrappers(value))
            yield path
            yield f"answers({path})"
        elif isinstance(value, dict) and prefix.count(".") < _MAX_DEPTH:
            yield from _list_paths(value, f"{path}.")


def _wrappers(items: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Keys of objects in a list under which some, not all, hold JSON, such as `message` of an export of CloudWatch."""
    for key in items[0]:
        texts = [item.get(key) if isinstance(item, dict) else None for item in items]
        are_texts = _NAME.fullmatch(key) and all(isinstance(text, str) for text in texts)
        if are_texts and len({str(text).startswith('{"') for text in texts}) > 1:
            yield key


def _add(log: LogHead, number: int, line: bytes, after_prefix: Parse) -> None:
    try:
        record = parse(line)[0]
        if not is_feedback(record):  # no answer, but what a user says of one
            log.records.append((number, record))
    except FormatError as error:
        if line.lstrip().startswith(b"{"):
            raise
        parsed = after_prefix(line)
        if isinstance(parsed, SkipReason):
            log.texts.add(number, error)
            return
        log.records.append((number, parsed[0]))
        log.prefixed += 1


MAX_SHOWN = 3
_MAX_RECORD_CHARS = 160


def as_read(record: Record, sample: Sample) -> Iterator[str]:
    """Yield lines that show a record and the sample that was read from it."""
    text = orjson.dumps(record, default=str).decode("utf-8", "replace")
    yield "record: " + printable(text if len(text) <= _MAX_RECORD_CHARS else f"{text[:_MAX_RECORD_CHARS]}...")
    yield "  question: " + ("not read" if sample.question is None else printable(example(sample.question)))
    passages = ", ".join(printable(example(context.text)) for context in sample.contexts[:MAX_SHOWN])
    yield f"  contexts: {len(sample.contexts)}" + (f": {passages}" if passages else "")
    yield f"  answer: {printable(example(sample.answer))}"
    known = {"id": sample.id, "at": None if sample.at is None else moment(sample.at), "route": sample.route}
    yield "  " + ", ".join(f"{name}: {printable(str(value))}" for name, value in known.items() if value)


MAX_ROUTES = 20
MAX_NAME_CHARS = 40


class LogRoutes(NamedTuple):
    """The routes of a log."""

    listed: Sequence[str]  # routes to list, at most `MAX_ROUTES`
    more: Sequence[str]  # routes that could be listed too
    refused: Sequence[str]  # routes that a configuration refuses


def log_routes(samples: Iterable[Sample]) -> LogRoutes:
    """Return the routes of some samples, sorted."""
    routes = sorted({sample.route for sample in samples if sample.route})
    valid = [route for route in routes if _is_valid(route)]
    return LogRoutes(valid[:MAX_ROUTES], valid[MAX_ROUTES:], [route for route in routes if route not in valid])


def _is_valid(route: str) -> bool:
    try:
        Settings.model_validate({"routes": [route]})
    except ValueError:
        return False
    return True


def refused_lines(routes: LogRoutes) -> Iterator[str]:
    """Comments of YAML that name the routes which a configuration refuses; none if there are none."""
    if routes.refused:
        yield f'# Not listed, so that they count as "{OTHER}": {names_of(routes.refused)}.'
        yield "# A route that is listed has 1 to 128 of the characters A-Z a-z 0-9 _ . / : { } ~ -"


def names_of(routes: Sequence[str]) -> str:
    r"""The first routes in one line, quoted and shortened.

    >>> names_of(["my route", "a" + chr(10) + "b"])
    '"my route", "a\\nb"'
    """
    shown = [f"{route[:MAX_NAME_CHARS]}..." if len(route) > MAX_NAME_CHARS else route for route in routes[:MAX_ROUTES]]
    more = f" and {len(routes) - MAX_ROUTES} more" if len(routes) > MAX_ROUTES else ""
    return ", ".join(printable(json.dumps(route, ensure_ascii=False)) for route in shown) + more
