"""Roster: which files are followed, from which place, and which are done with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from glob import has_magic

from ragwatch.sources.tail.closed import ClosedFiles
from ragwatch.sources.tail.content import Content, edges_at, proves
from ragwatch.sources.tail.copies import CopyDetector
from ragwatch.sources.tail.descriptors import SHARED, DescriptorBudget
from ragwatch.sources.tail.disk import (
    GZIP,
    MatchedFile,
    discover,
    family,
    folders_of,
    gone_from,
    rotated_from,
    rotated_name,
)
from ragwatch.sources.tail.file_table import STARTED, FileTable, FollowPlan, note
from ragwatch.sources.tail.first_scan import FirstScan, history_until
from ragwatch.sources.tail.first_scan import load as load_beginning
from ragwatch.sources.tail.folders import DirectoryWatch
from ragwatch.sources.tail.identity import FileIdentity, FilePosition, load
from ragwatch.sources.tail.listing import list_directory
from ragwatch.sources.tail.missing import missing
from ragwatch.sources.tail.reader import FollowedFile
from ragwatch.sources.tail.rotation import OpenedFile
from ragwatch.sources.tail.search import LostFileSearch
from ragwatch.sources.tail.unopened import UnopenedFiles


class FileScanner:
    """The names of one source, looked up from time to time.

    Args:
        plan: What to follow.
        clock: Monotonic seconds.
        descriptors: The budget of open files.

    Attributes:
        ledger: The files.
        skipped: Names that match but are no regular text file.
        beginning: What the first look found, None before it.
        missing: Watched directories that are not there, and what to do.
    """

    def __init__(self, plan: FollowPlan, clock: Callable[[], float], descriptors: DescriptorBudget = SHARED) -> None:
        self.ledger = FileTable(plan, clock, descriptors)
        self.skipped: set[str] = set()
        self._search = LostFileSearch(self.ledger)
        self._unopened = UnopenedFiles(self.ledger)
        self._closed = ClosedFiles(self.ledger)
        self._folders = DirectoryWatch()
        self._newest: dict[str, int] = {}
        self._twins: dict[FileIdentity, tuple[FileIdentity, int]] = {}
        self._plan = plan
        self._clock = clock
        self._scanned: float | None = None
        self._first_start = plan.skip_first
        self.beginning: FirstScan | None = None
        self.missing: dict[str, str] = {}

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Take stored cursors; files are matched with them at the first scan.

        Raises:
            SourceError: A cursor cannot be read.
        """
        ledger = self.ledger
        self._first_start = self._plan.skip_first and STARTED not in cursors
        self.beginning = load_beginning(cursors[STARTED]) if STARTED in cursors else None
        positions = [(stream, load(stream, cursor)) for stream, cursor in cursors.items() if stream != STARTED]
        for stream, position in sorted(positions, key=lambda item: item[1].generation):
            older = ledger.stored.get(position.identity)
            if older and older[1].generation == position.generation:  # an inode used again, and a kill at that moment
                ledger.keep(*older)
            elif older:  # killed between the commit of a new generation and the deletion of the one before
                ledger.notes.append(note(older[0], position.path, ""))
            ledger.stored[position.identity] = (stream, position)

    def scan(self) -> None:
        """Look names up, if it is time: welcome new files, notice rotated ones, forget those that are gone."""
        now = self._clock()
        first = self._scanned is None
        if self._scanned is not None and now - self._scanned < self._plan.scan_seconds:
            return
        ledger = self.ledger
        ledger.now = now
        ledger.adopted.clear()
        found, self.skipped, ledger.unreadable = discover(self._plan.patterns)
        self.missing = missing(self._plan.patterns, ledger.positions(), found)
        begins, self.beginning = self.beginning is None, self.beginning or self._begin(found)
        ledger.since_ns = self.beginning.since_ns
        newest = ledger.newest()
        before = newest if first else self._newest  # all that is younger than that was taken up by the last look
        since = {path: min(at, before.get(path, ledger.since_ns)) for path, at in newest.items()}
        self._newest = newest
        unread = self._unread(found, newest, now)
        moved = self._closed.trace(found) | self._notice_moves(found, now)
        known = {followed.position.identity for followed in ledger.active}
        fresh = [self._welcome(each, found, now) for each in found if each not in known]
        if begins:
            ledger.notes.appendleft(note(STARTED, "", self.beginning.dump()))
        mended = ledger.packs.changed()
        if first or moved or any(fresh) or mended or self._search.unsettled:
            self._search.beside(newest.keys(), found)
        looked = (
            since if first or mended else {path: since[path] for path in moved | self._folders.stirred(newest, now)}
        )
        if looked or unread or self._search.due:
            self._search.adopt_younger(unread | looked)
        self._unopened.settle(found)
        for path, flaw in ledger.packs.flaws():
            ledger.notes.append(note("refused", path, "", {flaw: 1}))
        self._first_start = False
        self._scanned = self._clock()  # so that reading gets its turn where a look takes longer than the time between

    @property
    def scanned(self) -> bool:
        """Whether names have been looked up at all."""
        return self._scanned is not None

    def elders(self) -> dict[str, list[FollowedFile]]:
        """By the name they once had: rotated files, oldest first. They are read before the file that has it now."""
        rotated: dict[str, list[FollowedFile]] = {}
        for followed in self.ledger.active:
            if followed.rotated_since is not None:
                rotated.setdefault(followed.position.path, []).append(followed)
        for same in (each for each in rotated.values() if len(each) > 1):
            same.sort(key=lambda each: (each.rotated_since, each.position.mtime_ns))
        return rotated

    def retire(self, followed: FollowedFile) -> None:
        """A rotated file is read to its end: release it. Its cursor stays as long as the file does."""
        self.ledger.active.remove(followed)
        followed.close()
        self.ledger.finished[followed.position.identity] = followed

    def lose(self, followed: FollowedFile, error: OSError) -> None:
        """It cannot be read at present: let it go, and take it up again where it stood once a scan can open it."""
        if followed.content is not None:
            self.ledger.refuse(followed.path, followed.content, error)
        followed.content = None
        if followed.stream is not None:
            self.ledger.stored[followed.position.identity] = (followed.stream, followed.position)

    def seek_copies(self, followed: FollowedFile) -> None:
        """Its content was taken away: go on in a copy of it."""
        self._search.copies(followed)

    def close(self) -> None:
        """Release every file."""
        for followed in self.ledger.active:
            followed.close()

    def _begin(self, found: Mapping[FileIdentity, MatchedFile]) -> FirstScan:
        """What is written after the first look is news, by the files' own times."""
        folders = {os.path.dirname(path) for path in self._paths(found)}  # noqa: PTH120 - strings on both sides
        folders.update(os.path.realpath(each) for pattern in self._plan.patterns for each in folders_of(pattern))
        return FirstScan(history_until(folders))

    def _unread(
        self, found: Mapping[FileIdentity, MatchedFile], newest: Mapping[str, int], now: float
    ) -> dict[str, int]:
        """Paths under which nothing was read yet, and when the first look was: what was rotated since then is news.

        A file may be made and renamed between two looks, it may be the first of its name, and the last.
        """
        changed = [
            pattern
            for pattern in self._plan.patterns
            if has_magic(pattern) and any(self._folders.changed(each, now) for each in folders_of(pattern))
        ]
        rotated = {os.path.realpath(path) for pattern in changed for path in rotated_from(pattern)}
        known = {followed.position.identity for followed in self.ledger.active}
        paths = self._paths({identity: item for identity, item in found.items() if identity not in known})
        return dict.fromkeys((paths | rotated) - newest.keys(), self.ledger.since_ns)

    def _paths(self, found: Mapping[FileIdentity, MatchedFile]) -> set[str]:
        """Real paths of these files, and of those that are named outright."""
        names = {path for item in found.values() for path in item.paths}
        names.update(pattern for pattern in self._plan.patterns if not has_magic(pattern))
        return {os.path.realpath(name) for name in names}

    def _notice_moves(self, found: Mapping[FileIdentity, MatchedFile], now: float) -> set[str]:
        """Returns the paths that changed hands."""
        moved = set()
        for followed in self.ledger.active:
            item = found.get(followed.position.identity)
            if (item and followed.home in item.paths) or not gone_from(followed.home, followed.position.identity):
                followed.rotated_since = None
                continue
            followed.path = item.paths[0] if item and followed.path not in item.paths else followed.path
            if followed.rotated_since is None:
                followed.rotated_since = now
                moved.add(followed.position.path)
        return moved

    def _welcome(self, identity: FileIdentity, found: Mapping[FileIdentity, MatchedFile], now: float) -> bool:
        """Follow a file that matches and is not open. Returns whether it was not known in this process."""
        ledger, item = self.ledger, found[identity]
        path = item.paths[0]
        done = ledger.finished.get(identity)
        if done and done.content_packed != path.endswith(GZIP):
            self._search.finished_gone(done)  # its inode is another file's now
            done = None  # and so it is no longer among the finished ones
        if (
            identity in ledger.adopted
            or not (item.size or done or identity in ledger.stored or rotated_name(path) is None)  # a copy to be
            or (done and done.unchanged(item.size, item.mtime_ns))
            or self._waits(identity, path)
        ):
            return False
        content = ledger.open(path, identity)
        if content is None:
            self._unopened.remember(identity, item)
            return False
        try:
            return self._take_up(identity, content, found, now)
        except OSError as error:
            ledger.refuse(path, content, error)
            return False

    def _take_up(
        self, identity: FileIdentity, content: Content, found: Mapping[FileIdentity, MatchedFile], now: float
    ) -> bool:
        ledger, path, done = self.ledger, found[identity].paths[0], self.ledger.finished.get(identity)
        if done and done.position.fits(edges_at(content, done.position.offset)):
            ledger.reopen(done, path, content)
            return False
        if done:  # its inode was given to another file
            self._search.finished_gone(done)
        real = os.path.realpath(path)
        written = family(real) if content.packed is not None else real
        if family(real) != real and not self._is_news(identity, family(real), content, found):
            content.close()
            return False
        stream, position = self._claim(identity, written, content, found)
        followed = ledger.follow(OpenedFile(path, content, position), stream)
        if real != position.path:
            followed.home, followed.rotated_since = position.path, now
        if self._first_start and stream is None:
            followed.to_end()
            ledger.notes.append(note(followed.stream or "", path, followed.position.dump()))
            self.beginning = (self.beginning or FirstScan()).skipping(followed.position)
        return True

    def _waits(self, identity: FileIdentity, path: str) -> bool:
        """Whether a packed file is a copy of one that is still there, or may be of one that is still being read."""
        if not path.endswith(GZIP) or identity in self.ledger.stored:
            return False
        known = {(position.identity, position.generation) for position in self.ledger.positions()}
        if self._twins.get(identity) in known:
            return True
        origin = family(os.path.realpath(path))
        plain = path.removesuffix(GZIP)
        return (plain != origin and os.path.lexists(plain)) or family(origin) in self.ledger.busy()

    def _is_news(
        self, identity: FileIdentity, origin: str, content: Content, found: Mapping[FileIdentity, MatchedFile]
    ) -> bool:
        """Whether what is named like a rotation is to be followed: by its cursor, or because nobody has its content."""
        stored = self.ledger.stored
        if identity in stored:
            stream, place = stored[identity]
            if (place.offset or content.packed is None) and place.fits(edges_at(content, place.offset)):
                return True
            del stored[identity]
            self._search.vanished(stream, place)  # it got the inode of another file that is gone
        return identity not in self.ledger.adopted and not self._has_twin(
            OpenedFile(origin, content, FilePosition(*identity, origin)), found
        )

    def _has_twin(self, opened: OpenedFile, found: Mapping[FileIdentity, MatchedFile]) -> bool:
        """Whether this file may be a copy of another one that is still there, or was when reading stopped in it."""
        if not any(family(place.path) == opened.position.path for place in self.ledger.positions()):
            return False
        listing = list_directory(os.path.dirname(opened.position.path))  # noqa: PTH120 - a string stays a string
        if listing is None:
            return False
        gone = {each for each in self.ledger.stored if each not in found and each.ino not in listing.paths}
        twin = CopyDetector(self.ledger, listing).of(opened, gone=gone)
        if twin is not None:
            self._twins[opened.position.identity] = (twin.identity, twin.generation)
        return twin is not None

    def _claim(
        self, identity: FileIdentity, path: str, content: Content, found: Mapping[FileIdentity, MatchedFile]
    ) -> tuple[str | None, FilePosition]:
        """The stored place of a file: by identity, or by path and content (restored, packed, devices renumbered)."""
        ledger = self.ledger
        if identity in ledger.stored:
            stream, position = ledger.stored[identity]
            same_name = position.path == path and content.packed is None  # packing makes a new file
            kept = same_name or (position.offset > 0 and position.fits(edges_at(content, position.offset)))
            del ledger.stored[identity]  # not before the content could be read
            if kept:
                return stream, position
            self._search.vanished(stream, position)  # another file got the inode of one that is gone
        listing = list_directory(os.path.dirname(path)) if ledger.stored else None  # noqa: PTH120 - a string stays one
        for other, (stream, position) in ledger.stored.items():
            gone = other not in found and listing is not None and other.ino not in listing.paths
            same = position.path == path or (content.packed is not None and family(position.path) == path)
            if gone and same and proves(content, position):
                del ledger.stored[other]
                here = replace(position, dev=identity.dev, ino=identity.ino)
                ledger.notes.append(note(stream, path, here.dump()))
                return stream, here
        return None, FilePosition(identity.dev, identity.ino, path, mtime_ns=found[identity].mtime_ns)
