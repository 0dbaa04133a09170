"""Packed: what a rotation compressed with gzip. Read as its decompressed content, and only once that is known whole.

A file is decompressed twice: first to the end, to know that it is complete (gzip writes while we look), undamaged (its
checksum stands at the end) and no bomb; then, in bounded memory, for its lines. Offsets count decompressed bytes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ragwatch.sources.tail.content import Content, PlainContent
from ragwatch.sources.tail.descriptors import SHARED, DescriptorBudget, FileHandle
from ragwatch.sources.tail.disk import GZIP, open_regular, size_and_time
from ragwatch.sources.tail.identity import HEAD, TAIL, FileIdentity

READ, PIECE = 1 << 18, 1 << 20
TRUSTED = 64 << 20
"""Decompressed bytes up to which no ratio is suspicious: they cost little."""
RATIO = 500
"""Decompressed bytes per byte on disk above which this is a bomb. Deflate ends at 1032; logs stay below 100."""
LARGEST = 64 << 30
"""Decompressed bytes above which a rotation is refused."""

_GZIP = zlib.MAX_WBITS | 16
_MAGIC = b"\x1f\x8b"

Flaw = Literal["gz_truncated", "gz_damaged", "gz_bomb"]


class GzipRefusedError(OSError):
    """It is packed in a way that cannot, or should not, be read.

    Attributes:
        flaw: What is counted.
    """

    def __init__(self, flaw: Flaw, why: str) -> None:
        super().__init__(why)
        self.flaw = flaw


def unpack(read: Callable[[int, int], bytes], end: int) -> Iterator[bytes]:
    """The decompressed content of the first `end` bytes, all members, in pieces of at most 1 MiB.

    Args:
        read: Gives so many bytes from an offset on.
        end: Bytes that count.

    Raises:
        RefusedError: It ends early, is damaged, or is far larger than it should be. Earlier pieces may be wrong then.
    """
    at = out = 0
    data = b""
    machine: Any = zlib.decompressobj(wbits=_GZIP)
    while True:
        if not data:
            data = read(min(READ, end - at), at)
            at += len(data)
        if machine is None:
            data = data.lstrip(b"\0")  # tapes and block devices pad
            if not data and at < end:
                continue
            if not data or not _MAGIC.startswith(data[:2]):
                return  # what follows the last member is ignored, as gzip does
            machine = zlib.decompressobj(wbits=_GZIP)
        ended = not data
        piece = _next_piece(machine, data)
        out += len(piece)
        if out > LARGEST or out > max(TRUSTED, RATIO * at):
            raise GzipRefusedError("gz_bomb", f"more than {out} bytes in {at}")
        if piece:
            yield piece
        elif ended and not machine.eof:
            raise GzipRefusedError("gz_truncated", f"ends within its compressed data, after {end} bytes")
        data = machine.unused_data if machine.eof else machine.unconsumed_tail
        machine = None if machine.eof else machine


def _next_piece(machine: Any, data: bytes) -> bytes:  # noqa: ANN401 - zlib does not name the type of its machine
    try:
        piece: bytes = machine.decompress(data, PIECE)
    except zlib.error as error:
        raise GzipRefusedError("gz_damaged", str(error)) from error
    return piece


class GzipContent:
    """The decompressed content of a file that is known to be whole. A window of it is in memory.

    Args:
        handle: Open for reading; closed by `close`.
        size: Bytes on disk.
        length: Decompressed bytes.
    """

    def __init__(self, handle: FileHandle, size: int, length: int) -> None:
        self.handle = handle
        self.packed: int | None = size
        self._size = size
        self._length = length
        self._head = b""
        self._rewind()

    def pread(self, size: int, offset: int) -> bytes:
        """See `Content.pread`. Going back further than 64 bytes begins again at the first byte."""
        if offset + size <= len(self._head):
            return self._head[offset : offset + size]
        if offset < self._start:
            self._rewind()
        while self._start + len(self._window) < offset + size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            if len(self._head) < HEAD and self._start + len(self._window) == len(self._head):
                self._head += piece[: HEAD - len(self._head)]
            self._window += piece
            passed = min(max(0, offset - TAIL - self._start), len(self._window))
            del self._window[:passed]
            self._start += passed
        at = offset - self._start
        return bytes(self._window[at : at + size])

    def state(self) -> tuple[int, int]:
        """See `Content.state`. A file that changed must be examined again, so it cannot be read as it is."""
        status = self.handle.status()
        if status.st_size != self._size:
            raise GzipRefusedError("gz_truncated", "changed while it was read")
        return self._length, status.st_mtime_ns

    def again(self) -> GzipContent:
        """See `Content.again`."""
        return GzipContent(self.handle.again(), self._size, self._length)

    def close(self) -> None:
        """See `Content.close`."""
        self.handle.close()

    def _rewind(self) -> None:
        self._pieces = unpack(self.handle.read, self._size)
        self._window = bytearray()
        self._start = 0


@dataclass(slots=True)
class _GzipCheck:
    """What examining a packed file, as it was then, said; `told` once its flaw is counted."""

    path: str
    state: tuple[int, int]
    length: int
    flaw: Flaw | None
    why: str
    since: float
    told: bool = False


class ContentOpener:
    """Opens files, packed or plain, and remembers what is wrong with which.

    Args:
        clock: Monotonic seconds.
        patience: Seconds that a truncated file must stay as it is before it is counted: gzip may be at work.
        descriptors: The budget of open files.
    """

    def __init__(self, clock: Callable[[], float], patience: float, descriptors: DescriptorBudget = SHARED) -> None:
        self._descriptors = descriptors
        self._clock = clock
        self._patience = patience
        self._known: dict[FileIdentity, _GzipCheck] = {}

    def open(self, path: str, ino: int | None = None) -> tuple[Content, os.stat_result] | None:
        """Open for reading; None when it is not a regular file (any more).

        Args:
            path: Its name.
            ino: The inode that had this name.

        Raises:
            FileNotFoundError: The name is gone, or another file has it by now.
            RefusedError: It is packed, and not to be read as it is now.
            OSError: It cannot be opened, or not be read.
        """
        opened = open_regular(path, ino)
        if opened is None:
            return None
        fd, status = opened
        handle = FileHandle(fd, path, status, self._descriptors)
        try:
            if not path.endswith(GZIP):
                handle.read(1, 0)  # a file on a sick disk can be opened, and is as good as closed
                return PlainContent(handle), status
            known = self._examined(path, handle, status)
        except OSError:
            handle.close()
            raise
        if known.flaw is None:
            return GzipContent(handle, status.st_size, known.length), status
        handle.close()
        raise GzipRefusedError(known.flaw, known.why)

    def changed(self) -> bool:
        """Whether a file that was refused is another one now, or gone. Such are forgotten."""
        gone = [each for each, known in self._known.items() if known.flaw and size_and_time(known.path) != known.state]
        for each in gone:
            del self._known[each]
        return bool(gone)

    def refuses(self, paths: set[str]) -> bool:
        """Whether one of these was refused."""
        return any(known.flaw and known.path in paths for known in self._known.values())

    def refusals(self) -> dict[str, str]:
        """Refused files, and why."""
        return {known.path: known.why for known in self._known.values() if known.flaw}

    def flaws(self) -> list[tuple[str, Flaw]]:
        """RefusedError files that are not counted yet, and why they were refused."""
        now = self._clock()
        found = []
        for known in self._known.values():
            patient = known.flaw == "gz_truncated" and now - known.since < self._patience
            if known.flaw and not known.told and not patient:
                known.told = True
                found.append((known.path, known.flaw))
        return found

    def _examined(self, path: str, handle: FileHandle, status: os.stat_result) -> _GzipCheck:
        identity, state = FileIdentity(status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
        known = self._known.get(identity)
        if known is None or known.state != state:
            known = _GzipCheck(path, state, 0, None, "", self._clock())
            try:
                known.length = sum(map(len, unpack(handle.read, status.st_size)))
            except GzipRefusedError as refused:
                known.flaw, known.why = refused.flaw, str(refused)
            self._known[identity] = known
        known.path = path
        return known
