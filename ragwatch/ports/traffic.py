"""Traffic: the door of sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ragwatch.core.sample import RejectReason
from ragwatch.core.snapshot import Lag


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that was not read as a Sample, with what a person needs to find and mend it.

    Attributes:
        reason: What is counted.
        file: Name of the file (or stream) as the person knows it.
        line: 1-based number of the line, 0 when unknown.
        field: Path of the field at fault, empty when the whole record is.
        detail: What is wrong.
    """

    reason: RejectReason
    file: str
    line: int
    field: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one stream, and the cursor behind the last of them.

    Attributes:
        stream: Identity of the stream inside its source (a file, a partition).
        file: Its name for people.
        lines: Raw records without their line ends; empty lines are left out.
        offsets: For each line, where it starts in the stream. Makes the id of records that have none.
        numbers: For each line, its 1-based number.
        cursor: Opaque state that resumes behind the last line.
        rejections: Records that never became a line (too long, binary ...).
        resets: Why a stream was started over, as counted by reason (`truncated`, `replaced` ...).
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
    """A transport that yields records. Methods are called from one thread at a time, and may block on a disk."""

    name: str

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue behind these stored cursors, by stream. Called once, before the first read."""
        ...

    def read(self) -> Batch | None:
        """The next records, None when there is nothing new. Repeats the same records until they are committed.

        Raises:
            SourceError: The source cannot be read at present.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """The store holds this batch: move on."""
        ...

    def lag(self) -> Lag:
        """How far behind the writer this source is."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
