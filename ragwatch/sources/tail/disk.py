"""Disk: the few things a tail asks of the file system. Nothing here remembers anything."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from ragwatch.sources.tail.identity import FileIdentity

GZIP = ".gz"
_COMPRESSED = (".zst", ".bz2", ".xz", ".lz4", ".zip")
_ROTATED = re.compile(r"(?P<name>.+?)[._-](?:\d[\dTZ.:_+-]*(?:\.backup)?|old|prev)")
"""`.backup` is logrotate's name for a log that the service began before logrotate could `create` it."""


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A file that the patterns match, under all its names (hard links, symlinks)."""

    paths: tuple[str, ...]
    size: int
    mtime_ns: int


def discover(patterns: Iterable[str]) -> tuple[dict[FileIdentity, MatchedFile], set[str], dict[str, str]]:
    """The regular files that match, in order of their names; names that match and are no text to follow; what hides.

    A FIFO would hang the reader and a device has side effects, so neither is ever opened. What hides is a name that
    cannot be looked at, or a folder that cannot be listed, with the reason: there may be files behind it.
    """
    found: dict[FileIdentity, MatchedFile] = {}
    skipped: set[str] = set()
    hidden: dict[str, str] = {}
    matching = {pattern: sorted(_expand(pattern)) for pattern in patterns}
    for path in dict.fromkeys(path for paths in matching.values() for path in paths):
        try:
            status = os.stat(path)  # noqa: PTH116 - pathlib would cost more than the call on every poll
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone since it was listed, or a link to nowhere: the next scan sees
        except OSError as error:
            hidden[path] = error.strerror or str(error)
            continue
        if not stat.S_ISREG(status.st_mode) or path.endswith(_COMPRESSED):
            skipped.add(path)
            continue
        identity = FileIdentity(status.st_dev, status.st_ino)
        known = found[identity].paths if identity in found else ()
        found[identity] = MatchedFile((*known, path), status.st_size, status.st_mtime_ns)
    for pattern in [each for each, paths in matching.items() if not paths]:
        hidden |= _closed(pattern)
    return found, skipped, hidden


def _expand(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207 - speed


def _closed(pattern: str) -> dict[str, str]:
    """The folder under which all that matches must be, if it is there and cannot be listed, and why.

    `glob` takes such a folder for an empty one.
    """
    folder = pattern
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)  # noqa: PTH120 - a string stays a string
    try:
        os.scandir(folder or ".").close()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        return {folder: error.strerror or str(error)}
    return {}


def folders_of(pattern: str) -> list[str]:
    """The folders in which this pattern may match."""
    return _expand(os.path.dirname(pattern) or ".")  # noqa: PTH120 - a string stays a string


def rotated_from(pattern: str) -> set[str]:
    """Names that this pattern would match, under which the rotations that are there were written."""
    return {origin for path in _expand(f"{pattern}[._-]*") if (origin := origin_of(path))}


def gone_from(path: str, identity: FileIdentity) -> bool:
    """Whether this name surely no longer means this file: an error that hides it is no proof."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string stays a string
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return identity != (status.st_dev, status.st_ino)


def size_and_time(path: str) -> tuple[int, int] | None:
    """Bytes on disk and modification time (ns) of what has this name, None when it cannot be asked."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string stays a string
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def rotated_name(path: str) -> str | None:
    """The path that a rotation gave this name to, None when it does not look like one: `a.jsonl.1` -> `a.jsonl`."""
    match = _ROTATED.fullmatch(path)
    return match["name"] if match else None


def origin_of(path: str) -> str | None:
    """The path under which a rotation was written, None when it does not look like one: also packed ones."""
    plain = path.removesuffix(GZIP)
    return rotated_name(plain) or (plain if plain != path else None)


def family(path: str) -> str:
    """What a file and its rotations, packed or not, have in common. Only ever a hint: content is the proof."""
    return origin_of(path) or path


def open_regular(path: str, ino: int | None = None) -> tuple[int, os.stat_result] | None:
    """Open for reading; None when it is not a regular file (any more).

    Args:
        path: Its name.
        ino: The inode that had this name.

    Raises:
        FileNotFoundError: The name is gone, or another file has it by now.
        OSError: It cannot be opened.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and ino in {None, status.st_ino}:
        return fd, status
    os.close(fd)
    if ino in {None, status.st_ino}:
        return None
    raise FileNotFoundError(errno.ENOENT, "another file has this name", path)
