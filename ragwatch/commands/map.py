"""`ragwatch map`: guess a log's format and print the mapping."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import click

from ragwatch.commands.record_files import records
from ragwatch.commands.rejects import Rejects
from ragwatch.commands.terminal import naming, plain
from ragwatch.core.sample import Sample
from ragwatch.errors import FormatError
from ragwatch.formats import CUSTOM, FORMATS, RecordReader
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.guess import FormatGuess, guess
from ragwatch.formats.record import parse, parse_behind_text
from ragwatch.sources.tail.framing import Framing, detect, frame_of

RECORDS = 200
ROUTES_SHOWN = 20
_APART = "# no answer is proposed: log an answer and its contexts in one record, then map again"
_NOTHING = "# no field looks like a question, contexts or an answer: write a mapping by hand"


class _FormatTrial(NamedTuple):
    """What a reader makes of the records: samples, and what is wrong with the others."""

    samples: list[Sample]
    rejects: Rejects


@dataclass(slots=True)
class _LogHead:
    """The first records of a log, each with its line's number.

    Attributes:
        records: Number and record.
        rejects: Lines that hold no JSON object.
        prefixed: Records before which text stands in their line.
    """

    records: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    rejects: Rejects = field(default_factory=Rejects)
    prefixed: int = 0

    def tried(self, reader: RecordReader) -> _FormatTrial:
        """Read every record."""
        found = _FormatTrial([], Rejects())
        for number, record in self.records:
            try:
                found.samples.append(reader.read(record, str(number)))
            except FormatError as error:
                found.rejects.add(number, error)
        return found


def map_log(file: BinaryIO) -> int:
    """Guess the format of FILE (JSONL, gzip too; `-` is standard input) and print it as keys of a source."""
    name = getattr(file, "name", "<stdin>")
    with naming(name):
        log = _read(file)
    _tell(log.rejects.lines(name))
    if not log.records:
        click.echo(f"{plain(name)}: holds no JSON object; ragwatch reads one JSON object a line", err=True)
        return 1
    found = guess([record for _, record in log.records])
    if found.format is None:
        _tell(f"{name}: {error}" for error in found.errors)
        click.echo(_APART if found.apart else _NOTHING)
        return 1
    trial = log.tried(MappingReader(found.mapping) if found.format == CUSTOM else FORMATS[found.format])
    _tell(trial.rejects.lines(name))
    click.echo("\n".join(_yaml(found, log, trial)))
    return 0 if found.certain and trial.samples else 1


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(plain(line), err=True)


def _read(file: BinaryIO) -> _LogHead:
    log = _LogHead()
    framing: Framing | None = None
    for number, line in records(file):
        if len(log.records) == RECORDS:
            break
        try:
            if isinstance(line, FormatError):
                raise line
            framing = framing or detect(line + b"\n") or "plain"
            _take(log, number, _unframed(line, framing))
        except FormatError as error:
            log.rejects.add(number, error)
    return log


def _unframed(line: bytes, framing: Framing) -> bytes:
    """A line without what a container runtime wraps around it: `framing: auto` takes that off."""
    frame = None if framing == "plain" else frame_of(line, framing)
    return line if frame is None else frame.text


def _take(log: _LogHead, number: int, line: bytes) -> None:
    try:
        log.records.append((number, parse(line)[0]))
    except FormatError:
        if line.lstrip().startswith(b"{"):
            raise
        log.records.append((number, parse_behind_text(line)[0]))
        log.prefixed += 1


def _yaml(found: FormatGuess, log: _LogHead, trial: _FormatTrial) -> list[str]:
    """Lines of YAML for a source; JSON strings are YAML strings, and quote what must be quoted."""
    share = f"reads {len(trial.samples)} of {len(log.records)} records ({len(trial.samples) / len(log.records):.0%})"
    lines = [f"# {share}", f"format: {found.format}"]
    if log.prefixed:
        lines.insert(1, f"# text stands before the JSON in {log.prefixed} lines, which skip_prefix passes over")
        lines.append("skip_prefix: true")
    if found.format == CUSTOM:
        lines[0] += "; a guess from the names of the fields: complete it, then try `ragwatch check`"
        lines += ["mapping:", *_mapping(found.mapping, "  ")]
    elif len(log.tried(MappingReader(found.mapping)).samples) == len(trial.samples):
        lines += ["# the same as a mapping is:", "# mapping:", *_mapping(found.mapping, "#   ")]
    routes = sorted({sample.route for sample in trial.samples if sample.route})
    if routes:
        lines.append(f"# routes to be listed at the top of the configuration: {_listed(routes)}")
    return lines


def _mapping(mapping: Mapping[str, str], indent: str) -> list[str]:
    return [f"{indent}{key}: {json.dumps(expression)}" for key, expression in mapping.items()]


def _listed(routes: Sequence[str]) -> str:
    """Routes as a YAML list in one line; of very many, the first."""
    more = f" and {len(routes) - ROUTES_SHOWN} more" if len(routes) > ROUTES_SHOWN else ""
    return json.dumps(routes[:ROUTES_SHOWN], ensure_ascii=False) + more
