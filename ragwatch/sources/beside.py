"""Beside: where a file's content went when its name changed hands: renamed, copied, or rotated while nobody looked."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ragwatch.sources.disk import Listing, edges_at, open_regular, rotated_name
from ragwatch.sources.identity import Identity, Position


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file, and where to go on in it."""

    path: str
    fd: int
    position: Position


def renamed(listing: Listing, position: Position) -> Opened | None:
    """The file itself under whatever name it has now: same inode, same content. Unrelated users of the inode differ.

    Raises:
        OSError: It is there and cannot be opened at present.
    """
    path = listing.paths.get(position.ino)
    opened = open_regular(path) if path is not None else None
    if path is None or opened is None:
        return None
    fd, status = opened
    if position.offset and position.fits(edges_at(fd, position.offset)):
        return Opened(path, fd, _moved(position, status))
    os.close(fd)
    return None


def copied(listing: Listing, lost: Position, known: Collection[Identity]) -> Opened | None:
    """A rotation of the same name with the content that was read (copytruncate): reading goes on there."""
    for path, fd, status in _rotations(listing, {lost.path}, known):
        if lost.telling and lost.fits(edges_at(fd, lost.offset)):
            return Opened(path, fd, _moved(lost, status, generation=0))
        os.close(fd)
    return None


def younger(listing: Listing, newest: Mapping[str, int], positions: Iterable[Position]) -> Iterator[Opened]:
    """Rotations that nobody has seen under their first name: written after what was read last, so read whole.

    Args:
        listing: Directory to look through.
        newest: For each followed path, the modification time (ns) of what was read last under it. Older rotations were
            there before ragwatch was.
        positions: All known places. A file that holds the content before one of them is a copy, not news.
    """
    places = list(positions)
    known = {place.identity for place in places}
    for path, fd, status in _rotations(listing, newest.keys(), known):
        origin = rotated_name(path) or path
        same_name = (place for place in places if place.path == origin and place.telling)
        if status.st_mtime_ns >= newest[origin] and not any(each.fits(edges_at(fd, each.offset)) for each in same_name):
            yield Opened(path, fd, Position(status.st_dev, status.st_ino, origin, mtime_ns=status.st_mtime_ns))
        else:
            os.close(fd)


def _moved(position: Position, status: os.stat_result, generation: int | None = None) -> Position:
    """The same place in a file with another identity."""
    return Position(
        dev=status.st_dev,
        ino=status.st_ino,
        path=position.path,
        generation=position.generation if generation is None else generation,
        offset=position.offset,
        line=position.line,
        mark=position.mark,
        within=position.within,
        size=position.size,
        mtime_ns=position.mtime_ns,
    )


def _rotations(
    listing: Listing, origins: Collection[str], known: Collection[Identity]
) -> Iterator[tuple[str, int, os.stat_result]]:
    """Unknown regular files that are named like a rotation of one of these paths, opened."""
    for ino, path in listing.paths.items():
        if Identity(listing.device, ino) in known or rotated_name(path) not in origins:
            continue
        try:
            opened = open_regular(path)
        except OSError:
            continue
        if opened is not None:
            yield path, *opened
