"""Reads the versions that records name in their metadata: a release, a model, a prompt, an index.

The store knows which values it has seen, in the transaction that stores the cursor of the records. So the first answer
with another value becomes an event once, over restarts and workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragwatch.core.sample import Sample
from ragwatch.ports import VersionValue
from ragwatch.redaction.redactor import Redactor

MAX_CHARS = 100  # of a value
MAX_NEW = 50  # of one batch of records; a key with another value in each is no version
MAX_KNOWN = 10_000  # values that are remembered, beyond which the store is asked again


class NamedVersions:
    """Finds the values that this process has not stored yet.

    Args:
        fields: Metadata keys.
        redactor: Replaces PII and secrets in values; None for none.
    """

    def __init__(self, fields: Sequence[str], redactor: Redactor | None = None) -> None:
        self._fields = tuple(fields)
        self._redactor = redactor
        self._known: set[tuple[str, str]] = set()

    def read(self, sample: Sample, now: float, versions: list[VersionValue]) -> None:
        """Append the values of a sample that are neither stored nor in `versions`; only texts and integers count."""
        if len(versions) >= MAX_NEW:
            return
        for field in self._fields:
            value = sample.metadata.get(field)
            if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
                continue
            text = str(value)[:MAX_CHARS]
            if (field, text) in self._known:
                continue
            clean = text if self._redactor is None else self._redactor.redact(text)
            if (field, clean) in self._known or any((one.field, one.value) == (field, clean) for one in versions):
                continue
            versions.append(VersionValue(field, clean, now if sample.at is None else min(sample.at, now)))

    def note(self, versions: Iterable[VersionValue]) -> None:
        """Remember values that were stored."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        self._known.update((version.field, version.value) for version in versions)
