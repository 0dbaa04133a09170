"""Beside: where a file's content went when its name changed hands: renamed, copied, packed, or rotated unseen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ragwatch.sources.tail.content import Content, edges_at, proves
from ragwatch.sources.tail.disk import GZIP, family, origin_of
from ragwatch.sources.tail.gzip import ContentOpener
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.listing import DirectoryListing


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file, and where to go on in it."""

    path: str
    content: Content
    position: FilePosition


def renamed(listing: DirectoryListing, position: FilePosition, packs: ContentOpener) -> OpenedFile | None:
    """The file itself under whatever name it has now: same inode, same content. Unrelated users of the inode differ.

    Raises:
        OSError: It is there and cannot be opened at present.
    """
    opened = listing.open(position.ino, packs)
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


def copied(
    listing: DirectoryListing,
    lost: FilePosition,
    known: Mapping[FileIdentity, FilePosition | None],
    packs: ContentOpener,
    *,
    closed: Callable[[str, str, OSError], None],
    since: int = 0,
) -> OpenedFile | None:
    """A rotation of the same name with the content that was read (copytruncate, gzip): reading goes on there.

    Args:
        listing: Directory to look through.
        lost: Where reading stopped in a content that is no longer where it was.
        known: Files that are followed already, and those that are only known from a cursor, with its position: their
            inodes may be other files' by now.
        packs: Opens files.
        closed: Is told the path, and the path it was written under, of what cannot be read at present, and why.
        since: Modification time (ns) below which packed files are passed over: to compare one costs much.
    """
    for path, content, status in _rotations(listing, {family(lost.path): since}, known, packs, closed):
        try:
            if proves(content, lost):
                return OpenedFile(path, content, replace(_moved(lost, status), generation=0))
        except OSError as error:  # the first bytes were there, others are not: this is no reason to look no further
            closed(path, family(lost.path), error)
        content.close()
    return None


def younger(
    listing: DirectoryListing,
    newest: Mapping[str, int],
    known: Mapping[FileIdentity, FilePosition | None],
    packs: ContentOpener,
    *,
    copy: Callable[[OpenedFile], bool],
    closed: Callable[[str, str, OSError], None],
) -> Iterator[OpenedFile]:
    """Rotations that nobody has seen under their first name: written after what was read last, so read whole.

    Args:
        listing: Directory to look through.
        newest: For each followed path, the modification time (ns) of what was read last under it. Older rotations were
            there before ragwatch was.
        known: See `copied`.
        packs: Opens files.
        copy: Whether such a content may be a copy of one that is known.
        closed: Is told the path, and the path it was written under, of what cannot be read at present, and why.
    """
    for path, content, status in _rotations(listing, newest, known, packs, closed):
        origin = origin_of(path) or path
        position = FilePosition(status.st_dev, status.st_ino, origin, mtime_ns=status.st_mtime_ns)
        opened = OpenedFile(path, content, position)
        try:
            news = status.st_mtime_ns >= newest[origin] and not copy(opened)
        except OSError as error:
            closed(path, origin, error)
            news = False
        if news:
            yield opened
        else:
            content.close()


def _moved(position: FilePosition, status: os.stat_result) -> FilePosition:
    """The same place in a file with another identity."""
    return replace(position, dev=status.st_dev, ino=status.st_ino)


def _rotations(
    listing: DirectoryListing,
    origins: Mapping[str, int],
    known: Mapping[FileIdentity, FilePosition | None],
    packs: ContentOpener,
    closed: Callable[[str, str, OSError], None],
) -> Iterator[tuple[str, Content, os.stat_result]]:
    """Unknown regular files that are named like a rotation of one of these paths, opened.

    While a file that is being packed still stands beside its packed copy, that file is the one to read.
    """
    names = set(listing.paths.values())
    for ino, path in list(listing.paths.items()):
        origin = origin_of(path)
        identity = FileIdentity(listing.device, ino)
        place = known.get(identity)
        if (identity in known and place is None) or origin is None or origin not in origins:
            continue
        if path.endswith(GZIP) and (path.removesuffix(GZIP) in names - {origin} or _older(path, ino, origins[origin])):
            continue
        try:
            opened = listing.open(ino, packs)
        except OSError as error:
            closed(path, origin, error)
            continue
        if opened is None:
            continue
        now, content, status = opened
        try:
            other = origin_of(now) != origin or (place and place.offset and place.fits(edges_at(content, place.offset)))
        except OSError as error:
            closed(now, origin, error)
            other = True
        if other:
            content.close()
        else:
            yield now, content, status


def _older(path: str, ino: int, since: int) -> bool:
    """Whether this file, if the name still means it, was written before that time (ns)."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string stays a string
    except OSError:
        return False
    return status.st_ino == ino and status.st_mtime_ns < since
