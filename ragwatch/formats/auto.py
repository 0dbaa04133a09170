"""The reader that finds the shape itself, record by record."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.sample import RejectReason, Sample
from ragwatch.errors import FormatError
from ragwatch.formats.shape import Format, Record

NAME = "auto"
_SHOWN = 10
_ALIKE = 0.5


class AutoReader:
    """Tries every shape in order, for each record.

    How a record is read that fits two shapes must not depend on what was read before it, since when the daemon runs.
    A record that fits none, but has most of the keys of the last one that fitted, is read as that shape: it lacks a
    field, and the error should name the field rather than say that the shape is unknown.

    Args:
        formats: Known shapes, the most specific first.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self._formats = formats
        self._last = formats[0]
        self._keys: frozenset[str] = frozenset()

    def read(self, record: Record, fallback_id: str) -> Sample:
        """The sample in a record of any known shape.

        Raises:
            FormatError: unknown_format with the keys that were seen, or what the shape that fits has to say.
        """
        for shape in self._formats:
            if shape.matches(record):
                sample = shape.read(record, fallback_id)
                if shape is not self._last or not self._keys:
                    self._last, self._keys = shape, frozenset(record)
                return sample
        if self._keys and len(self._keys & record.keys()) >= _ALIKE * len(self._keys):
            return self._last.read(record, fallback_id)
        raise unknown(record)


def unknown(record: Record) -> FormatError:
    """The error for a record of no known shape, naming its first keys."""
    keys = ", ".join(str(key)[:40] for key in list(record)[:_SHOWN]) or "nothing"
    more = f" and {len(record) - _SHOWN} more" if len(record) > _SHOWN else ""
    message = f"no known shape (needs question, contexts, answer, or a mapping); its keys are {keys}{more}"
    return FormatError(RejectReason.UNKNOWN_FORMAT, "", message)
