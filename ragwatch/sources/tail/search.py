"""Search for lost files: continues in the copies of content that is no longer where it was, or counts its loss."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ragwatch.sources.tail.content import Content, GzipRefusedError, OpenedFile, continues
from ragwatch.sources.tail.disk import GZIP, DirectoryListing, family, list_directory, origin_of, size_and_mtime
from ragwatch.sources.tail.file_table import CopyDetector, FileTable
from ragwatch.sources.tail.identity import FileIdentity, FilePosition, name_stream
from ragwatch.sources.tail.reader import FollowedFile


@dataclass(frozen=True, slots=True)
class _PossibleCopy:
    """A rotation that may be a copy."""

    origin: str  # the path it was written under
    since: int  # modification time (ns) from which on a rotation of that path is new
    state: tuple[int, int] | None  # its size and modification time, None to check it on every scan


class LostFileSearch:
    """Searches directories for the files of a table that were renamed, copied, compressed or deleted.

    Attributes:
        incomplete: Whether a known file could not be opened in the last search, or before it was renamed.
    """

    def __init__(self, table: FileTable) -> None:
        self._table = table
        self.incomplete = False
        self._postponed: dict[str, int] = {}
        self._possible_copies: dict[str, _PossibleCopy] = {}

    @property
    def due(self) -> bool:
        """Whether a search for new rotations that was postponed can be done now."""
        in_rotation = self._table.families_in_rotation() if self._postponed else set()
        return any(family(path) not in in_rotation for path in self._postponed) or any(
            size_and_mtime(path) != copy.state for path, copy in self._possible_copies.items()
        )

    def find_moved(self, paths: Iterable[str]) -> None:
        """Search the directories of these paths for known files that were moved, after renames or a start."""
        self.incomplete = False
        for directory in {os.path.dirname(path) for path in paths}:
            listing = list_directory(directory)
            if listing is None:
                continue  # it cannot be listed, so nothing is forgotten
            for identity, (stream, position) in list(self._table.stored.items()):
                if os.path.dirname(position.path) == directory and identity not in self._table.matched:
                    self._find_stored(listing, identity, stream, position)
            self._check_finished_in(listing)

    def follow_new_rotations(self, since_by_path: Mapping[str, int]) -> None:
        """Follow files that were created and rotated between two scans.

        Args:
            since_by_path: Paths they were written under, and the modification time (ns) from which on they are new.
        """
        table, since = self._table, dict(since_by_path)
        for path, mtime_ns in (
            *self._postponed.items(),
            *((copy.origin, copy.since) for copy in self._possible_copies.values()),
        ):
            since[path] = min(mtime_ns, since.get(path, mtime_ns))
        in_rotation = table.families_in_rotation()
        self._postponed = {path: mtime_ns for path, mtime_ns in since.items() if family(path) in in_rotation}
        self._possible_copies = {}
        for directory in {os.path.dirname(path) for path in since}:
            listing = list_directory(directory)
            if listing is None:  # it cannot be listed, so the search is postponed
                self._postponed |= {
                    path: mtime_ns for path, mtime_ns in since.items() if os.path.dirname(path) == directory
                }
                continue
            detector = CopyDetector(table, listing)
            for path, content, status in self._rotations(listing, since, partial(self._retry_later, since)):
                position = FilePosition(status.st_dev, status.st_ino, family(path), mtime_ns=status.st_mtime_ns)
                self._follow_if_new(OpenedFile(path, content, position), since, detector)

    def _follow_if_new(self, opened: OpenedFile, since: Mapping[str, int], detector: CopyDetector) -> None:
        """Follow a rotation that was never seen under its original path, from its first byte."""
        origin = opened.position.path
        try:
            is_new = opened.position.mtime_ns >= since[origin] and not self._may_be_copy(detector, since, opened)
        except OSError as error:
            self._retry_later(since, opened.path, origin, error)
            is_new = False
        if is_new and not (opened.content.packed is not None and origin in self._postponed):
            self._table.adopt(opened, None)
        else:
            opened.content.close()

    def _rotations(
        self, listing: DirectoryListing, origins: Mapping[str, int], on_error: Callable[[str, str, OSError], None]
    ) -> Iterator[tuple[str, Content, os.stat_result]]:
        """Open regular files that are not followed and are named like a rotation of one of these paths.

        The inode of a file that is only known from a cursor may belong to another file by now. While a file that is
        being compressed still exists beside its compressed copy, only that file is read.
        Compressed files that are older than the modification time (ns) of their origin are skipped. `on_error` gets
        path, origin and error of files that cannot be read.
        """
        names, tracked = set(listing.paths.values()), self._table.tracked()
        for ino, path in list(listing.paths.items()):
            origin, identity = origin_of(path), FileIdentity(listing.device, ino)
            position = tracked.get(identity)
            if (identity in tracked and position is None) or origin is None or origin not in origins:
                continue
            if path.endswith(GZIP) and (
                path.removesuffix(GZIP) in names - {origin} or _older(path, ino, origins[origin])
            ):
                continue
            try:
                opened = self._table.opener.open_in(listing, ino)
            except OSError as error:
                on_error(path, origin, error)
                continue
            if opened is None:
                continue
            new_path, content, status = opened
            try:
                skip = origin_of(new_path) != origin or (position and position.offset and content.fits(position))
            except OSError as error:
                on_error(new_path, origin, error)
                skip = True
            if skip:
                content.close()
            else:
                yield new_path, content, status

    def _may_be_copy(self, detector: CopyDetector, since: Mapping[str, int], opened: OpenedFile) -> bool:
        """Whether a file is, or may become, a copy of a known one. If so it is checked again once it has changed."""
        if opened.content.state()[0] and detector.find_original(opened) is None:
            return False
        origin = opened.position.path
        self._possible_copies[opened.path] = _PossibleCopy(origin, since[origin], size_and_mtime(opened.path))
        return True

    def _retry_later(self, since: Mapping[str, int], path: str, origin: str, error: OSError) -> None:
        """A rotation cannot be read at present. If it may be new, it is tried again on every scan."""
        state = size_and_mtime(path)
        if not isinstance(error, GzipRefusedError) and (state is None or state[1] >= since[origin]):
            self._table.report_unreadable(path, error)
            self._possible_copies[path] = _PossibleCopy(origin, since[origin], None)

    def continue_in_copies(self, followed: FollowedFile) -> None:
        """Continue in the copies of truncated or replaced content (copytruncate), where reading stopped."""
        table = self._table
        while followed.lost_contents:
            lost = followed.lost_contents.pop()
            stream, position = lost.stream, lost.position
            listing = list_directory(os.path.dirname(position.path))
            if listing is not None:  # the oldest rotation was deleted just now, and the copy may have its inode
                self._check_finished_in(listing)
            continued = lost.gone and self._continue_in_copy(position, stream)
            if continued:
                followed.keep_stream(stream)
            self.follow_new_rotations({position.path: table.unseen_since(position.mtime_ns)})
            if continued or self._is_read_elsewhere(followed, position):
                continue
            if stream is not None and lost.gone and self._has_refused_rotation(position):
                followed.keep_stream(stream)
                self._wait_for_copy(stream, position)
            elif position.size > position.offset:
                resets = {"truncated_unread": 1}
                if stream is not None:
                    table.move_cursor(stream, followed.path, replace(position, size=position.offset), resets)
                else:
                    table.delete_cursor(name_stream(position), followed.path, resets)

    def _is_read_elsewhere(self, followed: FollowedFile, lost: FilePosition) -> bool:
        """Whether a copy of this content is being read from its first byte, because it was not seen before."""
        return any(
            other.rotated_since is not None and other.content is not None and _contains(other.content, lost)
            for other in self._table.active
            if other is not followed and other.position.path == lost.path
        )

    def handle_deleted(self, stream: str, position: FilePosition) -> None:
        """Continue in a copy of a deleted file, or count what was not read of it."""
        if self._continue_in_copy(position, stream):
            return
        if self._has_refused_rotation(position):
            self._wait_for_copy(stream, position)
            return
        lost = position.size > position.offset
        self._table.delete_cursor(stream, position.path, {"deleted_unread": 1} if lost else None)

    def _find_stored(
        self, listing: DirectoryListing, identity: FileIdentity, stream: str, position: FilePosition
    ) -> None:
        """Find the file of a stored position: follow it if it was renamed, forget it if it was deleted."""
        table = self._table
        try:
            opened = table.opener.open_in(listing, position.ino)
            same = opened is not None and _is_renamed(opened[1], position)
        except OSError as error:
            table.report_unreadable(listing.paths.get(position.ino, position.path), error)
            self.incomplete = True
            return
        if not same and listing.device != position.dev:
            return  # its file system is not mounted
        table.stored.pop(identity)
        if opened is not None and same:
            path, content, status = opened
            table.adopt(OpenedFile(path, content, position.moved_to(status)), stream)
            return
        self.handle_deleted(stream, position)

    def _has_refused_rotation(self, position: FilePosition) -> bool:
        """Whether a compressed rotation of the same path was refused: it may yet be completed."""
        listing = list_directory(os.path.dirname(position.path))
        there = set(listing.paths.values()) if listing else set()
        return any(family(path) == family(position.path) for path in there.intersection(self._table.opener.refusals()))

    def _wait_for_copy(self, stream: str, position: FilePosition) -> None:
        """Keep a position until a compressed copy becomes readable."""
        stored = self._table.store_without_file(stream, position)
        if stored is not position:
            self._table.move_cursor(stream, position.path, stored)

    def _report_unreadable(self, path: str, _: str, error: OSError) -> None:
        """Report a possible copy that cannot be read at present, and so proves nothing."""
        if not isinstance(error, GzipRefusedError):
            self._table.report_unreadable(path, error)

    def _check_finished_in(self, listing: DirectoryListing) -> None:
        """Check all finished files that were written in a directory."""
        for followed in list(self._table.finished.values()):
            if os.path.dirname(followed.position.path) == listing.directory:
                self._check_finished(listing, followed)

    def _check_finished(self, listing: DirectoryListing, followed: FollowedFile) -> None:
        """Forget a finished file that was deleted, unless it is compressed now; follow one that has grown."""
        table, position = self._table, followed.position
        if listing.device != position.dev:
            return  # its file system is not mounted
        name = listing.paths.get(position.ino)
        if name is not None and name.endswith(GZIP) != followed.is_packed:  # its inode was reused
            self.forget_finished(followed)
            return
        opened = table.open_in(listing, position.identity)
        if opened is None:
            if position.ino not in listing.paths:
                self.forget_finished(followed)
            return
        path, content, status = opened
        try:
            unchanged = followed.unchanged(status.st_size, status.st_mtime_ns)
            fits = unchanged or content.fits(position)
        except OSError as error:
            table.close_unreadable(path, content, error)
            self.incomplete = True
            return
        if fits and not unchanged:
            table.reopen(followed, path, content)
            return
        content.close()
        if not unchanged:  # its inode was reused
            self.forget_finished(followed)

    def forget_finished(self, followed: FollowedFile) -> None:
        """Forget a finished file that was deleted; continue in a compressed copy that holds more."""
        position, stream = followed.position, followed.stream
        del self._table.finished[position.identity]
        if not self._continue_in_copy(position, stream, since=position.mtime_ns) and stream is not None:
            self._table.delete_cursor(stream, followed.path)

    def is_packed(self, old: FilePosition, new: FollowedFile) -> bool:
        """Whether a compressed rotation has what was read of a file, and is not the file that took its place."""
        opened = self._find_copy(old, since=old.mtime_ns)
        if opened is None:
            return False
        packed = opened.content
        try:
            is_new = new.is_gone and new.content is not None and _is_same(packed, new.content)
        finally:
            packed.close()
        return packed.packed is not None and not is_new

    def _find_copy(self, lost: FilePosition, since: int = 0) -> OpenedFile | None:
        """Open a rotation of the same path with the content that was read (copytruncate, gzip), where that stopped.

        Args:
            lost: Position in content that is no longer where it was.
            since: Modification time (ns) below which compressed files are skipped: comparing one is expensive.
        """
        listing = list_directory(os.path.dirname(lost.path))
        if listing is None:
            return None
        for path, content, status in self._rotations(listing, {family(lost.path): since}, self._report_unreadable):
            try:
                if continues(content, lost):
                    return OpenedFile(path, content, replace(lost.moved_to(status), generation=0))
            except OSError as error:  # the first bytes were readable, others are not: the search goes on
                self._report_unreadable(path, "", error)
            content.close()
        return None

    def _continue_in_copy(self, lost: FilePosition, stream: str | None, since: int = 0) -> bool:
        """Find a copy of lost content and continue in it as the same stream. Returns whether one is to be read."""
        table, opened = self._table, self._find_copy(lost, since)
        if opened is None:
            return False
        copy = opened.position
        with suppress(OSError):  # the next read raises it again
            if any(_will_read(other, opened) for other in table.active):
                opened.content.close()
                return False
            for position in table.positions():  # another copy may have been read further
                further = position.offset > opened.position.offset and family(position.path) == family(copy.path)
                if further and continues(opened.content, position):
                    if table.is_open(position.identity):  # and is read to its end
                        opened.content.close()
                        return False
                    opened = replace(opened, position=replace(position, dev=copy.dev, ino=copy.ino, generation=0))
        stream = stream or name_stream(opened.position)
        table.adopt(opened, stream)
        table.move_cursor(stream, opened.path, opened.position)
        return True


def _is_same(one: Content, other: Content) -> bool:
    """Whether two contents have the same length and edges."""
    size = one.state()[0]
    return other.state()[0] == size and one.edges(size) == other.edges(size)


def _will_read(followed: FollowedFile, packed: OpenedFile) -> bool:
    """Whether a file that is open goes on from the same byte of the content that was packed."""
    content, at = followed.content, packed.position
    same = followed.position.offset == at.offset and family(followed.position.path) == family(at.path)
    return same and content is not None and _is_same(packed.content, content)


def _contains(content: Content, lost: FilePosition) -> bool:
    """Whether a content has all that was seen of a lost one, judging by its size and the part that was read."""
    try:
        return content.state()[0] >= lost.size and content.fits(lost)
    except OSError:
        return False


def _is_renamed(content: Content, position: FilePosition) -> bool:
    """Whether a file with the inode of a position has its content; else it is closed: the inode was reused."""
    try:
        same = position.offset > 0 and content.fits(position)
    except OSError:
        content.close()
        raise
    if not same:
        content.close()
    return same


def _older(path: str, ino: int, since: int) -> bool:
    """Whether this file, if the path still leads to it, was written before that time (ns)."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_ino == ino and status.st_mtime_ns < since
