"""User-defined format: JMESPath expressions, one for each field of a sample; docs/logs.md has examples.

`contexts` yields texts or objects, `history` the turns of the conversation (with or without the question). With a known
format, expressions take the place of what it reads for these fields.
"""

from collections.abc import Mapping
from contextlib import suppress

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import canonical, relevance
from ragwatch.formats.canonical import LostField, name_of
from ragwatch.formats.expressions import Extractors
from ragwatch.formats.record import FormatReader, Record
from ragwatch.model.sample import RejectReason, Sample

NAME = "custom"
REQUIRED = ("contexts", "answer")
KEYS = (*("question", *REQUIRED, "id", "at", "route", "trace_id", "reference", "metadata", "history"), *relevance.KEYS)
_METADATA = "metadata."


class MappingReader:
    """Reads records with JMESPath expressions.

    Args:
        mapping: Expression by field: `contexts` and `answer`, and optionally others of KEYS or `metadata.NAME`.
        base: Reads the fields without an expression, or for which it yields null; none of them without it.
    """

    def __init__(self, mapping: Mapping[str, str], base: FormatReader | None = None) -> None:
        for key in REQUIRED:
            if base is None and key not in mapping:
                raise ConfigError(f"mapping.{key}: is missing, write the JMESPath expression that finds it")
        for key in mapping:
            if key not in KEYS and not (key.startswith(_METADATA) and key != _METADATA):
                raise ConfigError(f"mapping.{key}: unknown, use one of {', '.join(KEYS)} or metadata.NAME")
        self._base = base
        self._extras = [key for key in mapping if key.startswith(_METADATA)]
        self._extractors = Extractors(mapping)
        self._values = self._extractors.values

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample that the expressions extract. A question that is not extracted is unknown."""
        return canonical.read(self.extract(record), fallback_id)

    def extract_what_it_can(self, record: Record) -> tuple[Record, tuple[LostField, ...]]:
        """Return what the expressions extract, and the optional fields whose expressions fail; others raise it."""
        with suppress(FormatError):
            return self.extract(record), ()
        extracted: dict[str, object] = {}
        lost: list[LostField] = []
        for key, read in self._extractors.apart.items():
            try:
                value = read(record)
            except FormatError as error:
                name = name_of(error.field)
                if name is None:
                    raise
                lost.append(LostField(name, RejectReason(error.reason), str(error)))
            else:
                extracted |= {} if value is None else {key: value}
        return self._completed(record, extracted), tuple(lost)

    def extract(self, record: Record) -> dict[str, object]:
        """Return what the expressions extract, as a record in the canonical format."""
        return self._completed(record, self._values(record))

    def _completed(self, record: Record, extracted: dict[str, object]) -> dict[str, object]:
        if self._base is not None:
            extracted = {**self._base.extract(record), **extracted}
        extracted.setdefault("question", None)
        if self._extras and (extras := {key: extracted.pop(key) for key in self._extras if key in extracted}):
            extras = {key.removeprefix(_METADATA): value for key, value in extras.items()}
            metadata = extracted.get("metadata", {})
            extracted["metadata"] = {**metadata, **extras} if isinstance(metadata, dict) else metadata
        return extracted
