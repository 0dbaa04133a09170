"""Search: what became of contents that are no longer where they were, and what of that is lost for good."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ragwatch.sources.tail.content import Content, edges_at, proves
from ragwatch.sources.tail.copies import CopyDetector
from ragwatch.sources.tail.disk import GZIP, MatchedFile, family, size_and_time
from ragwatch.sources.tail.file_table import FileTable, note
from ragwatch.sources.tail.gzip import GzipRefusedError
from ragwatch.sources.tail.identity import FileIdentity, FilePosition, name_stream
from ragwatch.sources.tail.listing import DirectoryListing, list_directory
from ragwatch.sources.tail.reader import FollowedFile
from ragwatch.sources.tail.rotation import OpenedFile, copied, renamed, younger


@dataclass(frozen=True, slots=True)
class _PossibleCopy:
    """A rotation that may be a copy: of which path, which age is news there, and its size and time."""

    origin: str
    since: int
    state: tuple[int, int] | None


class LostFileSearch:
    """Looks through directories on behalf of a ledger.

    Args:
        ledger: What is known; it is brought up to date.

    Attributes:
        unsettled: Whether something that is known could not be opened when it was looked for.
    """

    def __init__(self, ledger: FileTable) -> None:
        self._ledger = ledger
        self.unsettled = False
        self._postponed: dict[str, int] = {}
        self._doubted: dict[str, _PossibleCopy] = {}

    @property
    def due(self) -> bool:
        """Whether something that was put off can be looked for now."""
        busy = self._ledger.busy() if self._postponed else set()
        return any(family(path) not in busy for path in self._postponed) or any(
            size_and_time(path) != doubt.state for path, doubt in self._doubted.items()
        )

    def beside(self, paths: Iterable[str], found: Mapping[FileIdentity, MatchedFile]) -> None:
        """Names have changed hands, or this is a start: look through the directories for what is known and moved."""
        self.unsettled = False
        for directory in {os.path.dirname(path) for path in paths}:  # noqa: PTH120 - strings on both sides
            listing = list_directory(directory)
            if listing is None:
                continue  # nothing is known, so nothing is forgotten
            for identity, (stream, position) in list(self._ledger.stored.items()):
                if os.path.dirname(position.path) == directory and identity not in found:  # noqa: PTH120
                    self._find_stored(listing, identity, stream, position)
            for followed in list(self._ledger.finished.values()):
                if os.path.dirname(followed.position.path) == directory:  # noqa: PTH120
                    self._tend_finished(listing, followed)

    def adopt_younger(self, newest: Mapping[str, int]) -> None:
        """Read what was created and rotated under these paths while nobody looked."""
        ledger, wanted = self._ledger, dict(newest)
        for path, mtime_ns in (
            *self._postponed.items(),
            *((each.origin, each.since) for each in self._doubted.values()),
        ):
            wanted[path] = min(mtime_ns, wanted.get(path, mtime_ns))
        busy = ledger.busy()
        self._postponed = {path: mtime_ns for path, mtime_ns in wanted.items() if family(path) in busy}
        self._doubted = {}
        for directory in {os.path.dirname(path) for path in wanted}:  # noqa: PTH120 - strings on both sides
            listing = list_directory(directory)
            if listing is None:  # nothing is known, so what may be news stays so
                self._postponed |= {each: at for each, at in wanted.items() if os.path.dirname(each) == directory}  # noqa: PTH120
                continue
            copy, closed = partial(self._doubtful, CopyDetector(ledger, listing), wanted), partial(self._closed, wanted)
            for opened in younger(listing, wanted, ledger.known(), ledger.packs, copy=copy, closed=closed):
                if opened.content.packed is not None and opened.position.path in self._postponed:
                    opened.content.close()
                else:
                    ledger.follow_rotated(opened, None)

    def _doubtful(self, twins: CopyDetector, wanted: Mapping[str, int], opened: OpenedFile) -> bool:
        """Whether a content may be, or become, a copy of a known one. If so it is looked at again once it changed."""
        if opened.content.state()[0] and twins.of(opened) is None:
            return False
        origin = opened.position.path
        self._doubted[opened.path] = _PossibleCopy(origin, wanted[origin], size_and_time(opened.path))
        return True

    def _closed(self, wanted: Mapping[str, int], path: str, origin: str, error: OSError) -> None:
        """A rotation cannot be opened at present. If it may be news, it stays so until it can be."""
        state = size_and_time(path)
        if not isinstance(error, GzipRefusedError) and (state is None or state[1] >= wanted[origin]):
            self._ledger.unreadable[path] = error.strerror or str(error)
            self._doubted[path] = _PossibleCopy(origin, wanted[origin], None)

    def copies(self, followed: FollowedFile) -> None:
        """Its content was taken away: if a copy lies beside it (copytruncate), go on there, where reading stopped."""
        while followed.lost:
            lost = followed.lost.pop()
            stream, place = lost.stream, lost.position
            there = lost.gone and self._copy(place, stream)
            if there and stream in followed.superseded:
                followed.superseded.remove(stream)  # it goes on in the copy
            self.adopt_younger({place.path: self._ledger.news_since(place.mtime_ns)})
            if there or self._is_read(followed, place):
                continue
            if stream is not None and lost.gone and self._refused(place):
                followed.superseded.remove(stream)
                self._keep(stream, place)
            elif place.size > place.offset:
                cursor = replace(place, size=place.offset).dump() if stream is not None else ""
                known = stream or name_stream(place)
                self._ledger.notes.append(note(known, followed.path, cursor, {"truncated_unread": 1}))

    def _is_read(self, followed: FollowedFile, lost: FilePosition) -> bool:
        """Whether a copy of this content is being read, from its first byte, because nobody had seen it before."""
        rotated = [
            each
            for each in self._ledger.active
            if each is not followed and each.position.path == lost.path and each.rotated_since is not None
        ]
        return any(_holds(each.content, lost) for each in rotated if each.content is not None)

    def vanished(self, stream: str, position: FilePosition) -> None:
        """A file is gone for good: go on in a copy of it, or count what of it was not read."""
        if self._copy(position, stream):
            return
        if self._refused(position):
            self._keep(stream, position)
            return
        lost = position.size > position.offset
        self._ledger.notes.append(note(stream, position.path, "", {"deleted_unread": 1} if lost else None))

    def _find_stored(
        self, listing: DirectoryListing, identity: FileIdentity, stream: str, position: FilePosition
    ) -> None:
        """A file that was renamed while nobody looked: followed if it is the same, forgotten if it is gone."""
        ledger = self._ledger
        try:
            opened = renamed(listing, position, ledger.packs)
        except OSError as error:
            ledger.unreadable[listing.paths.get(position.ino, position.path)] = error.strerror or str(error)
            self.unsettled = True
            return
        if opened is None and listing.device != position.dev:
            return  # its file system is not mounted
        if opened is not None:
            del ledger.stored[identity]
            ledger.follow_rotated(opened, stream)
            return
        del ledger.stored[identity]
        self.vanished(stream, position)

    def _refused(self, position: FilePosition) -> bool:
        """Whether a packed rotation of that name cannot be read as it is: it may yet be completed."""
        listing = list_directory(os.path.dirname(position.path))  # noqa: PTH120 - a string stays a string
        paths = listing.paths.values() if listing else ()
        return self._ledger.packs.refuses(
            {path for path in paths if path.endswith(GZIP) and family(path) == family(position.path)}
        )

    def _keep(self, stream: str, position: FilePosition) -> None:
        """Wait for a packed copy to become readable."""
        kept = self._ledger.keep(stream, position)
        if kept is not position:
            self._ledger.notes.append(note(stream, position.path, kept.dump()))

    def _sick(self, path: str, _: str, error: OSError) -> None:
        """A file that may be a copy cannot be read at present, and so proves nothing."""
        if not isinstance(error, GzipRefusedError):
            self._ledger.unreadable[path] = error.strerror or str(error)

    def _tend_finished(self, listing: DirectoryListing, followed: FollowedFile) -> None:
        """Forget a finished file that is gone, unless it is packed now; take up one that has grown since."""
        ledger, position = self._ledger, followed.position
        if listing.device != position.dev:
            return  # its file system is not mounted
        name = listing.paths.get(position.ino)
        if name is not None and name.endswith(GZIP) != followed.content_packed:  # its inode was given to another file
            self.finished_gone(followed)
            return
        found = ledger.find(listing, position.identity)
        if found is None:
            if position.ino not in listing.paths:
                self.finished_gone(followed)
            return
        path, content, status = found
        try:
            same = followed.unchanged(status.st_size, status.st_mtime_ns)
            fits = same or position.fits(edges_at(content, position.offset))
        except OSError as error:
            ledger.refuse(path, content, error)
            self.unsettled = True
            return
        if fits and not same:
            ledger.reopen(followed, path, content)
            return
        content.close()
        if not same:  # its inode was given to another file
            self.finished_gone(followed)

    def finished_gone(self, followed: FollowedFile) -> None:
        """A finished file is gone: go on in a packed copy that holds more, and forget it."""
        ledger, position = self._ledger, followed.position
        del ledger.finished[position.identity]
        if not self._copy(position, followed.stream, since=position.mtime_ns) and followed.stream is not None:
            ledger.notes.append(note(followed.stream, followed.path, ""))

    def _copy(self, lost: FilePosition, stream: str | None, since: int = 0) -> bool:
        """Go on in a copy of a content that is gone, as the same stream: its cursor moves there. Returns whether so."""
        ledger = self._ledger
        listing = list_directory(os.path.dirname(lost.path))  # noqa: PTH120 - a string stays a string
        opened = (
            copied(listing, lost, ledger.known(), ledger.packs, closed=self._sick, since=since) if listing else None
        )
        if opened is None:
            return False
        with suppress(OSError):  # the next read finds out, and says so
            for place in ledger.positions():  # another copy of it may have been read further, and be gone as well
                here = opened.position
                further = place.offset > here.offset and family(place.path) == family(here.path)
                if further and proves(opened.content, place):
                    opened = replace(opened, position=replace(place, dev=here.dev, ino=here.ino, generation=0))
        stream = stream or name_stream(opened.position)
        ledger.follow_rotated(opened, stream)
        ledger.notes.append(note(stream, opened.path, opened.position.dump()))
        return True


def _holds(content: Content, lost: FilePosition) -> bool:
    """Whether a content has all that was seen of a lost one, by its size and what was read."""
    try:
        return content.state()[0] >= lost.size and lost.fits(edges_at(content, lost.offset))
    except OSError:
        return False
