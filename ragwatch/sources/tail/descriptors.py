"""Descriptors: how many log files one process keeps open, and handles that may be closed and opened again.

More files can match than a process may have open. So all sources share one budget: when it is spent, the files that
were written least recently are closed, those that are read to their end first, and each is opened again when it is
read next. A closed file is identified by device and inode; callers compare the content, as they do after a restart.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable, Iterable

from ragwatch.sources.tail.disk import open_regular
from ragwatch.sources.tail.identity import FileIdentity

KEPT_BACK = 64
"""Descriptors that logs never use: for connections, the store, clients of judges, and listing folders."""


SPARE = 32
"""Files above the budget that stay open because they were deleted or renamed before they were read to their end."""


class FileGoneError(FileNotFoundError):
    """A file that was closed is no longer there under the name it had."""


def allowed() -> int:
    """Files that may be open: the soft limit, less 64 and at least a quarter of it, and never none.

    The quarter is for the server's connections, of which there may be 256 where the limit is the usual 1024.
    """
    soft = most_open()
    return max(soft // 8, soft - max(KEPT_BACK, soft // 4), 1)


def most_open() -> int:
    """The soft limit of open files of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


class DescriptorBudget:
    """The budget. Safe to use from several threads.

    Args:
        most: How many files may be open at present.
    """

    def __init__(self, most: Callable[[], int] = allowed) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: set[FileHandle] = set()

    def opened(self, handle: FileHandle) -> None:
        """Count an open file. Others are closed if that is one too many."""
        with self._lock:
            self._open.add(handle)
            most = self._most()
            if len(self._open) <= most:
                return
            victims = sorted(self._open - {handle}, key=lambda each: (not each.drained, each.written))
            self._release(victims, most - most // 16)  # several at once, so that the search is paid once
            if len(self._open) > most + SPARE:
                self._release(victims, most, lose=True)

    def closed(self, handle: FileHandle) -> None:
        """This file is closed."""
        with self._lock:
            self._open.discard(handle)

    def _release(self, victims: Iterable[FileHandle], most: int, *, lose: bool = False) -> None:
        for victim in victims:
            if len(self._open) <= most:
                return
            if victim.release(lose=lose):
                self._open.discard(victim)


SHARED = DescriptorBudget()
"""The budget of this process: the kernel's limit is one for all of its sources."""


class FileHandle:
    """An open file that may be closed whenever it is not being read, and is opened again when it is.

    Args:
        fd: Open for reading.
        path: Its name.
        status: What the file system says of it.
        descriptors: The budget it counts against.

    Attributes:
        fd: None while it is closed.
        path: Name under which it is opened again.
        written: Modification time (ns) when it was looked at last.
        drained: Whether it is read to its end, as far as is known.
    """

    __slots__ = ("_descriptors", "_turn", "drained", "fd", "identity", "path", "written")

    def __init__(self, fd: int, path: str, status: os.stat_result, descriptors: DescriptorBudget) -> None:
        self.fd: int | None = fd
        self.path = path
        self.identity = FileIdentity(status.st_dev, status.st_ino)
        self.written = status.st_mtime_ns
        self.drained = False
        self._turn = threading.Lock()
        self._descriptors = descriptors
        descriptors.opened(self)

    def read(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset` on.

        Raises:
            GoneError: It was closed, and its name no longer means this file.
            OSError: It cannot be opened, or not be read.
        """
        with self._turn:
            return os.pread(self._opened(), size, offset)

    def status(self) -> os.stat_result:
        """What the file system says of it now; a closed file is not opened for that.

        Raises:
            GoneError: It was closed, and its name no longer means this file.
            OSError: It cannot be asked.
        """
        with self._turn:
            status = self._by_name() if self.fd is None else os.fstat(self.fd)
        self.written = status.st_mtime_ns
        return status

    def again(self) -> FileHandle:
        """The same file once more.

        Raises:
            GoneError: It was closed, and its name no longer means this file.
            OSError: It cannot be opened.
        """
        with self._turn:
            fd = os.dup(self._opened())
            status = os.fstat(fd)
        return FileHandle(fd, self.path, status, self._descriptors)

    def in_place(self) -> bool:
        """Whether its name can be relied on: it is open, or its name still means it, or that cannot be asked."""
        if self.fd is not None:
            return True
        try:
            self.status()
        except FileGoneError:
            return False
        except OSError:
            return True
        return True

    def release(self, *, lose: bool = False) -> bool:
        """Close the file until it is read again. Returns whether it is closed: not while somebody reads it.

        Args:
            lose: Close it also if it is not read to its end and its name leads elsewhere, so that it may be lost.
        """
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self.drained or lose or self._is_named():
                self._shut()
            return self.fd is None
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close the file for good."""
        with self._turn:
            self._shut()
        self._descriptors.closed(self)

    def abandon(self) -> None:
        """Forget the descriptor without closing it: its number may be another file's by now."""
        with self._turn:
            self.fd = None
        self._descriptors.closed(self)

    def _is_named(self) -> bool:
        try:
            self._by_name()
        except OSError:
            return False
        return True

    def _shut(self) -> None:
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def _opened(self) -> int:
        if self.fd is None:
            try:
                opened = open_regular(self.path, self.identity.ino)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise FileGoneError(errno.ENOENT, "closed, and no longer under this name", self.path) from error
            if opened is None:
                raise FileGoneError(errno.ENOENT, "closed, and no longer a regular file", self.path)
            fd, status = opened
            if status.st_dev != self.identity.dev:
                os.close(fd)
                raise FileGoneError(errno.ENOENT, "closed, and its file system is another one now", self.path)
            self.fd = fd
            self._descriptors.opened(self)
        return self.fd

    def _by_name(self) -> os.stat_result:
        try:
            status = os.stat(self.path)  # noqa: PTH116 - pathlib would cost more than the call on every poll
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileGoneError(errno.ENOENT, "closed, and no longer under this name", self.path) from error
        if self.identity != (status.st_dev, status.st_ino):
            raise FileGoneError(errno.ENOENT, "closed, and another file has its name", self.path)
        return status
