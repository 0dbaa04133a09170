"""Lock: one process owns a state directory."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ragwatch.errors import StoreError


class StateLock:
    """Holds `directory/ragwatch.lock` until closed; the kernel lets go of it when the process dies, however it dies.

    Args:
        directory: Made (mode 0700) when missing. One that is there is closed to others where it is ours to close.

    Raises:
        StoreError: Another process holds it, or the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        try:
            _make(directory)
            self._file = os.open(directory / "ragwatch.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(
                f"state: cannot use {directory}: {error.strerror}; give a directory we may write"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"state: {directory} is locked by process {owner}; stop it, or give each ragwatch its own directory"
            ) from error
        with suppress(OSError):  # on a full disk it holds all the same, without a name
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Let another process in."""
        os.close(self._file)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        strangers = [each for each in directory.iterdir() if not each.name.startswith("ragwatch.")]
        if not strangers:  # `state: /tmp` must not close /tmp to everybody else
            with suppress(PermissionError):  # a mounted volume belongs to root, and its group lets us write
                directory.chmod(0o700)
