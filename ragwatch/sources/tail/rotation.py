"""Rotation detection: finds where the content of a rotated file is now: renamed, copied, compressed, or never seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ragwatch.sources.tail.content import Content, continues, edges_at
from ragwatch.sources.tail.directories import DirectoryListing
from ragwatch.sources.tail.disk import GZIP, family, origin_of
from ragwatch.sources.tail.gzip import ContentOpener
from ragwatch.sources.tail.identity import FileIdentity, FilePosition


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file, and the position at which to continue in it."""

    path: str
    content: Content
    position: FilePosition


def find_renamed(listing: DirectoryListing, position: FilePosition, opener: ContentOpener) -> OpenedFile | None:
    """Find the same file under whatever name it has now: same inode, same content. None if the inode was reused.

    Raises:
        OSError: It exists and cannot be opened at present.
    """
    opened = listing.open(position.ino, opener)
    if opened is None:
        return None
    path, content, status = opened
    try:
        if position.offset and position.fits(edges_at(content, position.offset)):
            return OpenedFile(path, content, _moved(position, status))
    except OSError:
        content.close()
        raise
    content.close()
    return None


def find_copy(
    listing: DirectoryListing,
    lost: FilePosition,
    tracked: Mapping[FileIdentity, FilePosition | None],
    opener: ContentOpener,
    *,
    on_error: Callable[[str, str, OSError], None],
    since: int = 0,
) -> OpenedFile | None:
    """Find a rotation of the same log with the content that was read (copytruncate, gzip), to continue there.

    Args:
        listing: Directory to search.
        lost: Position in content that is no longer where it was.
        tracked: See `FileTable.tracked`: followed files are skipped; the inode of a file that is only known from a
            cursor may belong to another file by now.
        opener: Opens files.
        on_error: Called with the path, the path it was written under, and the error, for files that cannot be read.
        since: Modification time (ns) below which compressed files are skipped: comparing one is expensive.
    """
    for path, content, status in _rotations(listing, {family(lost.path): since}, tracked, opener, on_error):
        try:
            if continues(content, lost):
                return OpenedFile(path, content, replace(_moved(lost, status), generation=0))
        except OSError as error:  # the first bytes were readable, others are not: the search goes on
            on_error(path, family(lost.path), error)
        content.close()
    return None


def new_rotations(
    listing: DirectoryListing,
    since: Mapping[str, int],
    tracked: Mapping[FileIdentity, FilePosition | None],
    opener: ContentOpener,
    *,
    is_copy: Callable[[OpenedFile], bool],
    on_error: Callable[[str, str, OSError], None],
) -> Iterator[OpenedFile]:
    """Find rotations that were never seen under their original path, to be read from their first byte.

    Args:
        listing: Directory to search.
        since: For each followed path, the modification time (ns) from which on a rotation is new. Older rotations were
            there before ragwatch was.
        tracked: See `find_copy`.
        opener: Opens files.
        is_copy: Whether the content may be a copy of one that is known.
        on_error: Called with the path, the path it was written under, and the error, for files that cannot be read.
    """
    for path, content, status in _rotations(listing, since, tracked, opener, on_error):
        origin = origin_of(path) or path
        position = FilePosition(status.st_dev, status.st_ino, origin, mtime_ns=status.st_mtime_ns)
        opened = OpenedFile(path, content, position)
        try:
            is_new = status.st_mtime_ns >= since[origin] and not is_copy(opened)
        except OSError as error:
            on_error(path, origin, error)
            is_new = False
        if is_new:
            yield opened
        else:
            content.close()


def _moved(position: FilePosition, status: os.stat_result) -> FilePosition:
    """The same position in a file with another identity."""
    return replace(position, dev=status.st_dev, ino=status.st_ino)


def _rotations(
    listing: DirectoryListing,
    origins: Mapping[str, int],
    tracked: Mapping[FileIdentity, FilePosition | None],
    opener: ContentOpener,
    on_error: Callable[[str, str, OSError], None],
) -> Iterator[tuple[str, Content, os.stat_result]]:
    """Open regular files that are not tracked and are named like a rotation of one of these paths.

    While a file that is being compressed still exists beside its compressed copy, only that file is read.
    """
    names = set(listing.paths.values())
    for ino, path in list(listing.paths.items()):
        origin = origin_of(path)
        identity = FileIdentity(listing.device, ino)
        position = tracked.get(identity)
        if (identity in tracked and position is None) or origin is None or origin not in origins:
            continue
        if path.endswith(GZIP) and (path.removesuffix(GZIP) in names - {origin} or _older(path, ino, origins[origin])):
            continue
        try:
            opened = listing.open(ino, opener)
        except OSError as error:
            on_error(path, origin, error)
            continue
        if opened is None:
            continue
        new_path, content, status = opened
        try:
            skip = origin_of(new_path) != origin or (
                position and position.offset and position.fits(edges_at(content, position.offset))
            )
        except OSError as error:
            on_error(new_path, origin, error)
            skip = True
        if skip:
            content.close()
        else:
            yield new_path, content, status


def _older(path: str, ino: int, since: int) -> bool:
    """Whether this file, if the path still leads to it, was written before that time (ns)."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string stays a string
    except OSError:
        return False
    return status.st_ino == ino and status.st_mtime_ns < since
