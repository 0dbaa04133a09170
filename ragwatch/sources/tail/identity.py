"""File identity and read position: where reading stopped in a file, and a fingerprint of the bytes before that offset.

Every scheme with a single key loses data: inodes are reused, first lines repeat, paths are renamed. So a position is
identified by `(device, inode)` AND the first 1024 bytes AND the 64 bytes before its offset; a stored position is
resumed only if all three match.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from hashlib import blake2b
from secrets import token_hex
from typing import Literal, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from ragwatch.errors import SourceError

Within = Literal["", "line", "hole", "stdout", "stderr", "stdout+stderr"]

HEAD = 1024
TAIL = 64


class FileIdentity(NamedTuple):
    """Device and inode of a file."""

    dev: int
    ino: int


@dataclass(frozen=True, slots=True)
class ContentEdges:
    """The raw bytes before an offset that its fingerprint is computed from."""

    head: bytes = b""  # the first `min(1024, offset)` bytes of the file
    tail: bytes = b""  # the `min(64, offset)` bytes before the offset

    def extended(self, block: bytes, used: int) -> ContentEdges:
        """The edges after `block[:used]`, which starts at the offset, has been read as well."""
        head = self.head if len(self.head) >= HEAD else (self.head + block[: min(used, HEAD)])[:HEAD]
        return ContentEdges(head, (self.tail + block[max(0, used - TAIL) : used])[-TAIL:])

    def mark(self) -> str:
        """The fingerprint: a hash of both edges, because logged text itself is never stored in a cursor."""
        return blake2b(self.head + b"\0" + self.tail, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class FilePosition:
    """The position after the last committed byte of one file. Serialized as JSON, it is the cursor of a stream."""

    dev: int
    ino: int
    path: str  # its real path when it was first followed: rotations are searched for in the same directory
    generation: int = 0  # how often the file was truncated or replaced and read from its start again
    # bytes read. It is after a newline, or after a record at the file's end that had none, except when `within` says
    # otherwise
    offset: int = 0
    line: int | None = 0  # line ends before the offset; None when unknown (reading began after much unread text)
    mark: str = ""  # hash of the edges before the offset
    # `line` inside a line that is dropped up to its end, `hole` after NUL bytes that were counted; names of streams
    # (see `lines`) inside a record of theirs that is dropped up to its last part
    within: Within = ""
    size: int = 0  # size of the file when this was read
    mtime_ns: int = 0  # its modification time then. It only orders rotated files and never identifies one

    @property
    def identity(self) -> FileIdentity:
        """Device and inode."""
        return FileIdentity(self.dev, self.ino)

    @property
    def number(self) -> int:
        """1-based number of the line at the offset, 0 when unknown."""
        return 0 if self.line is None else self.line + 1

    def fits(self, edges: ContentEdges | None) -> bool:
        """Whether these edges (None: the file is too short) are those of the bytes that were read before the offset."""
        return self.offset == 0 or (edges is not None and edges.mark() == self.mark)

    def moved_to(self, status: os.stat_result) -> FilePosition:
        """The same position in a file with another identity."""
        return replace(self, dev=status.st_dev, ino=status.st_ino)

    def dump(self) -> str:
        """The position as a cursor."""
        return orjson.dumps(self).decode()


_POSITION = TypeAdapter(FilePosition)


def load(stream: str, cursor: str) -> FilePosition:
    """Parse a stored cursor. Raises SourceError: it is not valid; to start at either end would be a guess."""
    try:
        return _POSITION.validate_json(cursor)
    except ValidationError as error:
        raise SourceError(f"the stored cursor of stream {stream!r} cannot be read: {error}", permanent=True) from error


def name_stream(position: FilePosition) -> str:
    """A unique name for the stream that starts at this position.

    `(device, inode, generation)` alone would repeat once a file is deleted, its cursor removed and its inode reused:
    records without an id, which are identified by stream and offset, would then be dropped as duplicates. The first
    bytes do not make it unique either: they may be a header that a service writes at the top of every file. The name is
    stored with the cursor; before the first commit nothing is stored under it, so another name serves as well.
    """
    return f"{position.dev:x}-{position.ino:x}-{position.generation}-{token_hex(6)}"
