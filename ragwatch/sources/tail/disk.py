"""File system queries: matching patterns, missing and changed directories, names of rotations, opening regular files.

Logrotate renames every rotation on each run: `a.5` becomes `a.6`, then `a.4` becomes `a.5`, and so on down to `a`.
Listing a directory takes longer than one of these renames. It may meet a file under two names, or under none, and a
name may lead to another file a moment later. So a file is opened by its inode, whatever its name is by then, and counts
as deleted only when two listings in a row have missed it: each run renames it once.
"""

import errno
import glob
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragwatch.sources.tail.identity import FileIdentity, FilePosition

GZIP = ".gz"
TIMESTAMP_SECONDS = 1.0
"""Timestamp granularity: two changes within it may get the same file time. 1 to 4 ms on Linux, 1 s on old NFS."""
GONE = "no such directory; create or mount it, or correct `path` in the configuration"
UNMOUNTED = (
    "no file matches, and the directory lies on another file system than the files that were read in it; "
    "mount that one again, or correct `path` in the configuration"
)
MAX_ATTEMPTS = 8
"""How often a file is searched for under another name before that is postponed. One attempt rarely fails."""
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
            status = os.stat(path)
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
    return glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else [pattern]


def _above_wildcards(pattern: str) -> str:
    """The directory above the first wildcard of a pattern."""
    directory = os.path.dirname(pattern)
    while glob.has_magic(directory):
        directory = os.path.dirname(directory)
    return directory


def _unlistable_directory(pattern: str) -> dict[str, str]:
    """The directory of a pattern, if it exists and cannot be listed, and why. `glob` treats such a one as empty."""
    directory = _above_wildcards(pattern)
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
    for directory in map(_above_wildcards, patterns):
        try:
            os.stat(os.path.join(directory or ".", ""))
        except (FileNotFoundError, NotADirectoryError):
            absent[directory] = GONE
        except OSError:
            continue  # it exists and cannot be accessed: that is reported as unreadable
    return absent | _unmounted(positions, matched)


def _unmounted(positions: Iterable[FilePosition], matched: Mapping[FileIdentity, MatchedFile]) -> dict[str, str]:
    """Directories whose files were on another device, and in which nothing matches now."""
    devices: dict[str, set[int]] = {}
    for position in positions:
        devices.setdefault(os.path.dirname(position.path), set()).add(position.dev)
    suspects = [
        directory
        for directory, numbers in devices.items()
        if (status := status_of(directory)) is not None and status.st_dev not in numbers
    ]
    if not suspects:
        return {}
    read = {os.path.dirname(os.path.realpath(path)) for item in matched.values() for path in item.paths}
    return dict.fromkeys((directory for directory in suspects if directory not in read), UNMOUNTED)


def directories_of(pattern: str) -> list[str]:
    """The directories in which this pattern may match."""
    return _expand(os.path.dirname(pattern) or ".")


def origins_of_rotations(pattern: str) -> set[str]:
    """Paths, such as this pattern matches, under which the existing rotations were written."""
    return {origin for path in _expand(f"{pattern}[._-]*") if (origin := origin_of(path))}


def has_left(path: str, identity: FileIdentity) -> bool:
    """Whether this path certainly no longer leads to this file: an access error is no proof."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return identity != (status.st_dev, status.st_ino)


def status_of(path: str) -> os.stat_result | None:
    """The status of what is at a path, None when it is not available."""
    try:
        return os.stat(path)
    except OSError:
        return None


def size_and_mtime(path: str) -> tuple[int, int] | None:
    """Bytes on disk and modification time (ns) of a path, None when they are not available."""
    status = status_of(path)
    return None if status is None else (status.st_size, status.st_mtime_ns)


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


@dataclass(slots=True)
class DirectoryListing:
    """The entries of a directory. Symbolic links are left out: their target has its name elsewhere."""

    directory: str  # its path
    device: int  # its device; that of its nearest ancestor when it does not exist
    paths: Mapping[int, str]  # path by inode

    def update(self) -> None:
        """List the directory again: a file may have another name by now."""
        self.paths = _stable_paths(self.directory)


def list_directory(directory: str) -> DirectoryListing | None:
    """List a directory without a `stat` of each entry. A missing one is empty; None when it cannot be listed."""
    try:
        return DirectoryListing(directory, Path(directory).stat().st_dev, _stable_paths(directory))
    except FileNotFoundError:
        above = next(parent for parent in Path(directory).absolute().parents if parent.exists())
        return DirectoryListing(directory, above.stat().st_dev, {})
    except OSError:
        return None


def _stable_paths(directory: str) -> Mapping[int, str]:
    """Paths by inode: lists until two listings agree; if none do, the union of the last two."""
    before = _paths_by_inode(directory)
    for _ in range(MAX_ATTEMPTS):
        now = _paths_by_inode(directory)
        if now == before:
            return now
        earlier, before = before, now
    return earlier | before


def _paths_by_inode(directory: str) -> dict[int, str]:
    with os.scandir(directory) as entries:
        return {entry.inode(): entry.path for entry in entries if not entry.is_symlink()}


class DirectoryWatch:
    """Detects directories in which names were added, removed or changed, by their modification times."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[int | None, float | None]] = {}

    def changed(self, directory: str, now: float) -> bool:
        """Whether this directory may have changed since the last call for it. True on the first call."""
        status = status_of(directory)
        if status is None:
            return False  # it cannot be listed either
        before, since = self._states.get(directory, (None, None))
        if status.st_mtime_ns != before:
            since = now
            self._states[directory] = (status.st_mtime_ns, now)
        elif since is not None and now - since >= TIMESTAMP_SECONDS:  # report it once more, then it is certain
            self._states[directory] = (before, None)
        return since is not None

    def in_changed_directories(self, paths: Collection[str], now: float) -> set[str]:
        """Paths whose directories have changed: they may have been copied before they were truncated."""
        changed = {directory for directory in set(map(os.path.dirname, paths)) if self.changed(directory, now)}
        return {path for path in paths if os.path.dirname(path) in changed}
