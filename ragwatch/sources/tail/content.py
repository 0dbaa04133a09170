"""Content: the bytes of a file as its writer wrote them, whether they lie on disk plain or packed."""

from __future__ import annotations

from typing import Protocol

from ragwatch.sources.tail.descriptors import FileHandle
from ragwatch.sources.tail.identity import HEAD, TAIL, ContentEdges, FilePosition

CHUNK = 1 << 20
COUNTED = 64 << 20
"""Text up to this many bytes is worth reading once to know line numbers behind it (about 50 ms)."""


class Content(Protocol):
    """Bytes that can be read at any offset; cheapest forward."""

    handle: FileHandle

    @property
    def packed(self) -> int | None:
        """Bytes that it takes on disk, where that is not its length."""
        ...

    def pread(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset` on; fewer at the end.

        Raises:
            OSError: They cannot be read.
        """
        ...

    def state(self) -> tuple[int, int]:
        """Length and modification time (ns) at present.

        Raises:
            OSError: It cannot be asked.
        """
        ...

    def again(self) -> Content:
        """The same file once more, for a look beside reading. To be closed by itself."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class PlainContent:
    """A file as it is.

    Args:
        handle: Open for reading; closed by `close`.
    """

    __slots__ = ("handle",)
    packed: int | None = None

    def __init__(self, handle: FileHandle) -> None:
        self.handle = handle

    @property
    def fd(self) -> int | None:
        """Its descriptor, None while it is closed."""
        return self.handle.fd

    def pread(self, size: int, offset: int) -> bytes:
        """See `Content.pread`."""
        return self.handle.read(size, offset)

    def state(self) -> tuple[int, int]:
        """See `Content.state`."""
        status = self.handle.status()
        return status.st_size, status.st_mtime_ns

    def again(self) -> PlainContent:
        """See `Content.again`."""
        return PlainContent(self.handle.again())

    def close(self) -> None:
        """See `Content.close`."""
        self.handle.close()


def edges_at(content: Content, offset: int) -> ContentEdges | None:
    """The edges before an offset as they are now; None when the content is shorter than that."""
    head = content.pread(min(HEAD, offset), 0)
    tail = content.pread(min(TAIL, offset), max(0, offset - TAIL))
    return ContentEdges(head, tail) if (len(head), len(tail)) == (min(HEAD, offset), min(TAIL, offset)) else None


def proves(content: Content, place: FilePosition) -> bool:
    """Whether this content goes on behind a place, although it is another file.

    Proof is the content before the place, if that is long enough to tell or is everything there is.
    """
    whole = place.offset > 0 and place.offset == content.state()[0]
    return (place.telling or whole) and place.fits(edges_at(content, place.offset))


def end_of_last_line(content: Content, size: int) -> int:
    """The byte after the last newline in the first `size` bytes, 0 when there is none."""
    end = size
    while end > 0:
        start = max(0, end - CHUNK)
        at = content.pread(end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def count_lines(content: Content, end: int) -> int | None:
    """Newlines in the first `end` bytes; None when that is too much to read for a line number."""
    if end > COUNTED:
        return None
    return sum(content.pread(min(CHUNK, end - at), at).count(b"\n") for at in range(0, end, CHUNK))
