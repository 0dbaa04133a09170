"""The first scan of a source: since when files are new, and how much existing content is not read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import orjson

from ragwatch.sources.tail.directories import list_directory
from ragwatch.sources.tail.identity import FilePosition

STARTED = "started"
"""Stream of the cursor that holds the first scan: once it is stored, a file without a cursor is new."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class FirstScan:
    """The result of the first scan. It is stored as a cursor.

    Attributes:
        since_ns: File time from which on files are new.
        records: Existing lines that are not read, where they were counted.
        size: Existing bytes that are not read.
        more: Whether there are further lines, in files that are too large to be counted.
    """

    since_ns: int = 0
    records: int = 0
    size: int = 0
    more: bool = False

    def skipping(self, position: FilePosition) -> FirstScan:
        """The same after the content before this position was skipped."""
        return replace(
            self,
            records=self.records + (position.line or 0),
            size=self.size + position.offset,
            more=self.more or position.line is None,
        )

    def dump(self) -> str:
        """The result as a cursor."""
        return orjson.dumps(asdict(self)).decode()

    def __str__(self) -> str:
        """How much was skipped, and what to do about it; empty when nothing was."""
        if not self.size:
            return ""
        count = f"{self.records:,} existing records"
        if self.more:
            count = f"more than {count}" if self.records else f"{_bytes(self.size)} of existing records"
        return (
            f"0 of {count} read: `start: end`; only what is written from now on is read (to read what is there: "
            "`start: beginning` and a new `state` directory, or a trial with `ragwatch run --once`)"
        )


def load(cursor: str) -> FirstScan:
    """Parse a stored cursor. Without `since_ns`, as earlier versions stored it, all files are new."""
    stored = orjson.loads(cursor)
    return FirstScan(**{name: stored[name] for name in FirstScan.__slots__ if name in stored})


def history_end(directories: Iterable[str]) -> int:
    """File time (ns) after the last write in these directories. The system clock is not used."""
    times = [0]
    for directory in directories:
        listing = list_directory(directory)
        for path in listing.paths.values() if listing else ():
            with suppress(OSError):  # deleted meanwhile, so it does not count
                times.append(os.stat(path).st_mtime_ns + 1)  # noqa: PTH116 - a string stays a string
    return max(times)


def _bytes(size: int) -> str:
    power = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:.3g} {_UNITS[power]}"
