"""Intended: how files are to be read that a person names beside a configuration: as the daemon would read them there.

The format, the mapping and what stands before the JSON are those of a source: the one that is named, else the first
whose path matches the file, else the first of all. Routes and redaction are the configuration's.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from ragwatch import formats
from ragwatch.config import Config
from ragwatch.core.sample import OTHER
from ragwatch.errors import ConfigError
from ragwatch.formats.record import Parse, parse, parse_behind_text
from ragwatch.formats.shape import RecordReader


class FileOptions(NamedTuple):
    """What a command line says of its files.

    Attributes:
        format_name: Shape of the records; None for that of the source, or `auto` without a configuration.
        source: Name of the source whose files they are; None to go by their paths.
    """

    format_name: str | None = None
    source: str | None = None


class InputFiles:
    """How files are to be read.

    Args:
        config: The configuration, if one is named.
        shape: What the command line says.

    Raises:
        ConfigError: There is no such source, or the format wants a mapping that nobody gives.
    """

    def __init__(self, config: Config | None = None, shape: FileOptions | None = None) -> None:
        shape = shape or FileOptions()
        self._options = [] if config is None else [each.options for each in config.sources]
        self._format, self._source = shape
        self._routes = None if config is None else frozenset(config.settings.routes)
        self.redactor = None if config is None else config.settings.redaction.redactor()
        if shape.source is not None:
            names = [str(getattr(each, "name", "")) for each in self._options]
            if shape.source not in names:
                known = f"use one of: {', '.join(names)}" if names else "name the configuration with --config"
                raise ConfigError(f"--source {shape.source}: is no source of the configuration; {known}")
        self.reader("-")

    def reader(self, name: str) -> RecordReader:
        """The reader for the records of a file."""
        options = self._options_for(name)
        own, mapping = getattr(options, "format", "auto"), getattr(options, "mapping", None) or None
        wanted = self._format or own
        return formats.build(wanted, mapping if wanted == formats.CUSTOM else None)

    def parser(self, name: str) -> Parse:
        """What makes a record of a line of a file."""
        return parse_behind_text if getattr(self._options_for(name), "skip_prefix", False) else parse

    def route(self, logged: str) -> str:
        """The label value of a route that was logged; empty without a configuration, which would have to name it."""
        if self._routes is None:
            return ""
        return logged if logged in self._routes else OTHER

    def _options_for(self, name: str) -> BaseModel | None:
        if self._source is not None:
            return next(each for each in self._options if getattr(each, "name", None) == self._source)
        matching = [each for each in self._options if _matches(each, name)]
        return next(iter([*matching, *self._options]), None)


def _matches(options: BaseModel, name: str) -> bool:
    path = str(Path(name).resolve())
    return any(fnmatch(path, str(Path(pattern).absolute())) for pattern in getattr(options, "patterns", ()))
