"""Protocol of sources, and the batches of records that they deliver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ragwatch.core.sample import RejectReason
from ragwatch.core.snapshot import Lag


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that could not be read as a Sample, with what is needed to find and fix it.

    Attributes:
        reason: Reason that is counted.
        file: Display name of the file or stream.
        line: 1-based line number, 0 if unknown.
        field: Path of the invalid field, empty if the whole record is invalid.
        detail: Error message.
    """

    reason: RejectReason
    file: str
    line: int
    field: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one stream, and the cursor after the last of them.

    Attributes:
        stream: Identity of the stream inside its source (a file, a partition).
        file: Its display name.
        lines: Raw records without line ends; empty lines are left out.
        offsets: Start offset of each line in the stream; the fallback id of records without one.
        numbers: 1-based number of each line.
        cursor: Opaque state that resumes after the last line.
        rejections: Records that could not be read as a line (too long, binary ...).
        resets: Restarts of the stream, counted by reason (`truncated`, `replaced` ...).
    """

    stream: str
    file: str
    lines: Sequence[bytes]
    offsets: Sequence[int]
    numbers: Sequence[int]
    cursor: str
    rejections: Sequence[Rejection] = ()
    resets: Mapping[str, int] = field(default_factory=dict)


class Source(Protocol):
    """A transport that delivers records. Called from one thread at a time; may block on disk I/O."""

    name: str

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue after the stored cursors, by stream. Called once, before the first read."""
        ...

    def read(self) -> Batch | None:
        """Return the next records, None if there are none. Returns the same records until they are committed.

        Raises:
            SourceError: The source cannot be read at present.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """Advance past a batch that the store has admitted."""
        ...

    def lag(self) -> Lag:
        """Return the age and size of the records that are not read yet."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...
