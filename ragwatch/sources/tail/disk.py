"""File system queries: matching patterns, missing directories, names of rotations, and opening regular files."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ragwatch.sources.tail.identity import FileIdentity, FilePosition

GZIP = ".gz"
TIMESTAMP_SECONDS = 1.0
"""Timestamp granularity: two changes within it may get the same file time. 1 to 4 ms on Linux, 1 s on old NFS."""
GONE = "no such directory; create or mount it, or correct `path` in the configuration"
UNMOUNTED = (
    "no file matches, and the directory lies on another file system than the files that were read in it; "
    "mount that one again, or correct `path` in the configuration"
)
NOT_UTF8 = "its name is not UTF-8; rename it"

_COMPRESSED = (".zst", ".bz2", ".xz", ".lz4", ".zip")
_ROTATED = re.compile(r"(?P<name>.+?)[._-](?:\d[\dTZ.:_+-]*(?:\.backup)?|old|prev)")
"""`.backup` is logrotate's name for a log that the service began before logrotate could `create` it."""


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A file that the patterns match, with all its paths (hard links, symlinks)."""

    paths: tuple[str, ...]
    size: int
    mtime_ns: int


def discover(patterns: Iterable[str]) -> tuple[dict[FileIdentity, MatchedFile], set[str], dict[str, str]]:
    """Find the files that match.

    A FIFO would block the reader and a device has side effects, so neither is ever opened.

    Returns:
        The regular files in order of their paths; paths that match and are no text files; paths and directories that
        cannot be accessed, or whose name cannot be stored in a cursor, with the reason: there may be files in them.
    """
    files: dict[FileIdentity, MatchedFile] = {}
    skipped: set[str] = set()
    unreadable: dict[str, str] = {}
    matches = {pattern: sorted(_expand(pattern)) for pattern in patterns}
    for path in dict.fromkeys(path for paths in matches.values() for path in paths):
        try:
            status = os.stat(path)  # noqa: PTH116 - pathlib would cost more than the call on every poll
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted since it was listed, or a dangling link: the next scan sees
        except OSError as error:
            unreadable[printable(path)] = error.strerror or str(error)
            continue
        if not stat.S_ISREG(status.st_mode) or path.endswith(_COMPRESSED):
            skipped.add(path)
            continue
        if not is_utf8(path):
            unreadable[printable(path)] = NOT_UTF8
            continue
        identity = FileIdentity(status.st_dev, status.st_ino)
        other_paths = files[identity].paths if identity in files else ()
        files[identity] = MatchedFile((*other_paths, path), status.st_size, status.st_mtime_ns)
    for pattern in [pattern for pattern, paths in matches.items() if not paths]:
        unreadable |= _unlistable_directory(pattern)
    return files, skipped, unreadable


def is_utf8(path: str) -> bool:
    """Whether a path can be stored as text. Others hold bytes that Python shows as lone surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(path: str) -> str:
    r"""A path with its bytes that are not UTF-8 as escapes, such as `\xff`."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _expand(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207 - speed


def _unlistable_directory(pattern: str) -> dict[str, str]:
    """The directory above the first wildcard, if it exists and cannot be listed, and why.

    `glob` treats such a directory as empty.
    """
    directory = pattern
    while glob.has_magic(directory):
        directory = os.path.dirname(directory)  # noqa: PTH120 - a string stays a string
    try:
        os.scandir(directory or ".").close()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        return {directory: error.strerror or str(error)}
    return {}


def missing_directories(
    patterns: Iterable[str], positions: Iterable[FilePosition], matched: Mapping[FileIdentity, MatchedFile]
) -> dict[str, str]:
    """Watched directories that do not exist or are no longer mounted, and what to do. Empty ones are not missing."""
    absent: dict[str, str] = {}
    for pattern in patterns:  # the directory above its first wildcard
        directory = os.path.dirname(pattern)  # noqa: PTH120 - a string stays a string
        while glob.has_magic(directory):
            directory = os.path.dirname(directory)  # noqa: PTH120 - the same
        try:
            os.stat(os.path.join(directory or ".", ""))  # noqa: PTH116, PTH118 - the slash: fails for a file in its place
        except (FileNotFoundError, NotADirectoryError):
            absent[directory] = GONE
        except OSError:
            continue  # it exists and cannot be accessed: that is reported as unreadable
    return absent | _unmounted(positions, matched)


def _unmounted(positions: Iterable[FilePosition], matched: Mapping[FileIdentity, MatchedFile]) -> dict[str, str]:
    """Directories whose files were on another device, and in which nothing matches now."""
    devices: dict[str, set[int]] = {}
    for position in positions:
        devices.setdefault(os.path.dirname(position.path), set()).add(position.dev)  # noqa: PTH120 - as above
    suspects = [directory for directory, numbers in devices.items() if _device(directory) not in {None, *numbers}]
    if not suspects:
        return {}
    read = {os.path.dirname(os.path.realpath(path)) for item in matched.values() for path in item.paths}  # noqa: PTH120
    return dict.fromkeys((directory for directory in suspects if directory not in read), UNMOUNTED)


def _device(directory: str) -> int | None:
    try:
        return os.stat(directory).st_dev  # noqa: PTH116 - a string stays a string
    except OSError:
        return None


def directories_of(pattern: str) -> list[str]:
    """The directories in which this pattern may match."""
    return _expand(os.path.dirname(pattern) or ".")  # noqa: PTH120 - a string stays a string


def origins_of_rotations(pattern: str) -> set[str]:
    """Paths, such as this pattern matches, under which the existing rotations were written."""
    return {origin for path in _expand(f"{pattern}[._-]*") if (origin := origin_of(path))}


def has_left(path: str, identity: FileIdentity) -> bool:
    """Whether this path certainly no longer leads to this file: an access error is no proof."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string stays a string
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return identity != (status.st_dev, status.st_ino)


def size_and_mtime(path: str) -> tuple[int, int] | None:
    """Bytes on disk and modification time (ns) of a path, None when they are not available."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string stays a string
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def rotated_name(path: str) -> str | None:
    """The path before rotation, None when this does not look like a rotation: `a.jsonl.1` -> `a.jsonl`."""
    match = _ROTATED.fullmatch(path)
    return match["name"] if match else None


def origin_of(path: str) -> str | None:
    """The path under which a rotation, compressed or not, was written. None when it does not look like a rotation."""
    plain = path.removesuffix(GZIP)
    return rotated_name(plain) or (plain if plain != path else None)


def family(path: str) -> str:
    """The path that a file and all its rotations share. It is only a hint: content is the proof."""
    return origin_of(path) or path


def open_regular(path: str, ino: int | None = None) -> tuple[int, os.stat_result] | None:
    """Open for reading; None when it is not a regular file (any more). `ino` is the inode that was at this path.

    Raises:
        FileNotFoundError: The path does not exist, or another file is there by now.
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
