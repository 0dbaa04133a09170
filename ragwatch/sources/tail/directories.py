"""Directory listings by inode, opening a file while names are being rotated, and detection of changed directories.

Logrotate renames every rotation on each run: `a.5` becomes `a.6`, then `a.4` becomes `a.5`, and so on down to `a`.
Listing a directory takes longer than one of these renames. It may meet a file under two names, or under none, and a
name may lead to another file a moment later. So a file is opened by its inode, whatever its name is by then, and counts
as deleted only when two listings in a row have missed it: each run renames it once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragwatch.sources.tail.content import Content
from ragwatch.sources.tail.disk import TIMESTAMP_SECONDS
from ragwatch.sources.tail.gzip import ContentOpener

MAX_ATTEMPTS = 8
"""How often a file is searched for under another name before that is postponed. One attempt rarely fails."""


@dataclass(slots=True)
class DirectoryListing:
    """The entries of a directory. Symbolic links are left out: their target has its name elsewhere.

    Attributes:
        directory: Its path.
        device: Its device; that of its nearest ancestor when it does not exist.
        paths: Path by inode.
    """

    directory: str
    device: int
    paths: Mapping[int, str]

    def open(self, ino: int, opener: ContentOpener) -> tuple[str, Content, os.stat_result] | None:
        """Open the file with this inode, whatever its name in the directory is by now. Updates `paths` as needed.

        Returns:
            Its path, content and status. None when there is no such file, or it is not a regular one.

        Raises:
            OSError: It cannot be opened at present, or its names changed too fast: that proves nothing.
        """
        for _ in range(MAX_ATTEMPTS):
            path = self.paths.get(ino)
            if path is None:
                return None
            try:
                opened = opener.open(path, ino)
            except FileNotFoundError:
                self.paths = _stable_paths(self.directory)
            else:
                return None if opened is None else (path, *opened)
        raise OSError(errno.EAGAIN, "its name keeps changing")


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
        try:
            mtime_ns = os.stat(directory).st_mtime_ns  # noqa: PTH116 - a string stays a string
        except OSError:
            return False  # it cannot be listed either
        before, since = self._states.get(directory, (None, None))
        if mtime_ns != before:
            since = now
            self._states[directory] = (mtime_ns, now)
        elif since is not None and now - since >= TIMESTAMP_SECONDS:  # report it once more, then it is certain
            self._states[directory] = (mtime_ns, None)
        return since is not None

    def in_changed_directories(self, paths: Iterable[str], now: float) -> set[str]:
        """Paths whose directories have changed: they may have been copied before they were truncated."""
        by_directory: dict[str, set[str]] = {}
        for path in paths:
            by_directory.setdefault(os.path.dirname(path), set()).add(path)  # noqa: PTH120 - a string stays a string
        return {path for directory, members in by_directory.items() if self.changed(directory, now) for path in members}
