"""Listing: the names in one folder, and the way to a file although names change hands while we look.

Logrotate gives every rotation another name on every turn: `a.5` becomes `a.6`, then `a.4` becomes `a.5`, and so on down
to `a`. A look through a folder takes longer than one of these steps. It may meet a file under two names, or under none,
and what a name meant a moment ago it means no longer. So a file is opened by its inode, whatever it is called by then,
and is gone only when two looks, one after the other, have missed it: each turn renames it once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from ragwatch.sources.tail.content import Content
from ragwatch.sources.tail.gzip import ContentOpener

LOOKS = 8
"""How often a file is looked for under another name, before that is put off: each time is a chance of thousands."""


class DirectoryListing:
    """Everything in a folder. Symbolic links are left out: what they mean has its name elsewhere.

    Args:
        directory: Its path.
        device: Where it lies; where its nearest ancestor lies when it is gone.
        paths: Path by inode.
    """

    def __init__(self, directory: str, device: int, paths: Mapping[int, str]) -> None:
        self.directory = directory
        self.device = device
        self.paths = paths

    def open(self, ino: int, packs: ContentOpener) -> tuple[str, Content, os.stat_result] | None:
        """Open the file with this inode, wherever in the folder it is by now. `paths` are as new as that needs.

        Returns:
            Its path, content and status. None when there is no such file, or it is no regular one.

        Raises:
            OSError: It cannot be opened at present, or its names changed too fast: that proves nothing.
        """
        for _ in range(LOOKS):
            path = self.paths.get(ino)
            if path is None:
                return None
            try:
                opened = packs.open(path, ino)
            except FileNotFoundError:
                self.paths = _names(self.directory)
            else:
                return None if opened is None else (path, *opened)
        raise OSError(errno.EAGAIN, "its name keeps changing")


def list_directory(directory: str) -> DirectoryListing | None:
    """List a directory without a look at each entry. A missing one is empty; None when nothing can be known."""
    try:
        return DirectoryListing(directory, Path(directory).stat().st_dev, _names(directory))
    except FileNotFoundError:
        above = next(parent for parent in Path(directory).absolute().parents if parent.exists())
        return DirectoryListing(directory, above.stat().st_dev, {})
    except OSError:
        return None


def _names(directory: str) -> Mapping[int, str]:
    """Paths by inode, by as many looks as it takes until two agree; if none do, what the last two have met."""
    before = _look(directory)
    for _ in range(LOOKS):
        now = _look(directory)
        if now == before:
            return now
        earlier, before = before, now
    return earlier | before


def _look(directory: str) -> dict[int, str]:
    with os.scandir(directory) as entries:
        return {entry.inode(): entry.path for entry in entries if not entry.is_symlink()}
