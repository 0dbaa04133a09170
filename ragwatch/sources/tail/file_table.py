"""Ledger: the files of one source: which are open, which are done with, and which are only known from their cursors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from errno import EBADF

from ragwatch.ports import Batch
from ragwatch.sources.tail.content import Content
from ragwatch.sources.tail.descriptors import DescriptorBudget
from ragwatch.sources.tail.disk import family, gone_from
from ragwatch.sources.tail.folders import TICK
from ragwatch.sources.tail.gzip import ContentOpener
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.listing import DirectoryListing
from ragwatch.sources.tail.reader import FollowedFile
from ragwatch.sources.tail.records import ReadLimits
from ragwatch.sources.tail.rotation import OpenedFile

STARTED = "started"
"""Stream of the cursor that says: the first start is over, what has no cursor is new."""


@dataclass(frozen=True, slots=True)
class FollowPlan:
    """What to follow, and how.

    Attributes:
        patterns: Paths and globs.
        skip_first: Whether text that is there at the very first start is passed over.
        limits: How much is read at once.
        scan_seconds: How often names are looked up; open files are looked at on every read.
        patience: Seconds that a packed file may stay incomplete before it is counted.
    """

    patterns: Sequence[str]
    skip_first: bool
    limits: ReadLimits
    scan_seconds: float
    patience: float


def note(stream: str, file: str, cursor: str, resets: Mapping[str, int] | None = None) -> Batch:
    """A batch without records that moves, or with an empty cursor deletes, the cursor of a stream, and counts."""
    return Batch(stream=stream, file=file, lines=(), offsets=(), numbers=(), cursor=cursor, resets=resets or {})


class FileTable:
    """The files of one source.

    Attributes:
        active: Open files in the order they take turns.
        adopted: Files that were taken up under another name since the last scan began.
        finished: Rotated files that were read to their end. Their cursors stay as long as they do.
        stored: Stream and position of files that are not met again yet.
        notes: Cursors to store or to delete, and counts, that come with no records.
        unreadable: Names that match but cannot be read at present, and why.
        packs: Opens files.
        limits: How much is read at once.
        since_ns: File time from which on files are news.
        now: Monotonic seconds of the last scan. What it found together is ordered by the files' own times.
    """

    def __init__(self, plan: FollowPlan, clock: Callable[[], float], descriptors: DescriptorBudget) -> None:
        self.active: list[FollowedFile] = []
        self.adopted: set[FileIdentity] = set()
        self.finished: dict[FileIdentity, FollowedFile] = {}
        self.stored: dict[FileIdentity, tuple[str, FilePosition]] = {}
        self.notes: deque[Batch] = deque()
        self.unreadable: dict[str, str] = {}
        self.packs = ContentOpener(clock, plan.patience, descriptors)
        self.limits = plan.limits
        self.now = clock()
        self.since_ns = 0
        self._between_looks_ns = int((plan.scan_seconds + TICK) * 1e9)

    def positions(self) -> list[FilePosition]:
        """Every known place."""
        followed = [each.position for each in (*self.active, *self.finished.values())]
        return followed + [position for _, position in self.stored.values()]

    def known(self) -> dict[FileIdentity, FilePosition | None]:
        """Files that were met, and with their positions those that are only known from cursors."""
        met: dict[FileIdentity, FilePosition | None] = {identity: place for identity, (_, place) in self.stored.items()}
        return met | dict.fromkeys(each.position.identity for each in (*self.active, *self.finished.values()))

    def keep(self, stream: str, position: FilePosition) -> FilePosition:
        """Keep the place in a content without a file. No file has an inode below zero."""
        kept = (
            position if position.ino < 0 else replace(position, ino=min([0, *(each.ino for each in self.stored)]) - 1)
        )
        self.stored[kept.identity] = (stream, kept)
        return kept

    def newest(self) -> dict[str, int]:
        """For each followed path, from which file time (ns) on a rotation of it that is not known is news."""
        newest: dict[str, int] = {}
        for position in self.positions():
            newest[position.path] = max(newest.get(position.path, 0), self.news_since(position.mtime_ns))
        return newest

    def news_since(self, mtime_ns: int) -> int:
        """From which file time on (ns) a rotation is news if what was read last under its name is as old as that.

        What is read was written at most one scan's time after the last look through the folder. All that has come into
        it since then is younger than that look; what was there before the very first look is history.
        """
        return max(self.since_ns, mtime_ns - self._between_looks_ns)

    def busy(self) -> set[str]:
        """Families with a file that is gone and not read to its end: its packed copy may lie there already."""
        return {
            family(each.position.path)
            for each in self.active
            if each.rotated_since is not None
            and not each.content_packed
            and gone_from(each.path, each.position.identity)
        }

    def follow(self, opened: OpenedFile, stream: str | None) -> FollowedFile:
        """Take a file up."""
        followed = FollowedFile(opened.path, opened.content, opened.position, stream, self.limits)
        self.active.append(followed)
        return followed

    def follow_rotated(self, opened: OpenedFile, stream: str | None) -> None:
        """Take a file up that no longer has the name it was written under."""
        followed = self.follow(opened, stream)
        self.adopted.add(opened.position.identity)
        followed.home, followed.rotated_since = opened.position.path, self.now

    def reopen(self, done: FollowedFile, path: str, content: Content) -> None:
        """A finished file has grown."""
        del self.finished[done.position.identity]
        done.reopen(path, content)
        done.rotated_since = self.now if gone_from(done.home, done.position.identity) else None
        self.active.append(done)

    def open(self, path: str, identity: FileIdentity) -> Content | None:
        """Open, and make sure that it is still the file that was found under this name."""
        try:
            opened = self.packs.open(path, identity.ino)
        except FileNotFoundError:
            return None  # renamed since it was found: the next look meets it under another name
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)
            return None
        if opened is None:
            return None
        content, status = opened
        if identity.dev == status.st_dev:
            return content
        content.close()
        return None

    def refuse(self, path: str, content: Content, error: OSError) -> None:
        """It was opened, and cannot be read at present: let it go."""
        self.unreadable[path] = error.strerror or str(error)
        self.active[:] = [each for each in self.active if each.content is not content]
        if error.errno == EBADF:  # the number may be another file's by now
            content.handle.abandon()
            return
        with suppress(OSError):  # of a stale handle the descriptor is free all the same
            content.close()

    def find(self, listing: DirectoryListing, identity: FileIdentity) -> tuple[str, Content, os.stat_result] | None:
        """Open a file wherever in a folder it is by now; None when it is not there, or cannot be opened at present."""
        try:
            return listing.open(identity.ino, self.packs) if listing.device == identity.dev else None
        except OSError as error:
            self.unreadable[listing.paths.get(identity.ino, listing.directory)] = error.strerror or str(error)
            return None
