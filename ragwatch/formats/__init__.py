"""Formats: convert logged records to samples. Pure functions.

A format has the members of `record.Format`; to add one, add a row to `providers` or `traces.export`.
`record.parse` decodes a line into the record that readers take.

What reads a record raises a `FormatError` with the path of the field that is missing or wrong; what is built from the
configuration raises a `ConfigError` whose message names the key.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import canonical, custom
from ragwatch.formats.providers import LIBRARIES, PROVIDERS
from ragwatch.formats.record import Format, FormatReader, Record
from ragwatch.formats.traces.export import EXPORTS
from ragwatch.model.sample import RejectReason, Sample

# In the order in which `auto` tries them: formats with keys of one library before formats with common keys.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {canonical.NAME: canonical, **{shape.NAME: shape for shape in (*LIBRARIES, *EXPORTS, *PROVIDERS)}}
)
TRACES = frozenset(export.NAME for export in EXPORTS)
AUTO, CUSTOM = "auto", custom.NAME
NAMES = (AUTO, *FORMATS, CUSTOM)
_MAX_SHOWN_KEYS = 10
_MIN_SHARED_KEYS = 0.5


class _AutoReader:
    """Tries every format in order, for each record.

    The first matching format wins, so that the result does not depend on earlier records. A record that matches no
    format, but has most of the keys of the last match, is read as that format: it probably lacks a field, and the error
    then names the field instead of reporting an unknown format.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self._formats = formats
        self._last = formats[0]
        self._keys: frozenset[str] = frozenset()

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record of any format; unknown_format, with the keys of the record, if it has none."""
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
        keys = ", ".join(str(key)[:40] for key in list(record)[:_MAX_SHOWN_KEYS]) or "nothing"
        more = f" and {len(record) - _MAX_SHOWN_KEYS} more" if len(record) > _MAX_SHOWN_KEYS else ""
        message = f"unknown format (needs question, contexts, answer, or a mapping); its keys are {keys}{more}"
        raise FormatError(RejectReason.UNKNOWN_FORMAT, "", message)


def build(name: str, mapping: Mapping[str, str] | None = None) -> FormatReader:
    """Build the reader of a format. `auto` keeps state about the last match: build one reader per source."""
    if name == CUSTOM:
        if not mapping:
            raise ConfigError("mapping: format custom needs one; `ragwatch init --print FILE` proposes it")
        return custom.MappingReader(mapping)
    if name == AUTO:
        if mapping:
            raise ConfigError("mapping: format auto takes none; write format: custom, or the format that it completes")
        return _AutoReader(tuple(FORMATS.values()))
    if name not in FORMATS:
        raise ConfigError(f"format: unknown {name!r}, use one of {', '.join(NAMES)}")
    return custom.MappingReader(mapping, FORMATS[name]) if mapping else FORMATS[name]
