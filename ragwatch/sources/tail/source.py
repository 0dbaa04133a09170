"""Source kind `tail`: follows JSONL files through rotation, truncation and restarts; no line is lost or read twice.

A file that was rotated and gzip-compressed before it was read to its end is read from the compressed file, once that is
complete and its checksum matches. Other events of files are counted by reason in `Batch.resets`:

    truncated, replaced           the file was emptied or rewritten, and is read from its first byte; or another file
                                  took its place and does not go on with its lines (see `ReplacedFiles`)
    truncated_unread              ... and bytes that were seen and not read are in no rotation: lost
    deleted_unread                the same for a file that was deleted, or could never be opened
    gz_truncated, gz_damaged      a compressed file is incomplete for longer than `rotate_wait_seconds`, or is damaged
    gz_bomb                       a compressed file unpacks to more than 500 times its size (above 64 MiB), or 64 GiB

What a writer goes on writing to a deleted file is read, and the file is named among those that cannot be read: after a
restart nobody can open it again. A file that is created and deleted between two scans of its directory is not detected
and cannot be counted.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from ragwatch.errors import SourceError
from ragwatch.ports import Batch
from ragwatch.sources.tail.content import CHUNK_BYTES, Content, continues, count_lines
from ragwatch.sources.tail.descriptors import SHARED_BUDGET, DescriptorBudget, FileGoneError
from ragwatch.sources.tail.file_table import FileTable
from ragwatch.sources.tail.identity import TAIL
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.reader import FollowedFile, ReadStep
from ragwatch.sources.tail.scanner import FileScanner
from ragwatch.sources.tail.search import LostFileSearch
from ragwatch.statistics.snapshot import Lag

DELETED_REASON = (
    "deleted, but still written to: a restart of ragwatch loses what is written meanwhile; "
    "let the writer open its log again (lsof +L1 names it)"
)


class TailSource:
    """Reads lines of files, in batches of one file each; files take turns. See `ports.Source`.

    Args:
        clock: Monotonic seconds; only for waiting and ages, never for order or identity.
        descriptors: The budget of open files, by default the one that all sources of the process share.
    """

    def __init__(
        self,
        options: Options,
        clock: Callable[[], float] = time.monotonic,
        descriptors: DescriptorBudget = SHARED_BUDGET,
    ) -> None:
        self.name = options.name
        self._clock = clock
        self._rotate_wait_seconds = options.rotate_wait_seconds
        self._files = FileTable(options, clock, descriptors)
        self._search = LostFileSearch(self._files)
        self._scanner = FileScanner(options, clock, self._files, self._search)
        self._replaced = ReplacedFiles(self._files, self._search, options.rotate_wait_seconds)
        self._turn = 0
        self._pending: ReadStep | Batch | None = None

    @property
    def skipped(self) -> frozenset[str]:
        """Paths that match but are no text to follow: directories, FIFOs, devices, compressed files."""
        return frozenset(self._scanner.skipped)

    @property
    def unreadable(self) -> dict[str, str]:
        """Paths that cannot be read at present, and why. They are tried again, compressed ones when they change."""
        return {**self._files.opener.refusals(), **self._files.unreadable}

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue after these cursors. Raises SourceError: one is not valid; the user has to decide where to start."""
        self._scanner.resume(cursors)

    def read(self) -> Batch | None:
        """Read the next lines of one file; returns the same batch until it is committed. None when nothing is new.

        A batch without lines moves a cursor; one whose cursor is empty deletes the cursor of its stream.

        Raises:
            SourceError: Files match, or may match in a directory that cannot be listed, and none of them can be read.
        """
        if self._pending is None:
            self._pending = self._next()
        if self._pending is not None:
            return _batch_of(self._pending)
        if self._files.unreadable and not self._files.active:
            path, why = next(iter(self._files.unreadable.items()))
            raise SourceError(f"source {self.name}: {path}: {why}")
        return None

    def commit(self, batch: Batch) -> None:
        """The batch is stored: continue after it. Raises ValueError: it is not the batch that was read last."""
        pending = self._pending
        if pending is None or _batch_of(pending) is not batch:
            raise ValueError("only the batch that was read last can be committed")
        self._pending = None
        if isinstance(pending, Batch):
            self._files.updates.popleft()
            return
        for stream in pending.file.accept(pending):
            self._files.delete_cursor(stream, pending.file.path)

    def lag(self) -> Lag:
        """Unread bytes of open files, and the age of the oldest. Scans, so that rotations are detected while paused."""
        if self._scanner.scanned:
            self._scanner.scan()  # backpressure may stop reads for long: files are opened now so that none is missed
        now = self._clock()
        size, age = 0, 0.0
        for followed in self._files.active:
            with suppress(OSError):  # the next read raises it again
                unread, seconds = followed.unread(now)
                size, age = size + unread, max(age, seconds)
        missing, active = self._scanner.missing, self._files.active
        lost_at_restart = [f"{file.original_path} (deleted)" for file in active if file.written_after_deletion]
        unknown = not self._files.active and (self._files.unreadable or missing or not self._scanner.scanned)
        return Lag(
            size,
            None if unknown else age,
            self.unreadable | missing | dict.fromkeys(lost_at_restart, DELETED_REASON),
            closed=sum(file.content is not None and file.content.handle.fd is None for file in self._files.active),
            problems=tuple(f"{directory}: {why}" for directory, why in missing.items()),
            skipped=str(self._scanner.first_scan or ""),
        )

    def close(self) -> None:
        """Close the files. What was read and not committed is read again by the next start."""
        for followed in self._files.active:
            followed.close()

    def _next(self) -> ReadStep | Batch | None:
        """The next cursor update or, when there is none, the next step of a file."""
        self._scanner.scan()
        if self._files.updates:
            return self._files.updates[0]
        rotated = self._files.rotated()
        files = self._files.active
        self._turn %= max(1, len(files))
        for index, followed in enumerate((*files[self._turn :], *files[: self._turn])):
            for file in (*rotated.get(followed.position.path, ()), followed):
                step = self._step(file)
                if self._files.updates:  # a copy was found: its cursor is stored first
                    return self._files.updates[0]
                if step is not None:
                    self._turn += index + 1
                    return step
        return None

    def _step(self, followed: FollowedFile) -> ReadStep | None:
        """The next step of a file; one that was rotated and read to its end is closed."""
        if followed.content is None:
            return None
        now = self._clock()
        try:
            if not self._replaced.begin(followed, now):
                return None
            step = followed.read(now)
            while followed.lost_contents:  # a step from before the search may be in a copy that was found by it
                self._search.continue_in_copies(followed)
                step = followed.read(now)
            done = step is None and followed.idle(now, self._rotate_wait_seconds)
            if done and not any(other.replaced is followed for other in self._files.active):  # else it is compared
                step = followed.reject_rest()
                if step is None:
                    is_deleted = followed.content.handle.is_deleted
                    self._files.finish(followed)
                    if is_deleted:  # it is forgotten before its inode is reused
                        self._search.forget_finished(followed)
        except FileGoneError:
            return None  # the next scan finds it under another name, or counts what is lost
        except OSError as error:
            self._files.suspend(followed, error)
            return None
        return step


def _batch_of(pending: ReadStep | Batch) -> Batch:
    return pending if isinstance(pending, Batch) else pending.batch


class ReplacedFiles:
    """Decides from which byte files are read that took the place of a log (`sed -i`, an editor, rsync).

    The old file is open, so it is read to its end first. The new one may go on with its content, or lack the last lines
    that were written to the old one while the copy was made, or have some lines changed; the lines that both begin with
    are read in the old one alone. It is a copy if it begins with all that was read, or with more than half of the
    lines: a new log may begin with the same header.

    Args:
        search: Finds rotations of the old files.
        wait_seconds: How long a file with only the first bytes of the old one may be a copy that is being made.
    """

    def __init__(self, table: FileTable, search: LostFileSearch, wait_seconds: float) -> None:
        self._table = table
        self._search = search
        self._wait_seconds = wait_seconds

    def begin(self, new: FollowedFile, now: float) -> bool:
        """Move to the byte from which a file is read; False while it is unknown. Raises OSError: one cannot be read."""
        old = new.replaced
        if old is None or new.content is None:
            return True
        if not old.is_drained:
            return False  # were the place in the new file stored before that, a kill would lose the rest of the old one
        if self._may_grow(new.content, old, now):
            return False
        if not (old.is_gone and self._search.is_packed(old.position, new)):  # else it was rotated: all lines are new
            if continues(new.content, old.position):
                new.continue_after(old)
            else:
                _skip_shared_lines(new, new.content, old)
        if new.stream is not None:
            self._table.move_cursor(new.stream, new.path, new.position)
        new.replaced = None
        return True

    def _may_grow(self, copy: Content, old: FollowedFile, now: float) -> bool:
        """Whether a new file has only the first bytes of the old one, and the copy may still be in the making."""
        since, size = old.rotated_since, copy.state()[0]
        if old.content is None or since is None or now - since >= self._wait_seconds or size >= old.position.offset:
            return False
        return copy.edges(size) == old.content.edges(size)


def _skip_shared_lines(new: FollowedFile, content: Content, old: FollowedFile) -> None:
    """Skip the lines that a new file has in common with the old one; it lacks others, or has them changed."""
    shared, is_copy = 0, False
    if old.content is not None:
        shared = _shared_bytes(content, old.content)
        if shared >= TAIL and shared == old.content.state()[0]:
            old.copied_size = shared
        is_copy = _is_most(old.content, shared)
    if is_copy:
        new.skip_to_end(shared)
    if shared < content.state()[0] and old.position.offset and (is_copy or old.is_gone):
        new.count_replaced()


def _shared_bytes(one: Content, other: Content) -> int:
    """How many bytes at the start of two contents are the same."""
    at = 0
    while True:
        left, right = one.pread(CHUNK_BYTES, at), other.pread(CHUNK_BYTES, at)
        if left != right or not left:
            pairs = enumerate(zip(left, right, strict=False))
            return at + next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
        at += len(left)


def _is_most(content: Content, end: int) -> bool:
    """Whether more than half of the lines of a content are in its first `end` bytes: no header is that long."""
    lines = count_lines(content, end) if end >= TAIL else 0
    if lines is None:
        return True
    rest, at = 0, end
    while rest < lines and (block := content.pread(CHUNK_BYTES, at)):
        rest, at = rest + block.count(b"\n"), at + len(block)
    return rest < lines


def build(options: Options) -> TailSource:
    """Make the source."""
    return TailSource(options)
