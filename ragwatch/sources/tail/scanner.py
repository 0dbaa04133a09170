"""Directory scans: finds new, rotated and deleted files, and decides from which position a new file is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from glob import has_magic

import orjson

from ragwatch.sources.tail.closed import UnopenedFiles, update_paths
from ragwatch.sources.tail.content import Content, OpenedFile, continues
from ragwatch.sources.tail.disk import (
    GZIP,
    NOT_UTF8,
    DirectoryListing,
    DirectoryWatch,
    MatchedFile,
    directories_of,
    discover,
    family,
    is_utf8,
    list_directory,
    missing_directories,
    origins_of_rotations,
    rotated_name,
    status_of,
)
from ragwatch.sources.tail.file_table import CopyDetector, FileTable, cursor_update
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.search import LostFileSearch

STARTED = "started"
"""Stream of the cursor that holds the first scan: once it is stored, a file without a cursor is new."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class FirstScan:
    """The result of the first scan. It is stored as a cursor."""

    since_ns: int = 0  # file time from which on files are new
    records: int = 0  # existing lines that are not read, where they were counted
    size: int = 0  # existing bytes that are not read
    more: bool = False  # whether there are further lines, in files that are too large to be counted

    def skipping(self, position: FilePosition) -> FirstScan:
        """The same after the content before this position was skipped."""
        return replace(
            self,
            records=self.records + (position.line or 0),
            size=self.size + position.offset,
            more=self.more or position.line is None,
        )

    def dump(self) -> str:
        """The result as a cursor."""
        return orjson.dumps(asdict(self)).decode()

    def __str__(self) -> str:
        """How much was skipped, and what to do about it; empty when nothing was."""
        if not self.size:
            return ""
        count = f"{self.records:,} existing records"
        if self.more:
            count = f"more than {count}" if self.records else f"{_bytes(self.size)} of existing records"
        return (
            f"0 of {count} read: `start: end`; only what is written from now on is read (to read what is there: "
            "`start: beginning` and a new `state` directory, or a trial with `ragwatch run --once`)"
        )


def load(cursor: str) -> FirstScan:
    """Parse a stored cursor. Without `since_ns`, as earlier versions stored it, all files are new."""
    stored = orjson.loads(cursor)
    return FirstScan(**{name: stored[name] for name in FirstScan.__slots__ if name in stored})


def _bytes(size: int) -> str:
    power = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:.3g} {_UNITS[power]}"


class FileScanner:
    """Scans the directories of one source at intervals and updates its file table.

    Attributes:
        skipped: Paths that match but are no regular text files.
        first_scan: The result of the first scan, None before it.
        missing: Watched directories that do not exist, and what to do.
    """

    def __init__(self, options: Options, clock: Callable[[], float], table: FileTable, search: LostFileSearch) -> None:
        self._options = options
        self._clock = clock
        self._table = table
        self._search = search
        self._unopened = UnopenedFiles(table)
        self._directories = DirectoryWatch()
        self._unseen_since: dict[str, int] = {}
        self._originals: dict[FileIdentity, tuple[FileIdentity, int]] = {}
        self._scanned_at: float | None = None
        self._skip_existing = options.skips_existing
        self.skipped: set[str] = set()
        self.first_scan: FirstScan | None = None
        self.missing: dict[str, str] = {}

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Load stored cursors; files are matched with them at the first scan. Raises SourceError: one is not valid."""
        self._skip_existing = self._options.skips_existing and STARTED not in cursors
        self.first_scan = load(cursors[STARTED]) if STARTED in cursors else None
        self._table.restore({stream: cursor for stream, cursor in cursors.items() if stream != STARTED})

    def scan(self) -> None:
        """Scan, if it is time: follow new files, detect rotated ones, forget deleted ones."""
        now = self._clock()
        first = self._scanned_at is None
        if self._scanned_at is not None and now - self._scanned_at < self._options.scan_seconds:
            return
        table, search = self._table, self._search
        matched, self.skipped, table.unreadable = discover(self._options.patterns)
        self.missing = missing_directories(self._options.patterns, table.positions(), matched)
        begins, self.first_scan = self.first_scan is None, self.first_scan or self._scan_history(matched)
        table.scanned_at, table.matched, table.since_ns, table.adopted = now, matched, self.first_scan.since_ns, set()
        unseen_since = table.unseen_since_by_path()
        before = unseen_since if first else self._unseen_since  # anything younger was followed by the previous scan
        since = {path: min(mtime_ns, before.get(path, table.since_ns)) for path, mtime_ns in unseen_since.items()}
        self._unseen_since = unseen_since
        unread = dict.fromkeys(self._unread_paths(now) - unseen_since.keys(), table.since_ns)
        moved = update_paths(table) | table.detect_renames()
        active = {followed.position.identity for followed in table.active}
        new = [self._follow_if_due(identity) for identity in matched if identity not in active]
        if begins:
            table.updates.appendleft(cursor_update(STARTED, "", self.first_scan.dump()))
        recovered = table.opener.forget_changed()
        if first or moved or any(new) or recovered or search.incomplete:
            search.find_moved(unseen_since.keys())
        if not (first or recovered):
            changed = moved | self._directories.in_changed_directories(unseen_since, now)
            since = {path: since[path] for path in changed}
        if since or unread or search.due:
            search.follow_new_rotations(unread | since)
        search.incomplete |= self._unopened.resolve()
        for path, flaw in table.opener.new_flaws():
            table.delete_cursor("refused", path, {flaw: 1})
        self._skip_existing = False
        self._scanned_at = self._clock()  # the end of the scan, so that reads get their turn when scans are slow

    @property
    def scanned(self) -> bool:
        """Whether a scan has been done."""
        return self._scanned_at is not None

    def _scan_history(self, matched: Mapping[FileIdentity, MatchedFile]) -> FirstScan:
        """The end of what was written before the first scan, by the files' own times, not by the system clock."""
        directories = {os.path.dirname(path) for path in self._real_paths(matched.values())}
        directories.update(
            os.path.realpath(directory) for pattern in self._options.patterns for directory in directories_of(pattern)
        )
        listings = [listing for directory in directories if (listing := list_directory(directory)) is not None]
        statuses = [status_of(path) for listing in listings for path in listing.paths.values()]
        return FirstScan(max([0, *(status.st_mtime_ns + 1 for status in statuses if status is not None)]))

    def _unread_paths(self, now: float) -> set[str]:
        """Paths, such as the patterns match, of files that are not followed and of rotations in changed directories.

        A file may be created and rotated between two scans, and may be the first and the last of its name.
        """
        changed = [
            pattern
            for pattern in self._options.patterns
            if has_magic(pattern) and any(self._directories.changed(path, now) for path in directories_of(pattern))
        ]
        rotated = {os.path.realpath(path) for pattern in changed for path in origins_of_rotations(pattern)}
        active = {followed.position.identity for followed in self._table.active}
        new = [match for identity, match in self._table.matched.items() if identity not in active]
        return {path for path in self._real_paths(new) | rotated if is_utf8(path)}

    def _real_paths(self, files: Iterable[MatchedFile]) -> set[str]:
        """Real paths of these files, and of patterns without wildcards."""
        paths = {path for match in files for path in match.paths}
        paths.update(pattern for pattern in self._options.patterns if not has_magic(pattern))
        return {os.path.realpath(path) for path in paths}

    def _follow_if_due(self, identity: FileIdentity) -> bool:
        """Follow a matched file, unless it has nothing new. Returns whether it was not known in this process."""
        table, match = self._table, self._table.matched[identity]
        path = match.paths[0]
        finished = table.finished.get(identity)
        if finished and finished.is_packed != path.endswith(GZIP):
            self._search.forget_finished(finished)  # its inode was reused
            finished = None
        is_known = finished or identity in table.stored
        if (
            identity in table.adopted
            or not (match.size or is_known or rotated_name(path) is None)  # a copy that is being made
            or (finished and finished.unchanged(match.size, match.mtime_ns))
            or self._must_wait(identity, path)
        ):
            return False
        real_path = os.path.realpath(path)
        if not is_utf8(real_path):  # a link leads there
            table.report_unreadable(real_path, OSError(NOT_UTF8))
            return False
        content = table.open(path, identity)
        if content is None:
            self._unopened.add(identity, match)
            return False
        try:
            return self._follow(identity, path, real_path, content)
        except OSError as error:
            table.close_unreadable(path, content, error)
            return False

    def _follow(self, identity: FileIdentity, path: str, real_path: str, content: Content) -> bool:
        """Follow an opened file, unless it is a copy. Returns whether it was not known in this process."""
        table, finished = self._table, self._table.finished.get(identity)
        same = finished and content.fits(finished.position)
        if finished and same and table.replaced_at(real_path) is None:
            table.reopen(finished, path, content)
            return False
        if finished:  # its inode was reused
            self._search.forget_finished(finished)
        origin = family(real_path)
        if origin != real_path and not self._is_new_rotation(identity, origin, content):
            content.close()
            return False
        stream, position = self._resume_position(identity, origin if content.packed is not None else real_path, content)
        opened = OpenedFile(path, content, position)
        followed = table.follow(opened, stream, rotated=real_path != position.path)
        if self._skip_existing and stream is None:
            followed.skip_to_end()
            table.move_cursor(followed.stream or "", path, followed.position)
            self.first_scan = (self.first_scan or FirstScan()).skipping(followed.position)
        return True

    def _must_wait(self, identity: FileIdentity, path: str) -> bool:
        """Whether a compressed file is a copy of an existing one, or may be of one that is still being read."""
        table = self._table
        if not path.endswith(GZIP) or identity in table.stored:
            return False
        contents = {(position.identity, position.generation) for position in table.positions()}
        if self._originals.get(identity) in contents:
            return True
        origin = family(os.path.realpath(path))
        plain = path.removesuffix(GZIP)
        return (plain != origin and os.path.lexists(plain)) or family(origin) in table.families_in_rotation()

    def _is_new_rotation(self, identity: FileIdentity, origin: str, content: Content) -> bool:
        """Whether a file named like a rotation is to be followed: it has a cursor, or is not a copy.

        That is of another file that still exists, or did when reading stopped in it.
        """
        table = self._table
        if identity in table.stored:
            stream, position = table.stored[identity]
            if (position.offset or content.packed is None) and content.fits(position):
                return True
            table.stored.pop(identity)
            self._search.handle_deleted(stream, position)  # its inode was reused
        if identity in table.adopted:
            return False
        known = any(family(position.path) == origin for position in table.positions())
        listing = list_directory(os.path.dirname(origin)) if known else None
        if listing is None:
            return True
        gone = {
            identity for identity in table.stored if identity not in table.matched and identity.ino not in listing.paths
        }
        opened = OpenedFile(origin, content, FilePosition(*identity, origin))
        original = CopyDetector(table, listing).find_original(opened, gone=gone)
        if original is not None:
            self._originals[identity] = (original.identity, original.generation)
        return original is None

    def _resume_position(self, identity: FileIdentity, path: str, content: Content) -> tuple[str | None, FilePosition]:
        """The stored stream and position of a file; no stream and the first byte when there is none.

        Matched by identity, or by path and content: after a backup, a compression, or with other device numbers.
        """
        table, own, original = self._table, self._table.stored.get(identity), None
        same_path = own is not None and own[1].path == path and content.packed is None  # compression makes a new file
        if own is not None and (same_path or own[1].offset > 0) and content.fits(own[1]):
            return table.stored.pop(identity)
        if content.packed is not None or table.replaced_at(path) is None:  # else it is compared with that file
            original = self._furthest_original(path, content)
        if own is not None:
            table.stored.pop(identity)  # not before the content could be read
            if same_path and original is None:
                return own
            table.store_without_file(*own)  # its inode was reused; another file may have its content
        if original is not None:
            stream, position = table.stored.pop(original.identity)
            moved = replace(position, dev=identity.dev, ino=identity.ino)
            table.move_cursor(stream, path, moved)
            return stream, moved
        return None, FilePosition(identity.dev, identity.ino, path, mtime_ns=table.matched[identity].mtime_ns)

    def _furthest_original(self, path: str, content: Content) -> FilePosition | None:
        """The stored position that is furthest of those in files that are gone and of which this is a copy."""
        stored = self._table.stored
        listing = list_directory(os.path.dirname(path)) if stored else None
        if listing is None:
            return None
        packed, furthest = content.packed is not None, None
        for identity, (_, position) in stored.items():
            same_path = position.path == path or (packed and family(position.path) == path)
            further = furthest is None or position.offset > furthest.offset
            if same_path and further and continues(content, position) and self._is_gone(listing, identity, position):
                furthest = position
        return furthest

    def _is_gone(self, listing: DirectoryListing, identity: FileIdentity, position: FilePosition) -> bool:
        """Whether the file of a stored position is no longer there, or its inode belongs to another file by now."""
        table = self._table
        match = table.matched.get(identity)
        if match:
            content = table.open(match.paths[0], identity)
            if content is None:
                return False
        elif (opened := table.open_in(listing, identity)) is not None:
            content = opened[1]
        else:
            return identity.ino not in listing.paths
        try:
            return not content.fits(position)
        finally:
            content.close()
