"""What a format is: a module with a name, a cheap test for its shape, and one function that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ragwatch.core.sample import Sample

Record = Mapping[str, Any]
"""One JSON object, as it was logged."""


class RecordReader(Protocol):
    """Turns records into samples."""

    def read(self, record: Record, fallback_id: str) -> Sample:
        """The sample that `record` holds; `fallback_id` names it where the record does not.

        Raises:
            FormatError: The record holds no sample; `field` is the path of what is missing or wrong.
        """
        ...


class Format(RecordReader, Protocol):
    """A known shape: the members a module of this room has.

    Attributes:
        NAME: The word in the configuration.
        MAPPING: The same shape as JMESPath expressions: where a mapping of one's own may start.
    """

    NAME: str

    @property
    def MAPPING(self) -> Mapping[str, str]:  # noqa: N802  a constant of the module, read-only here
        """One expression a field."""
        ...

    def matches(self, record: Record) -> bool:
        """Whether the record looks like this shape, by its keys alone. Never raises."""
        ...
