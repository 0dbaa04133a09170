"""Selects how files from the command line are read: like the daemon would read them as the log of a source.

Format, mapping and the selection of records (`where`, `prefix`, `split`) are those of a source of the configuration:
the one named by `--source`, else the first one whose path matches the file, else the first one. Routes and redaction
are those of the configuration. Parts of requests are joined as a source of kind `join` does. A file is JSONL, one JSON
array, one object over many lines, or any of these in gzip.
"""

import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

import orjson

from ragwatch import formats
from ragwatch.config import Config
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import BYTE_ORDER_MARKS, Line, Parsed, as_utf8
from ragwatch.formats.selection import Expand, begins_document
from ragwatch.model.sample import OTHER, RejectReason, Sample, SkipReason
from ragwatch.ports.capabilities import HasLogFiles, record_rules
from ragwatch.sources.join import Options, joiner
from ragwatch.sources.join.joiner import JoinLimits

_UNLIMITED = JoinLimits(float("inf"), sys.maxsize, sys.maxsize)


class LineParser(NamedTuple):
    """How the records in the lines of a file are found and decoded."""

    parse: Callable[[Line], Parsed | None]  # decodes a record; None for a part that waits for others
    expand: Expand | None  # finds the records in a line that holds several; None where a line is one
    encoding: str | None = None  # encoding of the file; None for UTF-8
    rest: Callable[[], Sequence[Line]] = tuple  # the records that are complete because the file ends


class PartFiles:
    """Joins records over several files."""

    def __init__(self, options: Options) -> None:
        self._joiner = joiner(options, _UNLIMITED)
        self._logs = [inner for _, inner in options.inner().values() if isinstance(inner, HasLogFiles)]

    @property
    def waiting(self) -> int:
        """Number of parts without the others of their request."""
        return self._joiner.waiting.total()

    def parser(self, name: str) -> LineParser:
        """The function that takes the part in a line of a file, and returns the record that it completes.

        It returns None while parts are missing.
        """
        log = next((log for log in self._logs if matches(log, name)), self._logs[0])
        reader = LogReader(record_rules(log))

        def add(line: Line) -> Parsed | None:
            parsed = reader.parse(line)
            if isinstance(parsed, SkipReason) or is_feedback(parsed[0]):
                return parsed
            joined = self._joiner.add(log.name, parsed[0], 0.0, 0.0)
            return None if joined is None else (orjson.loads(joined), parsed[1])

        return LineParser(add, reader.expand, reader.encoding, self._rest)

    def _rest(self) -> list[bytes]:
        """What only silence completes, once the one file with all parts was read."""
        joined: list[bytes] = []
        while len(self._logs) == 1 and (some := self._joiner.expire(float("inf"))):
            joined += some
        return joined


def matches(log: HasLogFiles, name: str) -> bool:
    """Whether a file is one of a source."""
    path = str(Path(name).resolve())
    return any(fnmatch(path, str(Path(pattern).absolute())) for pattern in log.patterns)


class InputFiles:
    """Readers for files from the command line; `ConfigError` if there is no such source, or a mapping is missing.

    The options of a source of the configuration decide: the one that is named, else one chosen by path. A format that
    is named takes the place of the source's, or of `auto` without a configuration.
    """

    def __init__(self, config: Config | None = None, format_name: str | None = None, source: str | None = None) -> None:
        self._format, self._source = format_name, source
        sources = () if config is None else config.sources
        self._parts: dict[str, PartFiles] = {}
        self._logs = [source.options for source in sources if isinstance(source.options, HasLogFiles)]
        self._routes = None if config is None else frozenset(config.settings.routes)
        self._redactor = None if config is None else config.settings.redaction.redactor()
        if self._source is not None:
            names = [log.name for log in self._logs]
            if self._source not in names:
                advice = f"use one of: {', '.join(names)}" if names else "name the configuration with --config"
                raise ConfigError(f"--source {self._source}: is not a source of the configuration; {advice}")
        self.reader("-")

    def redact(self, sample: Sample) -> Sample:
        """Redact a sample as the configuration says."""
        return sample if self._redactor is None else self._redactor.redact_sample(sample)[0]

    def reader(self, name: str) -> LogReader:
        """The reader that converts the lines of a file to samples."""
        log = self._log(name)
        rules = RecordRules() if log is None else record_rules(log)
        if self._format is not None:
            mapping = rules.mapping if self._format == formats.CUSTOM else {}
            rules = replace(rules, format=self._format, mapping=mapping)
        return LogReader(rules)

    def parser(self, name: str) -> LineParser:
        """The functions that find the records in a line of a file, and decode them."""
        log = self._log(name)
        if isinstance(log, Options):
            return self._parts.setdefault(log.name, PartFiles(log)).parser(name)
        reader = self.reader(name)
        return LineParser(reader.parse, reader.expand, reader.encoding)

    @property
    def waiting(self) -> int:
        """Number of parts of requests without the others."""
        return sum(parts.waiting for parts in self._parts.values())

    def route(self, logged: str) -> str:
        """The label value of a logged route; empty without a configuration, because that lists the routes."""
        if self._routes is None:
            return ""
        return logged if logged in self._routes else OTHER

    def _log(self, name: str) -> HasLogFiles | None:
        if self._source is not None:
            return next(log for log in self._logs if log.name == self._source)
        matching = [log for log in self._logs if matches(log, name)]
        return next(iter([*matching, *self._logs]), None)


MAX_REJECTS_SHOWN = 20
_GZIP = b"\x1f\x8b"
_NUMBER = re.compile(r"\d+")


def records(
    stream: BinaryIO, *, whole: bool = False, encoding: str | None = None
) -> Iterator[tuple[int, bytes | FormatError]]:
    r"""The number and the JSON text of each record, without blank ones, in order.

    The number is that of its line, or its position in the array, from 1; with `whole` an array is one record.
    After a truncated or corrupt part of a gzip
    file nothing can be read: one error takes the place of the rest.

    >>> list(records(io.BytesIO(b'{"a": 1}\n\n{"a": 2}')))
    [(1, b'{"a": 1}'), (3, b'{"a": 2}')]
    >>> list(records(io.BytesIO(b'[\n {"a": 1},\n {"a": 2}\n]')))
    [(1, b'{"a": 1}'), (2, b'{"a": 2}')]
    """
    number = 0
    lines = _in_utf8(_unzip(stream), encoding)
    try:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            if number == 1 and begins_document(line):
                yield from _document_records(line + lines.read(), whole=whole)
                return
            yield from ((number, one) for one in line.rstrip(b"\r\n").split(b"\r") if one.strip())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield number + 1, FormatError(RejectReason.BINARY, "", f"the gzip file is truncated or corrupt: {error}")


def _unzip(stream: BinaryIO) -> IO[bytes]:
    buffered = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
    if buffered.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    return cast("IO[bytes]", buffered)


def _in_utf8(lines: IO[bytes], encoding: str | None) -> IO[bytes]:
    """The lines in UTF-8; UTF-16 is recognised by its byte order mark."""
    if encoding is None and isinstance(lines, io.BufferedReader):
        encoding = BYTE_ORDER_MARKS.get(lines.peek(2)[:2])
    return lines if encoding is None else io.BytesIO(as_utf8(lines.read(), encoding))


def _document_records(text: bytes, *, whole: bool) -> Iterator[tuple[int, bytes]]:
    """The records of a file that is a single JSON value; its lines if it is not."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        lines = enumerate(text.split(b"\n"), start=1)
        yield from ((number, line.rstrip(b"\r")) for number, line in lines if line.strip())
        return
    rows = value if isinstance(value, list) and not whole else [value]
    yield from ((number, json.dumps(row).encode()) for number, row in enumerate(rows, start=1))


class Rejects:
    """Counts the rejected records of one file. Errors that differ only in numbers (a position, a rank) are equal."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], tuple[int, FormatError]] = {}

    def add(self, number: int, error: FormatError) -> None:
        """Count the error of the record on line `number`."""
        kind = error.reason, _NUMBER.sub("0", str(error))
        self.counts[kind] += 1
        self._first.setdefault(kind, (number, error))

    def lines(self, name: str) -> Iterator[str]:
        """Lines that report the errors of the file `name`, the most common error first."""
        for kind, count in self.counts.most_common(MAX_REJECTS_SHOWN):
            number, error = self._first[kind]
            same = f" ({count} records of this file, the first at line {number})" if count > 1 else ""
            yield f"{name}:{number}: {error.reason}: {error}{same}"
        rest = self.counts.most_common()[MAX_REJECTS_SHOWN:]
        if rest:
            rejected = sum(count for _, count in rest)
            yield f"{name}: {rejected} more records are rejected, with {len(rest)} other errors"
