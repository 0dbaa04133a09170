"""Roster: which files are followed, from which place, and which are done with."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragwatch.ports import Batch
from ragwatch.sources.beside import Opened, copied, renamed, younger
from ragwatch.sources.disk import Found, Listing, discover, edges_at, gone_from, list_directory, open_regular
from ragwatch.sources.follow import Followed, Limits
from ragwatch.sources.identity import Identity, Position, load, name_stream

STARTED = "started"
"""Stream of the cursor that says: the first start is over, what has no cursor is new."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to follow, and how.

    Attributes:
        patterns: Paths and globs.
        skip_first: Whether text that is there at the very first start is passed over.
        limits: How much is read at once.
        scan_seconds: How often names are looked up; open files are looked at on every read.
    """

    patterns: Sequence[str]
    skip_first: bool
    limits: Limits
    scan_seconds: float


def note(stream: str, file: str, cursor: str) -> Batch:
    """A batch without records that moves, or with an empty cursor deletes, the cursor of a stream."""
    return Batch(stream=stream, file=file, lines=(), offsets=(), numbers=(), cursor=cursor)


class Roster:
    """The files of one source.

    Args:
        plan: What to follow.
        clock: Monotonic seconds.

    Attributes:
        active: Open files in the order they take turns.
        notes: Cursors to store or to delete that come with no records.
        skipped: Names that match but are no regular text file.
        unreadable: Names that match but cannot be read at present, and why.
    """

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        self.active: list[Followed] = []
        self.notes: deque[Batch] = deque()
        self.skipped: set[str] = set()
        self.unreadable: dict[str, str] = {}
        self._plan = plan
        self._clock = clock
        self._stored: dict[Identity, tuple[str, Position]] = {}
        self._finished: dict[Identity, Followed] = {}
        self._scanned: float | None = None
        self._first_start = plan.skip_first

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Take stored cursors; files are matched with them at the first scan.

        Raises:
            SourceError: A cursor cannot be read.
        """
        self._first_start = self._plan.skip_first and STARTED not in cursors
        positions = [(stream, load(stream, cursor)) for stream, cursor in cursors.items() if stream != STARTED]
        for stream, position in sorted(positions, key=lambda item: item[1].generation):
            older = self._stored.get(position.identity)
            if older:  # killed between the commit of a new generation and the deletion of the one before
                self.notes.append(note(older[0], position.path, ""))
            self._stored[position.identity] = (stream, position)

    def scan(self) -> None:
        """Look names up, if it is time: welcome new files, notice rotated ones, forget those that are gone."""
        now = self._clock()
        first = self._scanned is None
        if self._scanned is not None and now - self._scanned < self._plan.scan_seconds:
            return
        self._scanned = now
        self.unreadable = {}
        found, self.skipped = discover(self._plan.patterns)
        newest = self._newest()
        moved = self._notice_moves(found, now)
        known = {followed.position.identity for followed in self.active}
        fresh = [self._welcome(each, found, now) for each in found if each not in known]
        if first or moved or any(fresh):
            self._look_beside(newest.keys(), found, now)
            self._adopt_younger(newest if first else {path: newest[path] for path in moved})
        if self._first_start:
            self.notes.append(note(STARTED, "", "{}"))
        self._first_start = False

    @property
    def scanned(self) -> bool:
        """Whether names have been looked up at all."""
        return self._scanned is not None

    def elders(self) -> dict[str, list[Followed]]:
        """By the name they once had: rotated files, oldest first. They are read before the file that has it now."""
        rotated: dict[str, list[Followed]] = {}
        for followed in self.active:
            if followed.rotated_since is not None:
                rotated.setdefault(followed.position.path, []).append(followed)
        for same in rotated.values():
            same.sort(key=lambda each: each.position.mtime_ns)
        return rotated

    def retire(self, followed: Followed) -> None:
        """A rotated file is read to its end: release it. Its cursor stays as long as the file does."""
        self.active.remove(followed)
        followed.close()
        self._finished[followed.position.identity] = followed

    def lose(self, followed: Followed, error: OSError) -> None:
        """It cannot be read at present: let it go, and take it up again where it stood once a scan can open it."""
        self.unreadable[followed.path] = error.strerror or str(error)
        self.active.remove(followed)
        followed.fd = None  # a stale descriptor may not even be closed
        if followed.stream is not None:
            self._stored[followed.position.identity] = (followed.stream, followed.position)

    def seek_copies(self, followed: Followed) -> None:
        """Its content was taken away: if a copy lies beside it (copytruncate), go on there, where reading stopped."""
        while followed.lost:
            lost = followed.lost.pop()
            self._seek_copy(lost)
            self._adopt_younger({lost.path: lost.mtime_ns})

    def close(self) -> None:
        """Release every file."""
        for followed in self.active:
            followed.close()

    def _positions(self) -> list[Position]:
        followed = [each.position for each in (*self.active, *self._finished.values())]
        return followed + [position for _, position in self._stored.values()]

    def _newest(self) -> dict[str, int]:
        """For each followed path, when what was read last under it had been written."""
        newest: dict[str, int] = {}
        for position in self._positions():
            newest[position.path] = max(newest.get(position.path, 0), position.mtime_ns)
        return newest

    def _notice_moves(self, found: Mapping[Identity, Found], now: float) -> set[str]:
        """Returns the paths that changed hands."""
        moved = set()
        for followed in self.active:
            item = found.get(followed.position.identity)
            if (item and followed.home in item.paths) or not gone_from(followed.home, followed.position.identity):
                followed.rotated_since = None
                continue
            followed.path = item.paths[0] if item and followed.path not in item.paths else followed.path
            if followed.rotated_since is None:
                followed.rotated_since = now
                moved.add(followed.position.path)
        return moved

    def _welcome(self, identity: Identity, found: Mapping[Identity, Found], now: float) -> bool:
        """Follow a file that matches and is not open. Returns whether it was not known in this process."""
        item = found[identity]
        path = item.paths[0]
        done = self._finished.get(identity)
        if done and done.still == (item.size, item.mtime_ns):
            return False
        fd = self._open(path, identity)
        if fd is None:
            return False
        if done:
            self._reopen(done, path, fd, now)
            return False
        stream, position = self._claim(identity, os.path.realpath(path), fd, found)
        followed = self._follow(Opened(path, fd, position), stream)
        if os.path.realpath(path) != position.path:
            followed.home, followed.rotated_since = position.path, now
        if self._first_start and stream is None:
            followed.to_end()
            self.notes.append(note(followed.stream or "", path, followed.position.dump()))
        return True

    def _claim(
        self, identity: Identity, path: str, fd: int, found: Mapping[Identity, Found]
    ) -> tuple[str | None, Position]:
        """The stored place of a file: by identity, or by path and content (restored, or devices renumbered)."""
        if identity in self._stored:
            stream, position = self._stored.pop(identity)
            if position.path == path or position.fits(edges_at(fd, position.offset)):
                return stream, position
            self.notes.append(note(stream, position.path, ""))  # another file got the inode of one that is gone
        listing = list_directory(os.path.dirname(path)) if self._stored else None  # noqa: PTH120 - a string stays one
        for other, (stream, position) in self._stored.items():
            gone = other not in found and listing is not None and other.ino not in listing.paths
            same = gone and position.path == path and position.telling
            if same and position.fits(edges_at(fd, position.offset)):
                del self._stored[other]
                return stream, replace(position, dev=identity.dev, ino=identity.ino)
        return None, Position(identity.dev, identity.ino, path, mtime_ns=found[identity].mtime_ns)

    def _look_beside(self, paths: Iterable[str], found: Mapping[Identity, Found], now: float) -> None:
        """Names have changed hands, or this is a start: look through the directories for what is known and moved."""
        for directory in {os.path.dirname(path) for path in paths}:  # noqa: PTH120 - strings on both sides
            listing = list_directory(directory)
            if listing is None:
                continue  # nothing is known, so nothing is forgotten
            for identity, (stream, position) in list(self._stored.items()):
                if os.path.dirname(position.path) == directory and identity not in found:  # noqa: PTH120
                    self._find_stored(listing, identity, stream, position)
            for followed in list(self._finished.values()):
                if os.path.dirname(followed.position.path) == directory:  # noqa: PTH120
                    self._tend_finished(listing, followed, now)

    def _adopt_younger(self, newest: Mapping[str, int]) -> None:
        """Read what was created and rotated under these paths while nobody looked."""
        for directory in {os.path.dirname(path) for path in newest}:  # noqa: PTH120 - strings on both sides
            if listing := list_directory(directory):
                for opened in younger(listing, newest, self._positions()):
                    self._follow_rotated(opened, None)

    def _find_stored(self, listing: Listing, identity: Identity, stream: str, position: Position) -> None:
        """A file that was renamed while nobody looked: followed if it is the same, forgotten if it is gone."""
        try:
            opened = renamed(listing, position)
        except OSError as error:
            self.unreadable[listing.paths[position.ino]] = error.strerror or str(error)
            return
        if opened is None and listing.device != position.dev:
            return  # its file system is not mounted
        del self._stored[identity]
        if opened is not None:
            self._follow_rotated(opened, stream)
            return
        self._seek_copy(position)  # its cursor goes before the deletion of this one: a kill may fall between them
        self.notes.append(note(stream, position.path, ""))

    def _tend_finished(self, listing: Listing, followed: Followed, now: float) -> None:
        """Forget a finished file that is gone; take up one that has grown since."""
        position = followed.position
        path = listing.paths.get(position.ino)
        if path is None and listing.device == position.dev:
            del self._finished[position.identity]
            if followed.stream is not None:
                self.notes.append(note(followed.stream, followed.path, ""))
        elif path is not None and (fd := self._open(path, position.identity)) is not None:
            status = os.fstat(fd)
            if followed.still == (status.st_size, status.st_mtime_ns):
                os.close(fd)
            else:
                self._reopen(followed, path, fd, now)

    def _seek_copy(self, lost: Position) -> None:
        listing = list_directory(os.path.dirname(lost.path))  # noqa: PTH120 - a string stays a string
        known = {position.identity for position in self._positions()}
        opened = copied(listing, lost, known) if listing else None
        if opened is not None:
            stream = name_stream(opened.position, b"")
            self._follow_rotated(opened, stream)
            self.notes.append(note(stream, opened.path, opened.position.dump()))

    def _follow(self, opened: Opened, stream: str | None) -> Followed:
        followed = Followed(opened.path, opened.fd, opened.position, stream, self._plan.limits)
        self.active.append(followed)
        return followed

    def _follow_rotated(self, opened: Opened, stream: str | None) -> None:
        followed = self._follow(opened, stream)
        followed.home, followed.rotated_since = opened.position.path, self._clock()

    def _reopen(self, done: Followed, path: str, fd: int, now: float) -> None:
        del self._finished[done.position.identity]
        done.reopen(path, fd)
        done.rotated_since = now if gone_from(done.home, done.position.identity) else None
        self.active.append(done)

    def _open(self, path: str, identity: Identity) -> int | None:
        """Open, and make sure that it is still the file that was found under this name."""
        try:
            opened = open_regular(path)
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)
            return None
        if opened is None:
            return None
        fd, status = opened
        if identity == (status.st_dev, status.st_ino):
            return fd
        os.close(fd)
        return None
