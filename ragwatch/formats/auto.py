"""The reader that finds the shape itself, record by record."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.sample import RejectReason, Sample
from ragwatch.errors import FormatError
from ragwatch.formats.shape import Format, Record

NAME = "auto"
_SHOWN = 10


class Auto:
    """Tries the shape that fitted last, then every shape in order. One log rarely holds two.

    Args:
        formats: Known shapes, the most specific first.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self._formats = formats
        self._last = formats[0]

    def read(self, record: Record, fallback_id: str) -> Sample:
        """The sample in a record of any known shape.

        Raises:
            FormatError: unknown_format with the keys that were seen, or what the shape that fits has to say.
        """
        if self._last.matches(record):
            return self._last.read(record, fallback_id)
        for shape in self._formats:
            if shape.matches(record):
                sample = shape.read(record, fallback_id)
                self._last = shape
                return sample
        raise unknown(record)


def unknown(record: Record) -> FormatError:
    """The error for a record of no known shape, naming its first keys."""
    keys = ", ".join(str(key)[:40] for key in list(record)[:_SHOWN]) or "nothing"
    more = f" and {len(record) - _SHOWN} more" if len(record) > _SHOWN else ""
    message = f"no known shape (needs question, contexts, answer, or a mapping); its keys are {keys}{more}"
    return FormatError(RejectReason.UNKNOWN_FORMAT, "", message)
