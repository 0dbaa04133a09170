"""Follow: one open file, read forward in steps that may be repeated until they are committed."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace

from ragwatch.ports import Batch
from ragwatch.sources.tail.content import Content, count_lines, edges_at, end_of_last_line
from ragwatch.sources.tail.folders import TICK
from ragwatch.sources.tail.identity import ContentEdges, FilePosition, name_stream
from ragwatch.sources.tail.records import ReadLimits, RecordBlock, RecordReader

_ARRIVALS = 64


@dataclass(frozen=True, slots=True)
class ReadStep:
    """A batch, and where its file stands once it is committed."""

    batch: Batch
    position: FilePosition


@dataclass(frozen=True, slots=True)
class LostContent:
    """How far a content was read that was taken away.

    Attributes:
        stream: Its stream, None when nothing was read.
        position: The place, with the largest size that was seen.
        gone: Whether what was read is gone too; if not, only what was behind it is.
    """

    stream: str | None
    position: FilePosition
    gone: bool


class FollowedFile:
    """One file. Nothing moves until `accept`, so a step that is not committed is read again alike.

    Args:
        path: Its name for people.
        content: Open for reading; closed by `close`.
        position: Where to go on.
        stream: Name of its stream, None until its first batch names it.
        limits: How much is read at once.

    Attributes:
        rotated_since: When its name was first seen gone, None while it is in place.
        superseded: Streams of contents that are gone, to be forgotten after the next commit.
        still: Size and modification time at which nothing more could be read, None when that is not known.
        lost: Contents that are gone; a copy of them may lie beside.
    """

    def __init__(
        self, path: str, content: Content, position: FilePosition, stream: str | None, limits: ReadLimits
    ) -> None:
        self.path = path
        self.home = path
        self.content: Content | None = content
        self.position = position
        self.stream = stream
        self.rotated_since: float | None = None
        self.still: tuple[int, int] | None = None
        self.superseded: list[str] = []
        self.lost: list[LostContent] = []
        self._packed = content.packed
        self._limits = limits
        self._reading = RecordReader(limits)
        self._resets: Counter[str] = Counter()
        self._size = position.offset
        self._high = position.size
        self._arrivals: deque[tuple[int, float]] = deque()
        self._shrunk = False
        self._reserved: int | None = None
        self._calm: tuple[tuple[int, int] | None, float] = (None, 0.0)
        self._certain = False
        self._looked = 0.0
        self._grew = 0.0

    def reopen(self, path: str, content: Content) -> None:
        """Go on with a file that was closed."""
        self.close()
        self.path, self.content, self.still = path, content, None
        self._packed = content.packed

    def close(self) -> None:
        """Let go of the file."""
        if self.content is not None:
            self.content.close()
        self.content = None

    @property
    def content_packed(self) -> bool:
        """Whether it is read from a packed file."""
        return self._packed is not None

    @property
    def last_seen(self) -> FilePosition:
        """Its position, with the largest size that was seen."""
        return replace(self.position, size=max(self.position.size, self._size, self._high))

    def unchanged(self, size: int, mtime_ns: int) -> bool:
        """Whether nothing more could be read of it, and it has had this size and time on disk since."""
        known = self.still and (self.still[0] if self._packed is None else self._packed, self.still[1])
        return self._certain and known == (size, mtime_ns)

    def to_end(self) -> None:
        """Skip every complete line there is now, and a last record that lacks only its newline."""
        size, mtime_ns = self._open.state()
        offset = end_of_last_line(self._open, size)
        edges = edges_at(self._open, offset) or ContentEdges()
        self.position = replace(
            self.position,
            offset=offset,
            line=count_lines(self._open, offset),
            mark=edges.mark(),
            size=size,
            mtime_ns=mtime_ns,
        )
        rest = self._block()[: size - offset]
        passage = self._understand(rest, size)
        if passage is not None and passage.piece.lines:
            self.position = self._step(passage, rest, edges, (size, mtime_ns)).position
        self.stream = name_stream(self.position)

    def look(self, now: float) -> tuple[int, int]:
        """Size and modification time at present. Remembers when bytes appeared."""
        size, mtime_ns = self._open.state()
        self._open.handle.drained = (size, mtime_ns) == self.still
        self._looked = now
        if size < self._size != self._reserved:
            self._arrivals.clear()
            self._shrunk = True
            self._high = max(self._high, self._size)
        if size > self._size or (size < self._size and size > 0):
            self._grew = now
            if len(self._arrivals) < _ARRIVALS:
                self._arrivals.append((size, now))
            else:  # the newest shares an older time: ages may be overstated, never understated
                self._arrivals[-1] = (size, self._arrivals[-1][1])
        self._size = size
        return size, mtime_ns

    def unread(self, now: float) -> tuple[int, float]:
        """Bytes that are not committed, and for how many seconds they have been known. A torn last line is no news."""
        state = self.look(now)
        if state == self.still:
            return 0, 0.0
        size = state[0]
        offset = 0 if self._shrunk else self.position.offset
        while self._arrivals and self._arrivals[0][0] <= offset:
            self._arrivals.popleft()
        if size == offset:
            return 0, 0.0
        return size - offset, now - self._arrivals[0][1] if self._arrivals else 0.0

    def read(self, now: float) -> ReadStep | None:
        """The next complete lines, None when there are none.

        Raises:
            OSError: The file cannot be read.
        """
        state = self.look(now)
        if state == self.still and self._certain:
            return None
        # The block is read before its edges are compared: had the content been exchanged in between, they would differ.
        block = self._block()
        edges = edges_at(self._open, self.position.offset)
        if not self.position.fits(edges):
            self._restart()
            block, edges = self._block(), ContentEdges()
        elif (self._shrunk or state[0] < self._high) and self._high > self.position.offset:
            self._forget("truncated", gone=False)  # and written anew: nothing was read of it, or a header that is back
        self._shrunk, self._high = False, state[0]
        passage = self._understand(block, state[0])
        while passage is None and self._reading.framed and self._limits.block <= len(block) < self._limits.window:
            wider = self._open.pread(2 * len(block), self.position.offset)  # for the other parts of a record
            if len(wider) == len(block):
                break
            block, passage = wider, self._understand(wider, state[0])
        if passage is not None:
            return self._step(passage, block, edges or ContentEdges(), state)
        if self.position.offset + len(block) >= state[0]:
            if self._calm[0] != state:
                self._calm = (state, now)
            self.still, self._certain = state, now - self._calm[1] >= TICK
            self._open.handle.drained = True
            self._reserved = state[0] if block and not block.strip(b"\0") else None
            if self._reserved is not None:
                self._high = self.position.offset  # space that a writer may give back
        return None

    def accept(self, step: ReadStep) -> list[str]:
        """The step is stored: move behind it. Returns the streams that may be forgotten now."""
        self.position, self.stream, self.still = step.position, step.batch.stream, None
        self._resets.clear()
        superseded, self.superseded = self.superseded, []
        return superseded

    def idle(self, now: float, seconds: float) -> bool:
        """Whether it was moved away, and has not grown since, for that long."""
        return self.rotated_since is not None and now - max(self.rotated_since, self._grew) >= seconds

    def leave(self) -> ReadStep | None:
        """Give up the unterminated rest of a file that was moved away: counted, and never glued to another line."""
        state = self._open.state()
        offset = self.position.offset
        rest = self._open.pread(self._limits.window if self._reading.framed else self._limits.line + 1, offset)
        edges = edges_at(self._open, offset)
        if not rest or not self.position.fits(edges):
            return None
        return self._step(self._reading.rest(rest, self.position, self.path), rest, edges or ContentEdges(), state)

    @property
    def _open(self) -> Content:
        if self.content is None:
            raise ValueError(f"{self.path} is closed")
        return self.content

    def _block(self) -> bytes:
        """Bytes from the offset on: one block, or, if no line ends in it, as many as the longest line may have."""
        block = self._open.pread(self._limits.block, self.position.offset)
        if len(block) == self._limits.block <= self._limits.line and b"\n" not in block:
            block = self._open.pread(self._limits.line + 1, self.position.offset)
        return block

    def _restart(self) -> None:
        """The content that was read is gone: begin again at the first byte, as a new stream."""
        old = self.position
        truncated = self._open.state()[0] < old.offset
        self._forget("truncated" if truncated else "replaced", gone=True)
        if self.stream is not None:
            self.superseded.append(self.stream)
        self.stream = None
        self._reading.restart()
        self.position = FilePosition(old.dev, old.ino, old.path, old.generation + 1, mtime_ns=old.mtime_ns)
        if not self._arrivals and self._size > 0:
            self._arrivals.append((self._size, self._looked))

    def _forget(self, reason: str, *, gone: bool) -> None:
        """Count a content that is gone, and remember how far it was read."""
        self._resets[reason] += 1
        position = replace(self.position, size=max(self.position.size, self._high))
        self.lost.append(LostContent(self.stream, position, gone))

    def _understand(self, block: bytes, size: int) -> RecordBlock | None:
        return self._reading.understand(block, self.position, size, self.path)

    def _step(self, passage: RecordBlock, block: bytes, edges: ContentEdges, state: tuple[int, int]) -> ReadStep:
        """The step over `block[:passage.used]`."""
        old, used, piece = self.position, passage.used, passage.piece
        position = replace(
            old,
            offset=old.offset + used,
            line=None if old.line is None else old.line + piece.ends,
            mark=edges.grown(block, used).mark(),
            within=passage.within,
            size=state[0],
            mtime_ns=state[1],
        )
        stream = self.stream or name_stream(old)
        return ReadStep(
            Batch(
                stream=stream,
                file=self.path,
                lines=piece.lines,
                offsets=piece.offsets,
                numbers=piece.numbers,
                cursor=position.dump(),
                rejections=tuple(passage.rejections),
                resets=dict(self._resets),
            ),
            position,
        )
