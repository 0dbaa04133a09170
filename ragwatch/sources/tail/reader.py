"""Followed files: each is read forward in steps that are repeated until they are committed."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, replace

from ragwatch.ports import Batch
from ragwatch.sources.tail.content import Content, OpenedFile, count_lines, end_of_last_line
from ragwatch.sources.tail.disk import TIMESTAMP_SECONDS, has_left
from ragwatch.sources.tail.identity import ContentEdges, FilePosition, name_stream
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.records import MAX_DOCUMENT_BYTES, RecordBlock, RecordReader

_MAX_ARRIVALS = 64
DELETED_WAIT_SECONDS = 3600.0
"""How long a deleted file stays open after it last grew, if its writer has written to it after the deletion. It cannot
be opened again, so what is written later would be lost."""


@dataclass(frozen=True, slots=True)
class ReadStep:
    """A batch, its file, and the position of that once the batch is committed."""

    file: FollowedFile
    batch: Batch
    position: FilePosition


@dataclass(frozen=True, slots=True)
class LostContent:
    """Content that was truncated or replaced, and how far it was read."""

    stream: str | None  # its stream, None when nothing was read
    position: FilePosition  # where reading stopped, with the largest size that was seen
    gone: bool  # whether the part that was read is gone too; if not, only the part after it is


class FollowedFile:
    """One file that is read forward. The position moves only on `accept`, so an uncommitted step is read again.

    Args:
        opened: The file, closed by `close`, and where to continue.
        stream: Name of its stream, None until its first batch names it.
        options: How much is read at once, and how records are framed.

    Attributes:
        original_path: The path it has until it is rotated.
        rotated_since: When it was first seen to have left that path, None while it is there.
        drained_state: Size and modification time at which nothing more could be read, None when that is not known.
        superseded: Streams of contents that are gone, whose cursors are deleted after the next commit.
        lost_contents: Contents that are gone; a copy of them may exist.
        copied_size: Bytes of it that a copy has as well: an unterminated end of those is not rejected, as it may be
            completed there.
        replaced: The file whose place it took, until it is known which lines of that one it repeats.
    """

    def __init__(self, opened: OpenedFile, stream: str | None, options: Options) -> None:
        self.path = self.original_path = opened.path
        self.content: Content | None = opened.content
        self.position = position = opened.position
        self.stream = stream
        self.rotated_since: float | None = None
        self.drained_state: tuple[int, int] | None = None
        self.superseded: list[str] = []
        self.lost_contents: list[LostContent] = []
        self.replaced: FollowedFile | None = None
        self._packed = opened.content.packed
        self._options = options
        self._records = RecordReader(options)
        self._resets: Counter[str] = Counter()
        self._size = position.offset
        self._max_size = position.size
        self._arrivals: deque[tuple[int, float]] = deque()
        self._shrunk = False
        self._preallocated_size: int | None = None
        self._unchanged: tuple[tuple[int, int] | None, float] = (None, 0.0)
        self._drained_for_certain = False
        self._checked_at = 0.0
        self._grown_at = 0.0
        self._checked_since_left = self._written_since_left = False
        self.copied_size = 0

    def reopen(self, path: str, content: Content) -> None:
        """Continue with a file that was closed."""
        self.close()
        self.path, self.content, self.drained_state = path, content, None
        self._packed = content.packed

    def close(self) -> None:
        """Close the file."""
        if self.content is not None:
            self.content.close()
        self.content = None

    @property
    def is_packed(self) -> bool:
        """Whether it is read from a compressed file."""
        return self._packed is not None

    @property
    def last_seen(self) -> FilePosition:
        """Its position, with the largest size that was seen."""
        return replace(self.position, size=max(self.position.size, self._size, self._max_size))

    def unchanged(self, size: int, mtime_ns: int) -> bool:
        """Whether it was read to its end, and has still had this size on disk and modification time then."""
        drained = self.drained_state
        on_disk = drained and (drained[0] if self._packed is None else self._packed, drained[1])
        return self._drained_for_certain and on_disk == (size, mtime_ns)

    @property
    def is_drained(self) -> bool:
        """Whether nothing more could be read when that was last tried, or it is closed."""
        return self.content is None or self.drained_state is not None

    def skip_to_end(self, end: int | None = None) -> None:
        """Skip every complete line there is now, and a last record that lacks only its newline.

        Args:
            end: Bytes to skip at most; all by default.
        """
        size, mtime_ns = self._opened.state()
        size = size if end is None else min(size, end)
        offset = end_of_last_line(self._opened, size)
        edges = self._opened.edges(offset) or ContentEdges()
        self.position = replace(
            self.position,
            offset=offset,
            line=count_lines(self._opened, offset),
            mark=edges.mark(),
            size=size,
            mtime_ns=mtime_ns,
        )
        rest = self._read_block()[: size - offset]
        records = self._records.parse(rest, self.position, size, self.path)
        if records is not None and records.lines.lines:
            self.position = self._step(records, rest, edges, (size, mtime_ns)).position
        self.stream = name_stream(self.position)

    def continue_after(self, old: FollowedFile) -> None:
        """Continue where reading stopped in another file, of which this one is a copy that may have more lines."""
        own = self.position
        self.position = replace(old.position, dev=own.dev, ino=own.ino, generation=own.generation)
        self.stream = name_stream(self.position)
        if old.content is not None:
            with suppress(OSError):  # closed to save descriptors: nothing more is read of it
                size = old.content.state()[0]
                if old.content.edges(size) == self._opened.edges(size):
                    old.copied_size = size

    def count_replaced(self) -> None:
        """Count, with the next step, that this file took the place of one with other lines."""
        self._resets["replaced"] += 1

    def check(self, now: float) -> tuple[int, int]:
        """Size and modification time at present. Records when bytes arrived."""
        size, mtime_ns = self._opened.state()
        self._opened.handle.at_end = (size, mtime_ns) == self.drained_state
        if self.rotated_since is None:
            self._checked_since_left = self._written_since_left = False
        else:
            self._written_since_left |= self._checked_since_left and size > self._size  # at the first check it is older
            self._checked_since_left = True
        self._checked_at = now
        if size < self._size != self._preallocated_size:
            self._arrivals.clear()
            self._shrunk = True
            self._max_size = max(self._max_size, self._size)
        if size > self._size or (size < self._size and size > 0):
            self._grown_at = now
            if len(self._arrivals) < _MAX_ARRIVALS:
                self._arrivals.append((size, now))
            else:  # the newest gets an older time: ages may be overstated, never understated
                self._arrivals[-1] = (size, self._arrivals[-1][1])
        self._size = size
        return size, mtime_ns

    def unread(self, now: float) -> tuple[int, float]:
        """Bytes that are not committed, and their age in seconds. An unterminated last line is not counted."""
        state = self.check(now)
        if state == self.drained_state:
            return 0, 0.0
        size = state[0]
        offset = 0 if self._shrunk else self.position.offset
        while self._arrivals and self._arrivals[0][0] <= offset:
            self._arrivals.popleft()
        if size == offset:
            return 0, 0.0
        return size - offset, now - self._arrivals[0][1] if self._arrivals else 0.0

    def read(self, now: float) -> ReadStep | None:
        """Read the next complete lines, None when there are none. Raises OSError: the file cannot be read."""
        state = self.check(now)
        if state == self.drained_state and self._drained_for_certain:
            return None
        # The block is read before its edges are compared: had the content been replaced in between, they would differ.
        block = self._read_block()
        edges = self._opened.edges(self.position.offset)
        if not self.position.fits(edges):
            self._restart()
            block, edges = self._read_block(), ContentEdges()
        elif (self._shrunk or state[0] < self._max_size) and self._max_size > self.position.offset:
            self._lose("truncated", gone=False)  # and rewritten: nothing was read of it, or only an equal header
        self._shrunk, self._max_size = False, state[0]
        records = self._records.parse(block, self.position, state[0], self.path)
        while (
            records is None and self._records.framed and self._options.read_bytes <= len(block) < self._options.window
        ):
            wider = self._opened.pread(2 * len(block), self.position.offset)  # for the other parts of a record
            if len(wider) == len(block):
                break
            block, records = wider, self._records.parse(wider, self.position, state[0], self.path)
        if records is not None:
            return self._step(records, block, edges or ContentEdges(), state)
        if self.position.offset + len(block) >= state[0]:
            if self._unchanged[0] != state:
                self._unchanged = (state, now)
            self.drained_state = state
            self._drained_for_certain = now - self._unchanged[1] >= TIMESTAMP_SECONDS
            self._opened.handle.at_end = True
            self._preallocated_size = state[0] if block and not block.strip(b"\0") else None
            if self._preallocated_size is not None:
                self._max_size = self.position.offset  # a writer may release space that it preallocated
        return None

    def accept(self, step: ReadStep) -> list[str]:
        """Move to the position after a committed step. Returns the streams whose cursors may be deleted now."""
        self.position, self.stream, self.drained_state = step.position, step.batch.stream, None
        self._resets.clear()
        superseded, self.superseded = self.superseded, []
        return superseded

    def keep_stream(self, stream: str | None) -> None:
        """Keep the cursor of a stream that was superseded: it continues in a copy."""
        if stream is not None and stream in self.superseded:
            self.superseded.remove(stream)

    @property
    def has_left(self) -> bool:
        """Whether another file, or none, is at the path it has until it is rotated."""
        return has_left(self.original_path, self.position.identity)

    @property
    def is_gone(self) -> bool:
        """Whether it is deleted, or closed after it has left its path, so that nobody can open it there."""
        return self.content is None or self.content.handle.fd is None or self.content.handle.is_deleted

    @property
    def written_after_deletion(self) -> bool:
        """Whether it was deleted, and its writer goes on writing to it: after a restart, nobody can read that."""
        return (
            self._written_since_left
            and self._packed is None
            and self.content is not None
            and self.content.handle.is_deleted
        )

    def idle(self, now: float, seconds: float) -> bool:
        """Whether it was rotated, and has not grown since, for that long; longer if somebody writes to it, deleted."""
        if self.written_after_deletion:
            seconds = max(seconds, DELETED_WAIT_SECONDS)
        return self.rotated_since is not None and now - max(self.rotated_since, self._grown_at) >= seconds

    def reject_rest(self) -> ReadStep | None:
        """Reject the unterminated end of a rotated file, so that it is never joined with another line."""
        state = self._opened.state()
        offset = self.position.offset
        rest = self._opened.pread(
            self._options.window if self._records.framed else self._options.max_line_bytes + 1, offset
        )
        edges = self._opened.edges(offset)
        if not rest or not self.position.fits(edges) or state[0] <= self.copied_size:
            return None
        records = self._records.parse_rest(rest, self.position, self.path)
        return self._step(records, rest, edges or ContentEdges(), state)

    @property
    def _opened(self) -> Content:
        if self.content is None:
            raise ValueError(f"{self.path} is closed")
        return self.content

    def _read_block(self) -> bytes:
        """Bytes from the offset on: one block; as many as the longest line may have, or a whole document."""
        block = self._opened.pread(self._options.read_bytes, self.position.offset)
        if len(block) == self._options.read_bytes <= self._options.max_line_bytes and b"\n" not in block:
            block = self._opened.pread(self._options.max_line_bytes + 1, self.position.offset)
        if len(block) >= self._options.read_bytes and self._records.is_document(block, self.position):
            block = self._opened.pread(MAX_DOCUMENT_BYTES + 1, 0)
        return block

    def _restart(self) -> None:
        """The content that was read is gone: start again at the first byte, as a new stream."""
        old = self.position
        truncated = self._opened.state()[0] < old.offset
        self._lose("truncated" if truncated else "replaced", gone=True)
        if self.stream is not None:
            self.superseded.append(self.stream)
        self.stream = None
        self._records.reset()
        self.position = FilePosition(old.dev, old.ino, old.path, old.generation + 1, mtime_ns=old.mtime_ns)
        if not self._arrivals and self._size > 0:
            self._arrivals.append((self._size, self._checked_at))

    def _lose(self, reason: str, *, gone: bool) -> None:
        """Count content that is gone, and remember how far it was read."""
        self._resets[reason] += 1
        position = replace(self.position, size=max(self.position.size, self._max_size))
        self.lost_contents.append(LostContent(self.stream, position, gone))

    def _step(self, records: RecordBlock, block: bytes, edges: ContentEdges, state: tuple[int, int]) -> ReadStep:
        """The step over the parsed part of a block."""
        old, lines = self.position, records.lines
        position = replace(
            old,
            offset=old.offset + lines.used,
            line=None if old.line is None else old.line + lines.ends,
            mark=edges.extended(block, lines.used).mark(),
            within=records.within,
            size=state[0],
            mtime_ns=state[1],
        )
        batch = Batch(
            stream=self.stream or name_stream(old),
            file=self.path,
            lines=lines.lines,
            offsets=lines.offsets,
            numbers=lines.numbers,
            cursor=position.dump(),
            rejections=tuple(records.rejections),
            resets=dict(self._resets),
        )
        return ReadStep(self, batch, position)
