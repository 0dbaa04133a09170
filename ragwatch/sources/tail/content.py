"""File content: the bytes of a log file as its writer wrote them, whether it is stored plain or gzip-compressed."""

from __future__ import annotations

from dataclasses import dataclass

from ragwatch.sources.tail.descriptors import FileHandle
from ragwatch.sources.tail.identity import HEAD, TAIL, ContentEdges, FilePosition

CHUNK_BYTES = 1 << 20
MAX_COUNTED_BYTES = 64 << 20
"""Text up to this many bytes is read once to know line numbers after it (about 50 ms)."""


class Content:
    """The bytes of a plain file; `GzipContent` has those in a compressed one. Reading forward is cheapest.

    Args:
        handle: Open for reading; closed by `close`.

    Attributes:
        packed: Bytes of the compressed file; None for a plain one.
    """

    packed: int | None = None

    def __init__(self, handle: FileHandle) -> None:
        self.handle = handle

    def pread(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset` on; fewer at the end. Raises OSError if they cannot be read."""
        return self.handle.read(size, offset)

    def state(self) -> tuple[int, int]:
        """Length and modification time (ns) at present. Raises OSError if they are not available."""
        status = self.handle.status()
        return status.st_size, status.st_mtime_ns

    def duplicate(self) -> Content:
        """A second reader of the same file, to be closed separately."""
        return Content(self.handle.duplicate())

    def close(self) -> None:
        """Close the file."""
        self.handle.close()


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file, and the position at which to continue in it."""

    path: str
    content: Content
    position: FilePosition


def edges_at(content: Content, offset: int) -> ContentEdges | None:
    """Read the edges before an offset; None when the content is shorter than that."""
    head = content.pread(min(HEAD, offset), 0)
    tail = content.pread(min(TAIL, offset), max(0, offset - TAIL))
    return ContentEdges(head, tail) if (len(head), len(tail)) == (min(HEAD, offset), min(TAIL, offset)) else None


def continues(content: Content, position: FilePosition) -> bool:
    """Whether reading can continue at a position in the content of another file, because that is a copy.

    Proof is equal content before the position, if that is the whole file or long enough: six bytes of JSON are none.
    """
    whole = position.offset > 0 and position.offset == content.state()[0]
    return (position.offset >= TAIL or whole) and position.fits(edges_at(content, position.offset))


def end_of_last_line(content: Content, size: int) -> int:
    """The offset after the last newline in the first `size` bytes, 0 when there is none."""
    end = size
    while end > 0:
        start = max(0, end - CHUNK_BYTES)
        newline = content.pread(end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def count_lines(content: Content, end: int) -> int | None:
    """Count newlines in the first `end` bytes; None when that is too much to read for a line number."""
    if end > MAX_COUNTED_BYTES:
        return None
    return sum(content.pread(min(CHUNK_BYTES, end - start), start).count(b"\n") for start in range(0, end, CHUNK_BYTES))
