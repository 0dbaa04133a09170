"""Lock file: gives one process exclusive use of a state directory; and the name of the worker that uses it."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ragwatch.errors import StoreError

PRIVATE = 0o600
"""Mode of every file in a state directory."""


class StateLock:
    """Holds a lock on `directory/ragwatch.lock` until closed. The kernel releases it when the process dies.

    A missing directory is created with mode 0700; the mode of an existing one is changed only if it contains no files
    but ours. Raises a `StoreError` if another process holds the lock, or the directory is not writable.
    """

    def __init__(self, directory: Path) -> None:
        try:
            _create(directory)
            self._file = os.open(directory / "ragwatch.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        except OSError as error:
            raise StoreError(
                f"state: cannot use {directory}: {error.strerror}; give a directory that this user may write"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"state: {directory} is locked by process {owner}; stop it, or give each ragwatch its own directory"
            ) from error
        with suppress(OSError):  # on a full disk the lock works without the process id
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._file)


def _create(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        others = [path for path in directory.iterdir() if not path.name.startswith("ragwatch.")]
        if not others:  # `state: /tmp` must not make /tmp private
            with suppress(PermissionError):  # a mounted volume may belong to root and be writable by its group
                directory.chmod(0o700)


def worker_name(directory: Path) -> str:
    """Return the name of the worker of a state directory, which is made once. The caller holds its lock."""
    path = directory / "ragwatch.worker"
    try:
        with suppress(FileNotFoundError):
            path.chmod(PRIVATE)  # others could read it once
            if name := path.read_text("utf-8").strip():
                return name
        name = uuid4().hex
        write_private(path, f"{name}\n")
    except (OSError, UnicodeError) as error:
        raise StoreError(f"state: cannot use {path}: {error}; give a directory that this user may write") from error
    return name


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE), "w") as file:
        file.write(text)
