"""File descriptor budget: how many log files one process keeps open, and file handles that reopen on demand.

More files can match than a process may have open. So all sources share one budget: when it is used up, the files that
were written least recently are closed, those that are read to their end first, and each is reopened when it is read
next. A closed file is identified by device and inode; callers compare the content, as they do after a restart.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable, Iterable

from ragwatch.sources.tail.disk import open_regular
from ragwatch.sources.tail.identity import FileIdentity

RESERVED_DESCRIPTORS = 64
"""Descriptors that logs never use: for connections, the store, clients of judges, and directory listings."""

MAX_OVER_BUDGET = 32
"""Files above the budget that stay open because they were deleted or renamed before they were read to their end."""


class FileGoneError(FileNotFoundError):
    """A closed file is no longer at its path."""


def max_open_files() -> int:
    """Log files that may be open: the soft limit, less 64 and at least a quarter of it, and at least 1.

    The quarter is for the server's connections, of which there may be 256 where the limit is the usual 1024.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        soft = 1 << 30
    return max(soft // 8, soft - max(RESERVED_DESCRIPTORS, soft // 4), 1)


class DescriptorBudget:
    """Limits how many files are open. Thread-safe."""

    def __init__(self, limit: Callable[[], int] = max_open_files) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._open: set[FileHandle] = set()

    def add(self, handle: FileHandle) -> None:
        """Count an open file. Closes others if that exceeds the budget."""
        with self._lock:
            self._open.add(handle)
            limit = self._limit()
            if len(self._open) <= limit:
                return
            candidates = sorted(self._open - {handle}, key=lambda other: (not other.at_end, other.mtime_ns))
            self._close_down_to(limit - limit // 16, candidates)  # several at once, so that the sort is paid once
            if len(self._open) > limit + MAX_OVER_BUDGET:
                self._close_down_to(limit, candidates, lose=True)

    def remove(self, handle: FileHandle) -> None:
        """Stop counting a file that was closed."""
        with self._lock:
            self._open.discard(handle)

    def _close_down_to(self, limit: int, candidates: Iterable[FileHandle], *, lose: bool = False) -> None:
        for handle in candidates:
            if len(self._open) <= limit:
                return
            if handle.release(lose=lose):
                self._open.discard(handle)


SHARED_BUDGET = DescriptorBudget()
"""The budget of this process: the kernel's limit covers all of its sources."""


class FileHandle:
    """A file that may be closed whenever it is not being read, and is reopened on the next read.

    Whatever reads it raises FileGoneError if it was closed and its path no longer leads to this file, and OSError if it
    cannot be opened or read, or its status is not available.

    Attributes:
        fd: The descriptor, None while the file is closed.
        mtime_ns: Modification time (ns) at the last status.
        at_end: Whether it is read to its end, as far as is known.
    """

    __slots__ = ("_descriptors", "_lock", "at_end", "fd", "identity", "mtime_ns", "path")

    def __init__(self, fd: int, path: str, status: os.stat_result, descriptors: DescriptorBudget) -> None:
        self.fd: int | None = fd
        self.path = path
        self.identity = FileIdentity(status.st_dev, status.st_ino)
        self.mtime_ns = status.st_mtime_ns
        self.at_end = False
        self._lock = threading.Lock()
        self._descriptors = descriptors
        descriptors.add(self)

    def read(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset` on."""
        with self._lock:
            return os.pread(self._reopened(), size, offset)

    def status(self) -> os.stat_result:
        """The file's status now. A closed file is not opened for that."""
        with self._lock:
            status = self._status_at_path() if self.fd is None else os.fstat(self.fd)
        self.mtime_ns = status.st_mtime_ns
        return status

    @property
    def is_deleted(self) -> bool:
        """Whether the open file has no name any more. False for a file that is closed."""
        with self._lock:
            return self.fd is not None and os.fstat(self.fd).st_nlink == 0

    def duplicate(self) -> FileHandle:
        """A second handle of the same file."""
        with self._lock:
            fd = os.dup(self._reopened())
            status = os.fstat(fd)
        return FileHandle(fd, self.path, status, self._descriptors)

    def is_reachable(self) -> bool:
        """Whether the file is open, its path still leads to it, or its path cannot be checked at present."""
        try:
            return self.fd is not None or bool(self.status())
        except OSError as error:
            return not isinstance(error, FileGoneError)

    def release(self, *, lose: bool = False) -> bool:
        """Close the file until it is read again. Returns whether it is closed: not while another thread reads it.

        With `lose` also if it is not read to its end and its path leads elsewhere, so that it may be lost.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self.at_end or lose or self._is_at_path():
                self._close_descriptor()
            return self.fd is None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the file and stop counting it."""
        with self._lock:
            self._close_descriptor()
        self._descriptors.remove(self)

    def abandon(self) -> None:
        """Forget the descriptor without closing it: its number may belong to another file by now."""
        with self._lock:
            self.fd = None
        self._descriptors.remove(self)

    def _is_at_path(self) -> bool:
        try:
            return bool(self._status_at_path())
        except OSError:
            return False

    def _close_descriptor(self) -> None:
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def _reopened(self) -> int:
        """The descriptor; opens the file if it is closed."""
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
            self._descriptors.add(self)
        return self.fd

    def _status_at_path(self) -> os.stat_result:
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileGoneError(errno.ENOENT, "closed, and no longer under this name", self.path) from error
        if self.identity != (status.st_dev, status.st_ino):
            raise FileGoneError(errno.ENOENT, "closed, and another file has its name", self.path)
        return status
