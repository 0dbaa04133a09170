"""Rejects: the records of a file that are no samples, told once for each kind of error, with how many there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ragwatch.errors import FormatError

SHOWN = 20
_NUMBER = re.compile(r"\d+")


class Rejects:
    """Errors of one file's records, counted. Errors that differ in numbers alone (a position, a rank) are equal."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], tuple[int, FormatError]] = {}

    def add(self, number: int, error: FormatError) -> None:
        """Count one; `number` is that of its line."""
        kind = error.reason, _NUMBER.sub("0", str(error))
        self.counts[kind] += 1
        self._first.setdefault(kind, (number, error))

    def lines(self, name: str) -> Iterator[str]:
        """What is to be told of the file `name`: first what is commonest."""
        for kind, count in self.counts.most_common(SHOWN):
            number, error = self._first[kind]
            alike = f" ({count} records of this file, the first at line {number})" if count > 1 else ""
            yield f"{name}:{number}: {error.reason}: {error}{alike}"
        rest = self.counts.most_common()[SHOWN:]
        if rest:
            records = sum(count for _, count in rest)
            yield f"{name}: {records} further records are no samples, with {len(rest)} other errors"
