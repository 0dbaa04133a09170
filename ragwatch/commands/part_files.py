"""Joins the parts of requests in files from the command line, as a source of kind `join` does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import orjson

from ragwatch.core.sample import SkipReason
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.log_reader import LogReader
from ragwatch.formats.record import Parsed
from ragwatch.ports.capabilities import HasLogFiles, record_rules
from ragwatch.sources.join.joiner import JoinLimits
from ragwatch.sources.join.options import Options
from ragwatch.sources.join.source import joiner

_UNLIMITED = JoinLimits(float("inf"), sys.maxsize, sys.maxsize)


class PartFiles:
    """Joins records over several files.

    Args:
        options: Options of the source.
    """

    def __init__(self, options: Options) -> None:
        self._joiner = joiner(options, _UNLIMITED)
        self._logs = [inner for _, inner in options.inner().values() if isinstance(inner, HasLogFiles)]

    @property
    def waiting(self) -> int:
        """Number of parts without the others of their request."""
        return self._joiner.waiting.total()

    def parser(self, name: str) -> Callable[[bytes], Parsed | None]:
        """The function that takes the part in a line of a file, and returns the record that it completes.

        It returns None while parts are missing.
        """
        log = next((log for log in self._logs if matches(log, name)), self._logs[0])
        parse = LogReader(record_rules(log)).parse

        def add(line: bytes) -> Parsed | None:
            parsed = parse(line)
            if isinstance(parsed, SkipReason) or is_feedback(parsed[0]):
                return parsed
            joined = self._joiner.add(log.name, parsed[0], 0.0, 0.0)
            return None if joined is None else (orjson.loads(joined), parsed[1])

        return add


def matches(log: HasLogFiles, name: str) -> bool:
    """Whether a file is one of a source."""
    path = str(Path(name).resolve())
    return any(fnmatch(path, str(Path(pattern).absolute())) for pattern in log.patterns)
