"""Reader that detects the format of each record."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.sample import RejectReason, Sample
from ragwatch.errors import FormatError
from ragwatch.formats.shape import Format, Record

NAME = "auto"
_MAX_SHOWN_KEYS = 10
_MIN_SHARED_KEYS = 0.5


class AutoReader:
    """Tries every format in order, for each record.

    The first matching format wins, so that the result does not depend on earlier records. A record that matches no
    format, but has most of the keys of the last match, is read as that format: it probably lacks a field, and the error
    then names the field instead of reporting an unknown format.

    Args:
        formats: Formats, the most specific first.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self._formats = formats
        self._last = formats[0]
        self._keys: frozenset[str] = frozenset()

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record of any format.

        Raises:
            FormatError: unknown_format, with the keys of the record; or an error of the matching format.
        """
        return self._format_of(record).read(record, fallback_id)

    def extract(self, record: Record) -> Record:
        """Return a record of any format in the canonical one."""
        return self._format_of(record).extract(record)

    def _format_of(self, record: Record) -> Format:
        for shape in self._formats:
            if shape.matches(record):
                if shape is not self._last or not self._keys:
                    self._last, self._keys = shape, frozenset(record)
                return shape
        if self._keys and len(self._keys & record.keys()) >= _MIN_SHARED_KEYS * len(self._keys):
            return self._last
        raise unknown(record)


def unknown(record: Record) -> FormatError:
    """Return the error for a record of no known format, with its first keys."""
    keys = ", ".join(str(key)[:40] for key in list(record)[:_MAX_SHOWN_KEYS]) or "nothing"
    more = f" and {len(record) - _MAX_SHOWN_KEYS} more" if len(record) > _MAX_SHOWN_KEYS else ""
    message = f"unknown format (needs question, contexts, answer, or a mapping); its keys are {keys}{more}"
    return FormatError(RejectReason.UNKNOWN_FORMAT, "", message)
