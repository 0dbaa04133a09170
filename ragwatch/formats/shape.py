"""Protocols of formats and record readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ragwatch.model.sample import Sample

Record = Mapping[str, object]
"""One JSON object as it was logged."""


class RecordReader(Protocol):
    """Converts records to samples."""

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record; `fallback_id` is its id if the record has none.

        Raises:
            FormatError: The record contains no sample; `field` is the path of the missing or invalid field.
        """


class FormatReader(RecordReader, Protocol):
    """Converts records to samples by way of the canonical format."""

    def extract(self, record: Record) -> Record:
        """Return what `canonical` reads in place of a record.

        Raises:
            FormatError: Required parts are not in it.
        """


class Format(FormatReader, Protocol):
    """A known format: `canonical`, a row of `providers` or one of `traces.export`."""

    @property
    def NAME(self) -> str:  # noqa: N802  these three are constants, read-only here
        """Name in the configuration."""

    @property
    def KNOWN_BIAS(self) -> str:  # noqa: N802
        """What its records do not hold, and which figures that changes; empty if nothing is known."""

    @property
    def MAPPING(self) -> Mapping[str, str]:  # noqa: N802
        """The same format as JMESPath expressions, as a starting point for a custom mapping."""

    def matches(self, record: Record) -> bool:
        """Return whether a record looks like this format, by its keys alone. Never raises."""
