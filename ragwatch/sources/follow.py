"""Follow: one open file, read forward in steps that may be repeated until they are committed."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ragwatch.core.sample import RejectReason
from ragwatch.ports import Batch, Rejection
from ragwatch.sources.disk import count_lines, edges_at, end_of_last_line
from ragwatch.sources.identity import Edges, Position, name_stream
from ragwatch.sources.lines import Cut, cut

_ARRIVALS = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read at once.

    Attributes:
        block: Bytes of one batch.
        line: Bytes of the longest record.
    """

    block: int
    line: int


@dataclass(frozen=True, slots=True)
class Step:
    """A batch, and where its file stands once it is committed."""

    batch: Batch
    position: Position


class Followed:
    """One file. Nothing moves until `accept`, so a step that is not committed is read again alike.

    Args:
        path: Its name for people.
        fd: Open for reading; closed by `close`.
        position: Where to go on.
        stream: Name of its stream, None until its first batch names it.
        limits: How much is read at once.

    Attributes:
        rotated_since: When its name was first seen gone, None while it is in place.
        superseded: Streams of contents that are gone, to be forgotten after the next commit.
        still: Size and modification time at which nothing more could be read, None when that is not known.
        lost: Positions in contents that are gone; a copy of them may lie beside.
    """

    def __init__(self, path: str, fd: int, position: Position, stream: str | None, limits: Limits) -> None:
        self.path = path
        self.home = path
        self.fd: int | None = fd
        self.position = position
        self.stream = stream
        self.rotated_since: float | None = None
        self.still: tuple[int, int] | None = None
        self.superseded: list[str] = []
        self.lost: list[Position] = []
        self._limits = limits
        self._resets: Counter[str] = Counter()
        self._size = position.offset
        self._arrivals: deque[tuple[int, float]] = deque()
        self._shrunk = False
        self._looked = 0.0
        self._grew = 0.0

    def reopen(self, path: str, fd: int) -> None:
        """Go on with a file that was closed."""
        self.close()
        self.path, self.fd, self.still = path, fd, None

    def close(self) -> None:
        """Let go of the file."""
        if self.fd is not None:
            os.close(self.fd)
        self.fd = None

    def to_end(self) -> None:
        """Skip every complete line there is now."""
        status = os.fstat(self._open)
        offset = end_of_last_line(self._open, status.st_size)
        edges = edges_at(self._open, offset) or Edges()
        self.position = replace(
            self.position,
            offset=offset,
            line=count_lines(self._open, offset),
            mark=edges.mark(),
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
        )
        self.stream = name_stream(self.position, b"")

    def look(self, now: float) -> tuple[int, int]:
        """Size and modification time at present. Remembers when bytes appeared."""
        status = os.fstat(self._open)
        self._looked = now
        if status.st_size < self._size:
            self._arrivals.clear()
            self._shrunk = True
        if status.st_size > self._size or (status.st_size < self._size and status.st_size > 0):
            self._grew = now
            if len(self._arrivals) < _ARRIVALS:
                self._arrivals.append((status.st_size, now))
            else:  # the newest shares an older time: ages may be overstated, never understated
                self._arrivals[-1] = (status.st_size, self._arrivals[-1][1])
        self._size = status.st_size
        return status.st_size, status.st_mtime_ns

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

    def read(self, now: float) -> Step | None:
        """The next complete lines, None when there are none.

        Raises:
            OSError: The file cannot be read.
        """
        state = self.look(now)
        if state == self.still:
            return None
        # The block is read before its edges are compared: had the content been exchanged in between, they would differ.
        block = self._block()
        edges = edges_at(self._open, self.position.offset)
        if not self.position.fits(edges):
            self._restart()
            block, edges = self._block(), Edges()
        self._shrunk = False
        step = self._consume(block, edges or Edges(), state)
        if step is None and self.position.offset + len(block) >= state[0]:
            self.still = state
        return step

    def accept(self, step: Step) -> list[str]:
        """The step is stored: move behind it. Returns the streams that may be forgotten now."""
        self.position, self.stream, self.still = step.position, step.batch.stream, None
        self._resets.clear()
        superseded, self.superseded = self.superseded, []
        return superseded

    def idle(self, now: float, seconds: float) -> bool:
        """Whether it was moved away, and has not grown since, for that long."""
        return self.rotated_since is not None and now - max(self.rotated_since, self._grew) >= seconds

    def leave(self) -> Step | None:
        """Give up the unterminated rest of a file that was moved away: counted, and never glued to another line."""
        status = os.fstat(self._open)
        offset = self.position.offset
        rest = os.pread(self._open, self._limits.line + 1, offset)
        edges = edges_at(self._open, offset)
        if not rest or not self.position.fits(edges):
            return None
        reason, detail = RejectReason.PARTIAL_AT_ROTATION, f"{len(rest)} bytes without a newline at the end"
        if not rest.strip(b"\0"):
            reason, detail = RejectReason.BINARY, f"{len(rest)} NUL bytes at the end"
        rejection = self._reject(reason, self._number(), detail)
        state = status.st_size, status.st_mtime_ns
        return self._step(rest, len(rest), edges or Edges(), state, within="line", rejections=(rejection,))

    @property
    def _open(self) -> int:
        if self.fd is None:
            raise ValueError(f"{self.path} is closed")
        return self.fd

    def _number(self) -> int:
        """1-based number of the line at the offset, 0 when unknown."""
        return 0 if self.position.line is None else self.position.line + 1

    def _block(self) -> bytes:
        """Bytes from the offset on: one block, or, if no line ends in it, as many as the longest line may have."""
        block = os.pread(self._open, self._limits.block, self.position.offset)
        if len(block) == self._limits.block <= self._limits.line and b"\n" not in block:
            block = os.pread(self._open, self._limits.line + 1, self.position.offset)
        return block

    def _restart(self) -> None:
        """The content that was read is gone: begin again at the first byte, as a new stream."""
        old = self.position
        truncated = os.fstat(self._open).st_size < old.offset
        self._resets["truncated" if truncated else "replaced"] += 1
        if self.stream is not None:
            self.superseded.append(self.stream)
        self.lost.append(old)
        self.stream = None
        self.position = Position(old.dev, old.ino, old.path, old.generation + 1, mtime_ns=old.mtime_ns)
        if not self._arrivals and self._size > 0:
            self._arrivals.append((self._size, self._looked))

    def _consume(self, block: bytes, edges: Edges, state: tuple[int, int]) -> Step | None:
        """What the block at the offset means."""
        if self.position.within == "line":
            return self._drop(block, edges, state)
        if block.startswith(b"\0"):
            return self._hole(block, edges, state)
        if b"\0" in block and (at := block.find(b"\n\0")) >= 0:
            block = block[: at + 1]  # the hole is the next step's
        position = self.position
        piece = cut(block, offset=position.offset, line=position.line, limit=self._limits.line)
        if piece.used:
            rejections = [
                self._reject(RejectReason.LINE_TOO_LONG, number, f"{length} bytes, more than {self._limits.line}")
                for number, length in piece.too_long
            ]
            return self._step(block, piece.used, edges, state, piece=piece, rejections=rejections)
        if len(block) <= self._limits.line:
            return None
        too_long = self._reject(RejectReason.LINE_TOO_LONG, self._number(), f"more than {self._limits.line} bytes")
        return self._step(block, len(block), edges, state, within="line", rejections=(too_long,))

    def _drop(self, block: bytes, edges: Edges, state: tuple[int, int]) -> Step | None:
        """Pass over more of a line that was counted as rejected."""
        at = block.find(b"\n")
        if at >= 0:
            return self._step(block, at + 1, edges, state, piece=Cut((), (), (), (), at + 1, 1))
        return self._step(block, len(block), edges, state, within="line") if block else None

    def _hole(self, block: bytes, edges: Edges, state: tuple[int, int]) -> Step | None:
        """Pass over NUL bytes at a line's start: a writer kept its offset across a truncation, or a crash left them."""
        used = len(block) - len(block.lstrip(b"\0"))
        if used == len(block) and self.position.offset + used >= state[0]:
            return None  # nothing behind them yet: space that a writer reserved may still be filled
        counted = self.position.within == "hole"
        rejection = self._reject(RejectReason.BINARY, self._number(), "a run of NUL bytes")
        return self._step(block, used, edges, state, within="hole", rejections=() if counted else (rejection,))

    def _reject(self, reason: RejectReason, number: int, detail: str) -> Rejection:
        return Rejection(reason, self.path, number, detail=detail)

    def _step(
        self,
        block: bytes,
        used: int,
        edges: Edges,
        state: tuple[int, int],
        *,
        piece: Cut | None = None,
        within: Literal["", "line", "hole"] = "",
        rejections: Sequence[Rejection] = (),
    ) -> Step:
        """The step over `block[:used]`."""
        old, cut_ = self.position, piece or Cut((), (), (), (), used, 0)
        position = replace(
            old,
            offset=old.offset + used,
            line=None if old.line is None else old.line + cut_.ends,
            mark=edges.grown(block, used).mark(),
            within=within,
            size=state[0],
            mtime_ns=state[1],
        )
        stream = self.stream or name_stream(old, block[:used])
        return Step(
            Batch(
                stream=stream,
                file=self.path,
                lines=cut_.lines,
                offsets=cut_.offsets,
                numbers=cut_.numbers,
                cursor=position.dump(),
                rejections=tuple(rejections),
                resets=dict(self._resets),
            ),
            position,
        )
