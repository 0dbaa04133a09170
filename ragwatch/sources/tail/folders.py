"""Folders: whether names have come, gone or changed since the last look."""

from __future__ import annotations

import os
from collections.abc import Iterable

TICK = 1.0
"""Seconds within which a file system may give two changes the same time: 1 to 4 ms on Linux, 1 s on old NFS."""


class DirectoryWatch:
    """Remembers when folders changed. By their own times, and monotonic seconds between looks."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int | None, float | None]] = {}

    def changed(self, directory: str, now: float) -> bool:
        """Whether this folder may have changed since it was asked about last. The first time it has."""
        try:
            mtime_ns = os.stat(directory).st_mtime_ns  # noqa: PTH116 - a string stays a string
        except OSError:
            return False  # nothing can be known, so nothing has come
        before, since = self._seen.get(directory, (None, None))
        if mtime_ns != before:
            since = now
            self._seen[directory] = (mtime_ns, now)
        elif since is not None and now - since >= TICK:  # one more look, and it is certain
            self._seen[directory] = (mtime_ns, None)
        return since is not None

    def stirred(self, paths: Iterable[str], now: float) -> set[str]:
        """Paths in whose folders names have changed: a copy may have been made of them before they were emptied."""
        by_folder: dict[str, set[str]] = {}
        for path in paths:
            by_folder.setdefault(os.path.dirname(path), set()).add(path)  # noqa: PTH120 - a string stays a string
        return {path for folder, names in by_folder.items() if self.changed(folder, now) for path in names}
