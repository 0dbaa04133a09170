"""`ragwatch map`: guesses the format of a log and prints it as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import click

from ragwatch.commands.record_files import Rejects, records
from ragwatch.commands.terminal import file_name_in_errors, printable
from ragwatch.core.sample import Sample
from ragwatch.errors import FormatError
from ragwatch.formats import CUSTOM, FORMATS, RecordReader
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.feedback import FEEDBACK_FOR
from ragwatch.formats.guess import FormatGuess, guess
from ragwatch.formats.record import parse, parse_after_prefix
from ragwatch.sources.tail.framing import Framing, detect, frame_of

MAX_RECORDS = 200
MAX_ROUTES_SHOWN = 20
_SEPARATE = "# no answer is proposed: log an answer and its contexts in one record, then map again"
_NOTHING = "# no field looks like a question, contexts or an answer: write a mapping by hand"


class _FormatTrial(NamedTuple):
    """Result of reading the records with one reader: samples, and rejects."""

    samples: list[Sample]
    rejects: Rejects


@dataclass(slots=True)
class _LogHead:
    """The first records of a log.

    Attributes:
        records: Line number and record.
        rejects: Lines without a JSON object.
        prefixed: Number of records with text before the JSON object in their line.
    """

    records: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    rejects: Rejects = field(default_factory=Rejects)
    prefixed: int = 0

    def read_with(self, reader: RecordReader) -> _FormatTrial:
        """Read every record with a reader."""
        trial = _FormatTrial([], Rejects())
        for number, record in self.records:
            try:
                trial.samples.append(reader.read(record, str(number)))
            except FormatError as error:
                trial.rejects.add(number, error)
        return trial


def map_log(file: BinaryIO) -> int:
    """Guess the format of FILE (JSONL, gzip too; `-` is standard input) and print it as keys of a source."""
    name = getattr(file, "name", "<stdin>")
    with file_name_in_errors(name):
        log = _read(file)
    _print_errors(log.rejects.lines(name))
    if not log.records:
        click.echo(f"{printable(name)}: has no JSON object; ragwatch reads one JSON object per line", err=True)
        return 1
    proposal = guess([record for _, record in log.records])
    if proposal.format is None:
        _print_errors(f"{name}: {error}" for error in proposal.errors)
        click.echo(_SEPARATE if proposal.apart else _NOTHING)
        return 1
    reader = MappingReader(proposal.mapping) if proposal.format == CUSTOM else FORMATS[proposal.format]
    trial = log.read_with(reader)
    _print_errors(trial.rejects.lines(name))
    click.echo("\n".join(_yaml(proposal, log, trial)))
    return 0 if proposal.certain and trial.samples else 1


def _print_errors(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(printable(line), err=True)


def _read(file: BinaryIO) -> _LogHead:
    log = _LogHead()
    framing: Framing | None = None
    for number, line in records(file):
        if len(log.records) == MAX_RECORDS:
            break
        try:
            if isinstance(line, FormatError):
                raise line
            framing = framing or detect(line + b"\n") or "plain"
            _add(log, number, _remove_framing(line, framing))
        except FormatError as error:
            log.rejects.add(number, error)
    return log


def _remove_framing(line: bytes, framing: Framing) -> bytes:
    """Remove the framing of a container runtime from a line, as `framing: auto` does."""
    frame = None if framing == "plain" else frame_of(line, framing)
    return line if frame is None else frame.text


def _add(log: _LogHead, number: int, line: bytes) -> None:
    try:
        record = parse(line)[0]
        if FEEDBACK_FOR not in record:  # no answer, but what a user says of one
            log.records.append((number, record))
    except FormatError:
        if line.lstrip().startswith(b"{"):
            raise
        log.records.append((number, parse_after_prefix(line)[0]))
        log.prefixed += 1


def _yaml(proposal: FormatGuess, log: _LogHead, trial: _FormatTrial) -> list[str]:
    """Lines of YAML for a source. Strings are written as JSON strings, which are valid YAML."""
    share = f"reads {len(trial.samples)} of {len(log.records)} records ({len(trial.samples) / len(log.records):.0%})"
    lines = [f"# {share}", f"format: {proposal.format}"]
    if log.prefixed:
        lines.insert(1, f"# {log.prefixed} lines have text before the JSON, which skip_prefix skips")
        lines.append("skip_prefix: true")
    if proposal.format == CUSTOM:
        lines[0] += "; a guess from the names of the fields: complete it, then run `ragwatch check`"
        lines += ["mapping:", *_mapping(proposal.mapping, "  ")]
    elif len(log.read_with(MappingReader(proposal.mapping)).samples) == len(trial.samples):
        lines += ["# the same as a mapping:", "# mapping:", *_mapping(proposal.mapping, "#   ")]
    routes = sorted({sample.route for sample in trial.samples if sample.route})
    if routes:
        lines.append(f"# routes to list at the top level of the configuration: {_route_list(routes)}")
    return lines


def _mapping(mapping: Mapping[str, str], indent: str) -> list[str]:
    return [f"{indent}{key}: {json.dumps(expression)}" for key, expression in mapping.items()]


def _route_list(routes: Sequence[str]) -> str:
    """The first routes as a YAML list in one line."""
    more = f" and {len(routes) - MAX_ROUTES_SHOWN} more" if len(routes) > MAX_ROUTES_SHOWN else ""
    return json.dumps(routes[:MAX_ROUTES_SHOWN], ensure_ascii=False) + more
