"""Beginning: the first look of a source: since when files are news, and how much of what was there is not read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import orjson

from ragwatch.sources.tail.identity import FilePosition
from ragwatch.sources.tail.listing import list_directory

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class FirstScan:
    """What the first look found. It is stored as a cursor.

    Attributes:
        since_ns: File time from which on files are news.
        records: Lines that were there and are not read, where they were counted.
        size: Bytes that were there and are not read.
        more: Whether there are further lines, in files that are too large to be counted.
    """

    since_ns: int = 0
    records: int = 0
    size: int = 0
    more: bool = False

    def skipping(self, position: FilePosition) -> FirstScan:
        """The same after what lies before this place was passed over."""
        return replace(
            self,
            records=self.records + (position.line or 0),
            size=self.size + position.offset,
            more=self.more or position.line is None,
        )

    def dump(self) -> str:
        """The cursor."""
        return orjson.dumps(asdict(self)).decode()

    def __str__(self) -> str:
        """How much was passed over, and what to do about it; empty when nothing was."""
        if not self.size:
            return ""
        many = f"{self.records:,} existing records"
        if self.more:
            many = f"more than {many}" if self.records else f"{_bytes(self.size)} of existing records"
        return (
            f"0 of {many} read: `start: end`; only what is written from now on is read (to read what is there: "
            "`start: beginning` and a new `state` directory, or a trial with `ragwatch run --once`)"
        )


def load(cursor: str) -> FirstScan:
    """The beginning in a stored cursor. What an earlier version left out is not known: all files are news."""
    stored = orjson.loads(cursor)
    return FirstScan(**{name: stored[name] for name in FirstScan.__slots__ if name in stored})


def history_until(folders: Iterable[str]) -> int:
    """File time (ns) after which nothing in these folders was written yet. No clock of ours is asked."""
    times = [0]
    for folder in folders:
        listing = list_directory(folder)
        for path in listing.paths.values() if listing else ():
            with suppress(OSError):  # gone meanwhile, so it is no history
                times.append(os.stat(path).st_mtime_ns + 1)  # noqa: PTH116 - a string stays a string
    return max(times)


def _bytes(size: int) -> str:
    power = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:.3g} {_UNITS[power]}"
