"""Passage: what the bytes behind a place in a file mean: records, what is counted instead, and what waits for more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from ragwatch.core.sample import RejectReason
from ragwatch.ports import Rejection
from ragwatch.sources.tail.framing import Dropped, Framing, detect, unwrap
from ragwatch.sources.tail.identity import FilePosition, Within
from ragwatch.sources.tail.lines import BOM, CutLines, cut

_WIDEST = 4
"""Bytes of a character in the widest encoding of text. A line that ends in `\\n` leaves the rest of it to the next."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much is read at once.

    Attributes:
        block: Bytes of one batch.
        line: Bytes of the longest record.
        framing: What is wrapped around each record; `auto` looks at the first ones of each file.
    """

    block: int
    line: int
    framing: Literal["auto", "plain", "cri", "docker"] = "auto"

    @property
    def window(self) -> int:
        """Bytes within which a record that is split into framed parts must end: escapes make text up to 6 x longer."""
        return max(self.block, 8 * self.line)


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """The next bytes of a file, understood.

    Attributes:
        used: How many they are.
        piece: The records in them.
        within: Where they end: see `Position.within`.
        rejections: What is counted instead of read.
    """

    used: int
    piece: CutLines
    within: Within = ""
    rejections: Sequence[Rejection] = ()


class RecordReader:
    """Understands blocks of one file.

    Args:
        limits: How long a record may be, and how it may be wrapped.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._framing: Framing | None = None
        self.restart()

    def restart(self) -> None:
        """The content is another one now."""
        self._framing = None if self._limits.framing == "auto" else self._limits.framing

    @property
    def framed(self) -> bool:
        """Whether records are wrapped, and so may be in parts."""
        return self._framing not in {None, "plain"}

    def understand(self, block: bytes, position: FilePosition, size: int, path: str) -> RecordBlock | None:
        """What the block at a position means, None when it must grow first.

        Args:
            block: Bytes from the position on.
            position: Where they stand.
            size: Bytes of the file.
            path: Its name for people.
        """
        if position.within == "line":
            return _drop(block)
        if block.startswith(b"\0") and not _wide(block, 0):
            return _hole(block, position, size, path)
        if b"\0" in block and (at := _hole_in(block)) >= 0:
            block = block[:at]  # the hole is the next step's
        if self._framing is None:
            self._framing = detect(block)
        if self.framed and b"\n" in block:
            return self._framed(block, position, path)
        limit = self._limits.line
        piece = cut(block, offset=position.offset, line=position.line, limit=limit)
        if piece.used:
            return RecordBlock(piece.used, piece, rejections=self._too_long(piece, path))
        if len(block) <= limit:
            return self._unended(block, position, size)
        too_long = Rejection(RejectReason.LINE_TOO_LONG, path, position.number, detail=f"more than {limit} bytes")
        return RecordBlock(len(block), _nothing(len(block)), "line", (too_long,))

    def rest(self, block: bytes, position: FilePosition, path: str) -> RecordBlock:
        """Give up the unfinished end of a file that was moved away: counted, and never glued to another line."""
        if self.framed and b"\n" in block:
            return self._parts(block, position, path)
        if block == b"\0":  # the rest of the line end of UTF-16
            return RecordBlock(len(block), _nothing(len(block)), "line")
        reason, detail = RejectReason.PARTIAL_AT_ROTATION, f"{len(block)} bytes without a newline at the end"
        if not block.strip(b"\0"):
            reason, detail = RejectReason.BINARY, f"{len(block)} NUL bytes at the end"
        rejection = Rejection(reason, path, position.number, detail=detail)
        return RecordBlock(len(block), _nothing(len(block)), "line", (rejection,))

    def _unended(self, block: bytes, position: FilePosition, size: int) -> RecordBlock | None:
        """A last record that lacks only its newline, which some writers put before each record, or between two.

        No JSON object is the beginning of another one, so that nothing can be torn here.
        """
        text = block.removeprefix(BOM).strip()
        if position.offset + len(block) < size or self.framed or not (text[:1] == b"{" and text[-1:] == b"}"):
            return None
        if self._framing is None and detect(text + b"\n") != "plain":
            return None
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        start = position.offset + block.index(b"{")
        return RecordBlock(len(block), CutLines((text,), (start,), (position.number,), (), len(block), 0))

    def _parts(self, block: bytes, position: FilePosition, path: str) -> RecordBlock:
        """The whole records among what waited for an end of others; those others are given up."""
        piece = cut(block, offset=position.offset, line=position.line, limit=self._limits.line)
        dropped = _dropped(position)
        found = unwrap(piece, self._framing or "plain", limit=self._limits.line, dropped=dropped, last=True)
        rejections = [
            Rejection(RejectReason.PARTIAL_AT_ROTATION, path, number, detail=f"{length} bytes without their last part")
            for number, length in found.piece.too_long
        ]
        return RecordBlock(piece.used, found.piece, found.dropped, rejections)

    def _framed(self, block: bytes, position: FilePosition, path: str) -> RecordBlock | None:
        """Whole records only: a record in parts whose end is not there yet is read again from its first part."""
        limit, framing = self._limits.line, self._framing or "plain"
        dropped = _dropped(position)
        rest, last = block, False
        while True:
            piece = cut(rest, offset=position.offset, line=position.line, limit=limit)
            found = unwrap(piece, framing, limit=limit, dropped=dropped, last=last)
            if found.open_at is None:
                return RecordBlock(piece.used, found.piece, found.dropped, self._too_long(found.piece, path))
            if found.open_at:
                rest = rest[: piece.offsets[found.open_at] - position.offset]
            elif len(block) >= self._limits.window:
                rest, last = block, True
            else:
                return None

    def _too_long(self, piece: CutLines, path: str) -> list[Rejection]:
        return [
            Rejection(RejectReason.LINE_TOO_LONG, path, number, detail=f"{length} bytes, more than {self._limits.line}")
            for number, length in piece.too_long
        ]


def _dropped(position: FilePosition) -> Dropped:
    within = position.within
    return "" if within == "line" or within == "hole" else within  # noqa: PLR1714 - mypy follows this


def _nothing(used: int, ends: int = 0) -> CutLines:
    return CutLines((), (), (), (), used, ends)


def _drop(block: bytes) -> RecordBlock | None:
    """Pass over more of a line that was counted as rejected."""
    at = block.find(b"\n")
    if at >= 0:
        return RecordBlock(at + 1, _nothing(at + 1, 1))
    return RecordBlock(len(block), _nothing(len(block)), "line") if block else None


def _wide(block: bytes, at: int) -> bool:
    """Whether the NUL bytes there begin a line of wide characters (UTF-16), which is refused as a whole, and once."""
    end = block.find(b"\n", at)
    line = block[at : end if end >= 0 else len(block)]
    text = line[:_WIDEST].lstrip(b"\0")
    return bool(text) and b"\0" in line[min(len(line), _WIDEST) - len(text) :]


def _hole_in(block: bytes) -> int:
    """Where a line begins with a hole, behind the first line; -1 when none does."""
    at = block.find(b"\n\0")
    while at >= 0 and _wide(block, at + 1):
        at = block.find(b"\n\0", at + 1)
    return at + 1 if at >= 0 else -1


def _hole(block: bytes, position: FilePosition, size: int, path: str) -> RecordBlock | None:
    """Pass over NUL bytes at a line's start: a writer kept its offset across a truncation, or a crash left them."""
    used = len(block) - len(block.lstrip(b"\0"))
    if used == len(block) and position.offset + used >= size:
        return None  # nothing behind them yet: space that a writer reserved may still be filled
    rejection = Rejection(RejectReason.BINARY, path, position.number, detail="a run of NUL bytes")
    return RecordBlock(used, _nothing(used), "hole", () if position.within == "hole" else (rejection,))
