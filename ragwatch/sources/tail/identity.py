"""Identity of a followed file: where reading stopped, and what the bytes before that place looked like.

Every one-key scheme loses data: inodes are reused, first lines repeat, paths are renamed. So a place in a file is
`(device, inode)` AND the first 1024 bytes AND the 64 bytes before it; only when all three agree is the old place used.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """What the file system calls a file."""

    dev: int
    ino: int


@dataclass(frozen=True, slots=True)
class ContentEdges:
    """The raw bytes that are remembered of everything before an offset.

    Attributes:
        head: The first `min(1024, offset)` bytes of the file.
        tail: The `min(64, offset)` bytes before the offset.
    """

    head: bytes = b""
    tail: bytes = b""

    def grown(self, block: bytes, used: int) -> ContentEdges:
        """The edges after `block[:used]`, which follows at once, has been read too."""
        head = self.head if len(self.head) >= HEAD else (self.head + block[: min(used, HEAD)])[:HEAD]
        return ContentEdges(head, (self.tail + block[max(0, used - TAIL) : used])[-TAIL:])

    def mark(self) -> str:
        """A hash of both edges: logged text itself never enters a cursor."""
        return blake2b(self.head + b"\0" + self.tail, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Behind the last committed byte of one file: what a cursor holds.

    Attributes:
        dev: Device of the file.
        ino: Its inode.
        path: Its real path when it was first followed: rotated siblings are looked for beside it.
        generation: How often its content was started over.
        offset: Bytes read. Behind a newline, or a record at the file's end that had none, except when `within` says
            otherwise.
        line: Line ends passed; None when unknown (reading began behind much unread text).
        mark: Hash of the edges before the offset.
        within: `line` inside a line that is dropped up to its end, `hole` behind NUL bytes that were counted; a name
            of streams (see `frames`) inside a record of theirs that is dropped up to its last part.
        size: Size of the file when this was read.
        mtime_ns: Its modification time then: only orders rotated files, never identifies.
    """

    dev: int
    ino: int
    path: str
    generation: int = 0
    offset: int = 0
    line: int | None = 0
    mark: str = ""
    within: Within = ""
    size: int = 0
    mtime_ns: int = 0

    @property
    def identity(self) -> FileIdentity:
        """Device and inode."""
        return FileIdentity(self.dev, self.ino)

    @property
    def number(self) -> int:
        """1-based number of the line at the offset, 0 when unknown."""
        return 0 if self.line is None else self.line + 1

    @property
    def telling(self) -> bool:
        """Whether so much was read that its content alone, under another inode, is proof. Six bytes of JSON are not."""
        return self.offset >= TAIL

    def fits(self, edges: ContentEdges | None) -> bool:
        """Whether these bytes (None: the file is too short) are the ones that were read before the offset."""
        return self.offset == 0 or (edges is not None and edges.mark() == self.mark)

    def dump(self) -> str:
        """The cursor."""
        return orjson.dumps(self).decode()


_POSITION = TypeAdapter(FilePosition)


def load(stream: str, cursor: str) -> FilePosition:
    """Read a stored cursor.

    Raises:
        SourceError: It is not one of ours. Starting over, or at the end, would be a guess: a person decides.
    """
    try:
        return _POSITION.validate_json(cursor)
    except ValidationError as error:
        raise SourceError(f"the stored cursor of stream {stream!r} cannot be read: {error}", permanent=True) from error


def name_stream(position: FilePosition) -> str:
    """A name, never used before, for the stream that starts at this place.

    `(device, inode, generation)` alone would come back once a file is gone, its cursor forgotten and its inode used
    again, and records without an id, which are named by stream and offset, would then pass for known ones. Its first
    bytes do not tell the two apart either: they may be the header that a service writes at the top of every file. The
    name is kept with the cursor; before the first commit nothing is stored under it, so a new one is as good.
    """
    return f"{position.dev:x}-{position.ino:x}-{position.generation}-{token_hex(6)}"
