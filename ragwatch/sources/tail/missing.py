"""Missing: watched directories that are not there. An empty directory is none of them: a log may yet be written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from glob import has_magic

from ragwatch.sources.tail.disk import MatchedFile
from ragwatch.sources.tail.identity import FileIdentity, FilePosition

GONE = "no such directory; create or mount it, or correct `path` in the configuration"
UNMOUNTED = (
    "no file matches, and the directory lies on another file system than the files that were read in it; "
    "mount that one again, or correct `path` in the configuration"
)


def missing(
    patterns: Iterable[str], positions: Iterable[FilePosition], found: Mapping[FileIdentity, MatchedFile]
) -> dict[str, str]:
    """Directories under which files should be, and which are gone or no longer mounted, and what to do.

    Args:
        patterns: Paths and globs that are watched.
        positions: Every known place in a file.
        found: What matches at present.
    """
    return _absent(patterns) | _unmounted(positions, found)


def _absent(patterns: Iterable[str]) -> dict[str, str]:
    """For each pattern the directory above its first wildcard, if that is not there."""
    absent: dict[str, str] = {}
    for pattern in patterns:
        folder = os.path.dirname(pattern)  # noqa: PTH120 - a string stays a string
        while has_magic(folder):
            folder = os.path.dirname(folder)  # noqa: PTH120 - the same
        try:
            os.stat(os.path.join(folder or ".", ""))  # noqa: PTH116, PTH118 - with a slash: a file in its place is none
        except (FileNotFoundError, NotADirectoryError):
            absent[folder] = GONE
        except OSError:
            continue  # it is there, and cannot be looked into: that is told as unreadable
    return absent


def _unmounted(positions: Iterable[FilePosition], found: Mapping[FileIdentity, MatchedFile]) -> dict[str, str]:
    """Directories whose files were on another device, and in which nothing matches now."""
    devices: dict[str, set[int]] = {}
    for position in positions:
        devices.setdefault(os.path.dirname(position.path), set()).add(position.dev)  # noqa: PTH120 - as above
    suspects = [folder for folder, known in devices.items() if _device(folder) not in {None, *known}]
    if not suspects:
        return {}
    read = {os.path.dirname(os.path.realpath(path)) for item in found.values() for path in item.paths}  # noqa: PTH120
    return dict.fromkeys((folder for folder in suspects if folder not in read), UNMOUNTED)


def _device(folder: str) -> int | None:
    try:
        return os.stat(folder).st_dev  # noqa: PTH116 - a string stays a string
    except OSError:
        return None
