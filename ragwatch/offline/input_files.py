"""Selects how files from the command line are read: like the daemon would read them as the log of a source.

Format, mapping and the selection of records (`where`, `prefix`, `split`) are those of a source of the configuration:
the one named by `--source`, else the first one whose path matches the file, else the first one. Routes and redaction
are those of the configuration. Parts of requests are joined as a source of kind `join` does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import orjson

from ragwatch import formats
from ragwatch.config import Config
from ragwatch.errors import ConfigError
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import Line, Parsed
from ragwatch.formats.selection import Expand
from ragwatch.model.sample import OTHER, Sample, SkipReason
from ragwatch.ports.capabilities import HasLogFiles, record_rules
from ragwatch.sources.join.joiner import JoinLimits
from ragwatch.sources.join.options import Options
from ragwatch.sources.join.options import Options as JoinOptions
from ragwatch.sources.join.source import joiner

_UNLIMITED = JoinLimits(float("inf"), sys.maxsize, sys.maxsize)


class LineParser(NamedTuple):
    """How the records in the lines of a file are found and decoded.

    Attributes:
        parse: Decodes a record; None for a part that waits for others.
        expand: Finds the records in a line that holds several; None where a line is one.
        encoding: Encoding of the file; None for UTF-8.
        rest: The records that are complete because the file ends.
    """

    parse: Callable[[Line], Parsed | None]
    expand: Expand | None
    encoding: str | None = None
    rest: Callable[[], Sequence[Line]] = tuple


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


class FileOptions(NamedTuple):
    """Options of the command line that select how files are read.

    Attributes:
        format_name: Format of the records; None for that of the source, or `auto` without a configuration.
        source: Name of the source whose files they are; None to choose the source by path.
    """

    format_name: str | None = None
    source: str | None = None


class InputFiles:
    """Readers for files from the command line; `ConfigError` if there is no such source, or a mapping is missing."""

    def __init__(self, config: Config | None = None, options: FileOptions | None = None) -> None:
        self._format, self._source = options or FileOptions()
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
        if isinstance(log, JoinOptions):
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
