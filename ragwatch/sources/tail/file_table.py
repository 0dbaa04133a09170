"""File table: the state of one source: which files are followed, which are read to their end, which only have cursors.

Every change of a stored cursor goes through the queue of updates.
"""

import os
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from errno import EBADF

from ragwatch.ports import Batch
from ragwatch.sources.tail.content import Content, ContentOpener, OpenedFile, continues
from ragwatch.sources.tail.descriptors import DescriptorBudget
from ragwatch.sources.tail.disk import (
    TIMESTAMP_SECONDS,
    DirectoryListing,
    MatchedFile,
    family,
    has_left,
    list_directory,
    printable,
)
from ragwatch.sources.tail.identity import FileIdentity, FilePosition, load
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.reader import FollowedFile


class FileTable:
    """The files of one source.

    Attributes:
        active: Followed files in the order they take turns.
        finished: Rotated files that were read to their end. Their cursors stay as long as the files do.
        stored: Stream and position of stored cursors whose files were not found yet.
        adopted: Files that were followed under another path since the last scan began.
        matched: Files that the patterns matched at the last scan.
        unreadable: Paths that match but cannot be read at present, and why.
        updates: Cursor updates that are not committed, oldest first.
        since_ns: File time from which on files are new.
        scanned_at: Monotonic seconds of the last scan. Files of one scan are ordered by their own times.
    """

    def __init__(self, options: Options, clock: Callable[[], float], descriptors: DescriptorBudget) -> None:
        self.active: list[FollowedFile] = []
        self.finished: dict[FileIdentity, FollowedFile] = {}
        self.stored: dict[FileIdentity, tuple[str, FilePosition]] = {}
        self.adopted: set[FileIdentity] = set()
        self.unreadable: dict[str, str] = {}
        self.updates: deque[Batch] = deque()
        self.matched: Mapping[FileIdentity, MatchedFile] = {}
        self._left: Mapping[str, Sequence[FollowedFile]] = {}  # by path, as of the last scan
        self.opener = ContentOpener(clock, options.rotate_wait_seconds, descriptors)
        self.since_ns = 0
        self.scanned_at = clock()
        self._options = options
        self._between_scans_ns = int((options.scan_seconds + TIMESTAMP_SECONDS) * 1e9)

    def restore(self, cursors: Mapping[str, str]) -> None:
        """Load stored cursors; files are matched with them at the first scan. Raises SourceError: one is invalid."""
        positions = [(stream, load(stream, cursor)) for stream, cursor in cursors.items()]
        for stream, position in sorted(positions, key=lambda item: item[1].generation):
            older = self.stored.get(position.identity)
            if older and older[1].generation == position.generation:  # killed right after an inode was reused
                self.store_without_file(*older)
            elif older:  # killed between the commit of a new generation and the deletion of the one before
                self.delete_cursor(older[0], position.path)
            self.stored[position.identity] = (stream, position)

    def delete_cursor(self, stream: str, path: str, resets: Mapping[str, int] | None = None) -> None:
        """Queue the deletion of a stream's cursor, and counts of resets by reason."""
        self.updates.append(cursor_update(stream, path, "", resets))

    def move_cursor(
        self, stream: str, path: str, position: FilePosition, resets: Mapping[str, int] | None = None
    ) -> None:
        """Queue a new cursor of a stream, and counts of resets by reason."""
        self.updates.append(cursor_update(stream, path, position.dump(), resets))

    def count_deleted(self, identity: FileIdentity, path: str) -> None:
        """Count the loss of a file that was deleted before anything of it was read."""
        self.delete_cursor(f"{identity.dev:x}-{identity.ino:x}", path, {"deleted_unread": 1})

    def positions(self) -> list[FilePosition]:
        """Every known position."""
        followed = [file.position for file in (*self.active, *self.finished.values())]
        return followed + [position for _, position in self.stored.values()]

    def tracked(self) -> dict[FileIdentity, FilePosition | None]:
        """All known files: None for those that were found, the position for those that are only known from cursors."""
        tracked: dict[FileIdentity, FilePosition | None] = {
            identity: position for identity, (_, position) in self.stored.items()
        }
        return tracked | dict.fromkeys(file.position.identity for file in (*self.active, *self.finished.values()))

    def store_without_file(self, stream: str, position: FilePosition) -> FilePosition:
        """Store a position whose file is gone, under a negative inode, which no file has."""
        if position.ino >= 0:
            position = replace(position, ino=min([0, *(identity.ino for identity in self.stored)]) - 1)
        self.stored[position.identity] = (stream, position)
        return position

    def unseen_since_by_path(self) -> dict[str, int]:
        """For each followed path, the modification time (ns) from which on an unknown rotation of it is new."""
        since: dict[str, int] = {}
        for position in self.positions():
            since[position.path] = max(since.get(position.path, 0), self.unseen_since(position.mtime_ns))
        return since

    def unseen_since(self, mtime_ns: int) -> int:
        """Modification time (ns) from which on a rotation is new if the content read last at its path is of `mtime_ns`.

        What is read was written at most one scan interval after the last scan of the directory. All files that were
        added since then are younger than that scan; those that were there before the very first scan are not new.
        """
        return max(self.since_ns, mtime_ns - self._between_scans_ns)

    def families_in_rotation(self) -> set[str]:
        """Families with a file that is gone and not read to its end: its compressed copy may already exist."""
        return {
            family(followed.position.path)
            for followed in self.active
            if followed.rotated_since is not None
            and not followed.is_packed
            and has_left(followed.path, followed.position.identity)
        }

    def follow(self, opened: OpenedFile, stream: str | None, *, rotated: bool = False) -> FollowedFile:
        """Follow a file. A rotated one is no longer at the path it was written under."""
        followed = FollowedFile(opened, stream, self._options)
        if stream is None and opened.content.packed is None:
            followed.replaced = self.replaced_at(family(opened.position.path))
        self.active.append(followed)
        if rotated:
            followed.original_path, followed.rotated_since = opened.position.path, self.scanned_at
        return followed

    def adopt(self, opened: OpenedFile, stream: str | None) -> None:
        """Follow a rotated file that was found by a search."""
        self.follow(opened, stream, rotated=True)
        self.adopted.add(opened.position.identity)

    def reopen(self, followed: FollowedFile, path: str, content: Content) -> None:
        """Follow a finished file again: it has grown."""
        del self.finished[followed.position.identity]
        followed.reopen(path, content)
        left = followed.has_left
        followed.rotated_since = self.scanned_at if left else None
        self.active.append(followed)

    def finish(self, followed: FollowedFile) -> None:
        """Close a rotated file that was read to its end. Its cursor stays as long as the file does."""
        self.active.remove(followed)
        followed.close()
        self.finished[followed.position.identity] = followed

    def suspend(self, followed: FollowedFile, error: OSError) -> None:
        """Close a file that cannot be read at present; a scan that can open it continues where it stopped."""
        if followed.content is not None:
            self.close_unreadable(followed.path, followed.content, error)
        followed.content = None
        if followed.stream is not None:
            self.stored[followed.position.identity] = (followed.stream, followed.position)

    def release_deleted(self, followed: FollowedFile) -> None:
        """Close a file that is gone: its copy is searched for, or its loss is counted, as after a restart."""
        position = followed.last_seen
        if followed.stream is not None:
            self.stored[position.identity] = (followed.stream, position)
        elif position.size:
            self.count_deleted(position.identity, followed.path)
        self.forget(followed)

    def forget(self, followed: FollowedFile) -> None:
        """Close a file, and follow it no longer."""
        self.active.remove(followed)
        for stream in followed.superseded:
            self.delete_cursor(stream, followed.path)
        followed.close()

    def detect_renames(self) -> set[str]:
        """Update which files were renamed or deleted. Returns the original paths where that is new."""
        renamed = set()
        for followed in self.active:
            identity = followed.position.identity
            match = self.matched.get(identity)
            if (match and followed.original_path in match.paths) or not followed.has_left:
                followed.rotated_since = None
                continue
            if match and followed.path not in match.paths:
                followed.path = match.paths[0]
            if followed.rotated_since is None:
                followed.rotated_since = self.scanned_at
                renamed.add(followed.position.path)
        self._left = self.rotated()
        return renamed

    def replaced_at(self, path: str) -> FollowedFile | None:
        """The file that left this path last, if it was deleted, or renamed beside it in another way than rotations are.

        Only such a file can have been replaced by a copy; after a rotation, equal lines are a header.
        """
        left = self._left.get(path) or [file for file in self.active if file.original_path == path and file.has_left]
        old = next((followed for followed in reversed(left) if not followed.is_packed), None)
        if old is None:
            return None
        listing = list_directory(os.path.dirname(path))
        name = listing.paths.get(old.position.ino) if listing and listing.device == old.position.dev else None
        if name is None:
            return old if old.is_gone else None
        return None if family(name) == family(path) else old

    def is_open(self, identity: FileIdentity) -> bool:
        """Whether a followed file can be read whatever becomes of its path."""
        contents = (followed.content for followed in self.active if followed.position.identity == identity)
        return any(content is not None and content.handle.fd is not None for content in contents)

    def rotated(self) -> dict[str, list[FollowedFile]]:
        """Rotated files by the path they were written under, oldest first: they are read before its present file."""
        rotated: dict[str, list[FollowedFile]] = {}
        for followed in self.active:
            if followed.rotated_since is not None:
                rotated.setdefault(followed.position.path, []).append(followed)
        for files in rotated.values():
            files.sort(key=lambda followed: (followed.rotated_since, followed.position.mtime_ns))
        return rotated

    def open(self, path: str, identity: FileIdentity) -> Content | None:
        """Open a file, and check that it is still the one that was matched at this path."""
        try:
            opened = self.opener.open(path, identity.ino)
        except FileNotFoundError:
            return None  # renamed since it was matched: the next scan finds it under another name
        except OSError as error:
            self.report_unreadable(path, error)
            return None
        if opened is None:
            return None
        content, status = opened
        if identity.dev == status.st_dev:
            return content
        content.close()
        return None

    def open_in(self, listing: DirectoryListing, identity: FileIdentity) -> tuple[str, Content, os.stat_result] | None:
        """Open a file by its inode, under any name in a directory; None when it is not there, or cannot be opened."""
        try:
            return self.opener.open_in(listing, identity.ino) if listing.device == identity.dev else None
        except OSError as error:
            self.report_unreadable(listing.paths.get(identity.ino, listing.directory), error)
            return None

    def report_unreadable(self, path: str, error: OSError) -> None:
        """Report that this path cannot be read at present."""
        self.unreadable[printable(path)] = error.strerror or str(error)

    def close_unreadable(self, path: str, content: Content, error: OSError) -> None:
        """Close a file that was opened and cannot be read at present."""
        self.report_unreadable(path, error)
        self.active[:] = [followed for followed in self.active if followed.content is not content]
        if error.errno == EBADF:  # the number may belong to another file by now
            content.handle.abandon()
            return
        with suppress(OSError):  # a stale handle's descriptor is released all the same
            content.close()


def cursor_update(stream: str, path: str, cursor: str, resets: Mapping[str, int] | None = None) -> Batch:
    """A batch without records: sets the cursor of a stream, or deletes it if `cursor` is empty, and counts resets."""
    return Batch(stream=stream, file=path, lines=(), offsets=(), numbers=(), cursor=cursor, resets=resets or {})


class CopyDetector:
    """Compares unknown content with the files that are known at this moment.

    Services write the same header at the top of every file, so that equal content before a position is no proof while
    the original can be read: a copy, complete or not, is a prefix of it. Where the original is gone, or was truncated
    and that is not detected yet, its copy may go on after the position: `LostFileSearch` continues there.
    """

    def __init__(self, table: FileTable, listing: DirectoryListing) -> None:
        self._table = table
        self._listing = listing
        self._open = {followed.position.identity: followed.content for followed in table.active}
        self._positions: dict[str, list[FilePosition]] = {}
        for position in sorted(table.positions(), key=lambda position: position.offset):  # gzip is cheapest forward
            self._positions.setdefault(family(position.path), []).append(position)

    def find_original(self, opened: OpenedFile, *, gone: Container[FileIdentity] = ()) -> FilePosition | None:
        """The position in a file of which this may be a copy; None when it is a new file.

        Args:
            opened: An unknown file; its position has the path it was written under.
            gone: Files that are known to be deleted.
        """
        size, packed = opened.content.state()[0], opened.content.packed is not None
        for position in self._positions.get(opened.position.path, ()) if size else ():
            if not packed and position.path != opened.position.path:
                continue  # a file beside it with a name like `app-7` may be no rotation at all
            if position.identity != opened.position.identity and position.identity not in gone:
                if position.offset <= size and not opened.content.fits(position):
                    continue
                if self._may_be_copy(opened.content, size, position):
                    return position
        return None

    def _may_be_copy(self, content: Content, size: int, position: FilePosition) -> bool:
        edges, original = content.edges(size), self._open_original(position)
        if original is None:
            return continues(content, position)
        try:  # the original is read after the content: it may be growing
            if edges is not None and edges == original.edges(size):
                return True
            truncated = not original.fits(position)
        except OSError:
            truncated = True  # it cannot be read: treated as if it were not here
        finally:
            original.close()
        return truncated and continues(content, position)

    def _open_original(self, position: FilePosition) -> Content | None:
        """A second reader of the file of a position. None when it is not in this directory, or cannot be opened."""
        content = self._open.get(position.identity)
        if content is not None:
            with suppress(OSError):  # closed to save descriptors, and renamed since
                return content.duplicate()
        opened = self._table.open_in(self._listing, position.identity)
        return opened[1] if opened is not None else None
