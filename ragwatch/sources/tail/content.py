"""File content: the bytes of a log file as its writer wrote them, whether it is stored plain or gzip-compressed.

A compressed file is read as its decompressed content, once that is known to be complete. It is decompressed twice:
first to its end, to check that it is complete (gzip may still be writing it), undamaged (the checksum is at the end)
and no decompression bomb; then, in bounded memory, for its lines. Offsets count decompressed bytes.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ragwatch.sources.tail.descriptors import SHARED_BUDGET, DescriptorBudget, FileHandle
from ragwatch.sources.tail.disk import GZIP, MAX_ATTEMPTS, DirectoryListing, open_regular, size_and_mtime
from ragwatch.sources.tail.identity import HEAD, TAIL, ContentEdges, FileIdentity, FilePosition

CHUNK_BYTES = 1 << 20
MAX_COUNTED_BYTES = 64 << 20
"""Text up to this many bytes is read once to know line numbers after it (about 50 ms)."""
READ_BYTES = 1 << 18
MIN_BOMB_BYTES = 64 << 20
"""Decompressed bytes up to which any compression ratio is accepted."""
MAX_RATIO = 500
"""Decompressed bytes per byte on disk above which a file is a bomb. Deflate reaches 1032; logs stay below 100."""
MAX_UNPACKED_BYTES = 64 << 30
"""Decompressed bytes above which a rotation is refused."""

_GZIP = zlib.MAX_WBITS | 16
_MAGIC = b"\x1f\x8b"

Flaw = Literal["gz_truncated", "gz_damaged", "gz_bomb"]


class Content:
    """The bytes of a plain file; `GzipContent` has those in a compressed one. Reading forward is cheapest.

    Args:
        handle: Open for reading; closed by `close`.
    """

    packed: int | None = None  # bytes of the compressed file; None for a plain one

    def __init__(self, handle: FileHandle) -> None:
        self.handle = handle

    def pread(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset` on; fewer at the end. Raises OSError if they cannot be read."""
        return self.handle.read(size, offset)

    def state(self) -> tuple[int, int]:
        """Length and modification time (ns) at present. Raises OSError if they are not available."""
        status = self.handle.status()
        return status.st_size, status.st_mtime_ns

    def edges(self, offset: int) -> ContentEdges | None:
        """The edges before an offset; None when the content is shorter than that."""
        head = self.pread(min(HEAD, offset), 0)
        tail = self.pread(min(TAIL, offset), max(0, offset - TAIL))
        return ContentEdges(head, tail) if (len(head), len(tail)) == (min(HEAD, offset), min(TAIL, offset)) else None

    def fits(self, position: FilePosition) -> bool:
        """Whether its bytes before a position are those that were read."""
        return position.fits(self.edges(position.offset))

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


def continues(content: Content, position: FilePosition) -> bool:
    """Whether reading can continue at a position in the content of another file, because that is a copy.

    Proof is equal content before the position, if that is the whole file or long enough: six bytes of JSON are none.
    """
    whole = position.offset > 0 and position.offset == content.state()[0]
    return (position.offset >= TAIL or whole) and content.fits(position)


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


class GzipRefusedError(OSError):
    """A compressed file cannot, or should not, be read."""

    def __init__(self, flaw: Flaw, why: str) -> None:
        super().__init__(why)
        self.flaw = flaw


def unpack(read: Callable[[int, int], bytes], end: int) -> Iterator[bytes]:
    """Decompress the first `end` bytes, all members, in chunks of at most 1 MiB.

    Raises:
        GzipRefusedError: The data ends early, is damaged, or is far larger than expected. Chunks that were yielded
            before may be wrong then.
    """
    at = out = 0
    data = b""
    decompressor: Any = zlib.decompressobj(wbits=_GZIP)
    while True:
        if not data:
            data = read(min(READ_BYTES, end - at), at)
            at += len(data)
        if decompressor is None:
            data = data.lstrip(b"\0")  # padding of tapes and block devices
            if not data and at < end:
                continue
            if not data or not _MAGIC.startswith(data[:2]):
                return  # trailing garbage is ignored, as gzip does
            decompressor = zlib.decompressobj(wbits=_GZIP)
        ended = not data
        try:
            chunk = decompressor.decompress(data, CHUNK_BYTES)
        except zlib.error as error:
            raise GzipRefusedError("gz_damaged", str(error)) from error
        out += len(chunk)
        if out > MAX_UNPACKED_BYTES or out > max(MIN_BOMB_BYTES, MAX_RATIO * at):
            raise GzipRefusedError("gz_bomb", f"more than {out} bytes in {at}")
        if chunk:
            yield chunk
        elif ended and not decompressor.eof:
            raise GzipRefusedError("gz_truncated", f"ends within its compressed data, after {end} bytes")
        data = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
        decompressor = None if decompressor.eof else decompressor


class GzipContent(Content):
    """The decompressed content of a file that was checked to be complete. A window of it is in memory.

    Args:
        size: Bytes on disk.
        length: Bytes of the content.
    """

    packed: int

    def __init__(self, handle: FileHandle, size: int, length: int) -> None:
        super().__init__(handle)
        self.packed = size
        self._length = length
        self._head = b""
        self._rewind()

    def pread(self, size: int, offset: int) -> bytes:
        """See `Content.pread`. Seeking back more than 64 bytes decompresses from the start again."""
        if offset + size <= len(self._head):
            return self._head[offset : offset + size]
        if offset < self._start:
            self._rewind()
        while self._start + len(self._window) < offset + size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            if len(self._head) < HEAD and self._start + len(self._window) == len(self._head):
                self._head += chunk[: HEAD - len(self._head)]
            self._window += chunk
            passed = min(max(0, offset - TAIL - self._start), len(self._window))
            del self._window[:passed]
            self._start += passed
        start = offset - self._start
        return bytes(self._window[start : start + size])

    def state(self) -> tuple[int, int]:
        """See `Content.state`. A file that changed must be checked again, so it cannot be read now."""
        status = self.handle.status()
        if status.st_size != self.packed:
            raise GzipRefusedError("gz_truncated", "changed while it was read")
        return self._length, status.st_mtime_ns

    def duplicate(self) -> GzipContent:
        """See `Content.duplicate`."""
        return GzipContent(self.handle.duplicate(), self.packed, self._length)

    def _rewind(self) -> None:
        self._chunks = unpack(self.handle.read, self.packed)
        self._window = bytearray()
        self._start = 0


@dataclass(slots=True, kw_only=True)
class _GzipCheck:
    """The result of checking a compressed file."""

    path: str
    state: tuple[int, int]  # size and modification time (ns) when it was checked
    since: float  # monotonic seconds of the check
    length: int = 0
    flaw: Flaw | None = None  # why it is refused, None when it is complete
    why: str = ""  # the same as an error message
    reported: bool = False  # whether the flaw was counted


class ContentOpener:
    """Opens plain and compressed files, and remembers which compressed files are refused, and why.

    Args:
        truncated_seconds: How long a truncated file must stay unchanged before it is counted: gzip may be writing it.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        truncated_seconds: float,
        descriptors: DescriptorBudget = SHARED_BUDGET,
    ) -> None:
        self._descriptors = descriptors
        self._clock = clock
        self._truncated_seconds = truncated_seconds
        self._checks: dict[FileIdentity, _GzipCheck] = {}

    def open(self, path: str, ino: int | None = None) -> tuple[Content, os.stat_result] | None:
        """Open for reading; None when it is not a regular file (any more). `ino` is the inode that was at this path.

        Raises:
            FileNotFoundError: The path does not exist, or another file is there by now.
            GzipRefusedError: It is compressed, and cannot be read as it is now.
            OSError: It cannot be opened or read.
        """
        opened = open_regular(path, ino)
        if opened is None:
            return None
        fd, status = opened
        handle = FileHandle(fd, path, status, self._descriptors)
        try:
            if not path.endswith(GZIP):
                handle.read(1, 0)  # on a failing disk a file may open and not be readable
                return Content(handle), status
            check = self._check(path, handle, status)
        except OSError:
            handle.close()
            raise
        if check.flaw is None:
            return GzipContent(handle, status.st_size, check.length), status
        handle.close()
        raise GzipRefusedError(check.flaw, check.why)

    def open_in(self, listing: DirectoryListing, ino: int) -> tuple[str, Content, os.stat_result] | None:
        """Open the file with this inode, whatever its name in a directory is by now. Updates the listing as needed.

        Returns:
            Its path, content and status. None when there is no such file, or it is not a regular one.

        Raises:
            OSError: It cannot be opened at present, or its names changed too fast: that proves nothing.
        """
        for _ in range(MAX_ATTEMPTS):
            path = listing.paths.get(ino)
            if path is None:
                return None
            try:
                opened = self.open(path, ino)
            except FileNotFoundError:
                listing.update()
            else:
                return None if opened is None else (path, *opened)
        raise OSError(errno.EAGAIN, "its name keeps changing")

    def forget_changed(self) -> bool:
        """Forget refused files that have changed or are gone. Returns whether there were any."""
        changed = [
            identity
            for identity, check in self._checks.items()
            if check.flaw and size_and_mtime(check.path) != check.state
        ]
        for identity in changed:
            del self._checks[identity]
        return bool(changed)

    def refusals(self) -> dict[str, str]:
        """Refused paths, and why."""
        return {check.path: check.why for check in self._checks.values() if check.flaw}

    def new_flaws(self) -> list[tuple[str, Flaw]]:
        """Refused paths that were not reported by an earlier call, and why. Recently truncated ones are left out."""
        now = self._clock()
        flaws = []
        for check in self._checks.values():
            may_grow = check.flaw == "gz_truncated" and now - check.since < self._truncated_seconds
            if check.flaw and not check.reported and not may_grow:
                check.reported = True
                flaws.append((check.path, check.flaw))
        return flaws

    def _check(self, path: str, handle: FileHandle, status: os.stat_result) -> _GzipCheck:
        """Check a compressed file, unless it was checked before and has not changed."""
        identity, state = FileIdentity(status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
        check = self._checks.get(identity)
        if check is None or check.state != state:
            check = _GzipCheck(path=path, state=state, since=self._clock())
            try:
                check.length = sum(map(len, unpack(handle.read, status.st_size)))
            except GzipRefusedError as refused:
                check.flaw, check.why = refused.flaw, str(refused)
            self._checks[identity] = check
        check.path = path
        return check
