"""Record parsing: turns the next block of a file into records and rejections, or waits for more bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from ragwatch.formats.record import as_utf8, byte_order, is_too_large, width_of
from ragwatch.formats.selection import begins_document
from ragwatch.model.sample import RejectReason
from ragwatch.ports import Rejection
from ragwatch.sources.tail.identity import FilePosition, Within
from ragwatch.sources.tail.lines import BOM, CutLines, Dropped, Framing, cut, cut_wide, detect, unwrap
from ragwatch.sources.tail.options import Options

_MAX_CHARACTER_BYTES = 4
"""Bytes of a character in the widest encoding of text. A line cut at `\\n` leaves the rest of it to the next line."""

MAX_DOCUMENT_BYTES = 64 << 20
"""Size of the largest file that is read as one JSON document."""


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """The parsed part of a block."""

    lines: CutLines  # the records, and how many bytes of the block they take
    within: Within = ""  # what the block ends inside of: see `FilePosition.within`
    rejections: Sequence[Rejection] = ()  # what is counted instead of read


class RecordReader:
    """Parses the blocks of one file.

    Args:
        options: How long a record may be, and how it may be framed.
    """

    def __init__(self, options: Options) -> None:
        self._options, self._limit = options, options.max_line_bytes
        self._framing: Framing | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the detected framing: the file has other content now."""
        self._framing = None if self._options.framing == "auto" else self._options.framing

    @property
    def framed(self) -> bool:
        """Whether records are framed, and so may be split into parts."""
        return self._framing not in {None, "plain"}

    def parse(self, block: bytes, position: FilePosition, size: int, path: str) -> RecordBlock | None:
        """Parse the block at a position. None when more bytes are needed first."""
        encoding = self._options.encoding
        if width_of(encoding) > 1 and encoding is not None:
            # A document over several lines is none here, nor is a last line without its end.
            order = byte_order(block, encoding)
            wide = cut_wide(block, offset=position.offset, line=position.line, limit=self._limit, encoding=order)
            return self._cut_off(wide, block, position, path) if wide.used or len(block) > 2 * self._limit else None
        if self.is_document(block, position):
            records = self._parse_document(block, position, path)
        else:
            records = self._parse_lines(block, position, size, path)
        if records is None or encoding is None:
            return records
        lines = [as_utf8(line, encoding) for line in records.lines.lines]
        return replace(records, lines=replace(records.lines, lines=lines))

    def _parse_lines(self, block: bytes, position: FilePosition, size: int, path: str) -> RecordBlock | None:
        if position.within == "line":
            return _skip_dropped_line(block)
        if block.startswith(b"\0") and not _is_wide_text(block, 0):
            return _skip_hole(block, position, size, path)
        if b"\0" in block and (hole := _find_hole(block)) >= 0:
            block = block[:hole]  # the next step skips the hole
        if self._framing is None:
            self._framing = detect(block)
        if self.framed and b"\n" in block:
            return self._parse_framed(block, position, path)
        lines = self._cut(block, position)
        if not lines.used and len(block) <= self._limit:
            return self._parse_unterminated(block, position, size)
        return self._cut_off(lines, block, position, path)

    def _cut(self, block: bytes, position: FilePosition) -> CutLines:
        return cut(block, offset=position.offset, line=position.line, limit=self._limit)

    def _cut_off(self, lines: CutLines, block: bytes, position: FilePosition, path: str) -> RecordBlock:
        """The lines of a block; one without the end of a line is the beginning of a line that is too long."""
        if lines.used:
            return RecordBlock(lines, rejections=self._too_long(lines, path))
        detail = f"more than {self._limit} bytes"
        return _dropped(block, Rejection(RejectReason.LINE_TOO_LONG, path, position.number, detail=detail))

    def is_document(self, block: bytes, position: FilePosition) -> bool:
        """Whether a block begins a file that is one JSON document, as far as its first line tells."""
        return self._options.documents and not position.offset and not position.within and begins_document(block)

    def _parse_document(self, block: bytes, position: FilePosition, path: str) -> RecordBlock | None:
        """Parse a file that is one JSON document; None while its end is missing."""
        used, ends = len(block), block.count(b"\n")
        if used > MAX_DOCUMENT_BYTES or is_too_large(block):
            detail = f"a JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MiB, or with too many values"
            return _dropped(block, Rejection(RejectReason.LINE_TOO_LONG, path, position.number, detail=detail))
        text = block.removeprefix(BOM).strip()
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            if not text.endswith((b"}", b"]")):
                return None
            torn = self._cut(block, position)
            return RecordBlock(torn, rejections=self._too_long(torn, path)) if torn.used else None
        rows = value if isinstance(value, list) and self._options.records is None else [value]
        lines = [orjson.dumps(row) for row in rows]
        numbers = range(1, len(rows) + 1)
        return RecordBlock(CutLines(lines=lines, offsets=range(len(rows)), numbers=numbers, used=used, ends=ends))

    def parse_rest(self, block: bytes, position: FilePosition, path: str) -> RecordBlock:
        """Reject the unterminated end of a rotated file, so that it is never joined with another line."""
        if self.framed and b"\n" in block:
            return self._parse_last_parts(block, position, path)
        if block == b"\0":  # the second byte of a line end in UTF-16
            return _dropped(block)
        reason, detail = RejectReason.PARTIAL_AT_ROTATION, f"{len(block)} bytes without a newline at the end"
        if not block.strip(b"\0"):
            reason, detail = RejectReason.BINARY, f"{len(block)} NUL bytes at the end"
        return _dropped(block, Rejection(reason, path, position.number, detail=detail))

    def _parse_unterminated(self, block: bytes, position: FilePosition, size: int) -> RecordBlock | None:
        """Parse a last record that lacks only its newline, which some writers put before or between records.

        No JSON object is a prefix of another one, so a complete object cannot be the start of a longer record.
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
        return RecordBlock(CutLines(lines=(text,), offsets=(start,), numbers=(position.number,), used=len(block)))

    def _parse_last_parts(self, block: bytes, position: FilePosition, path: str) -> RecordBlock:
        """Parse the complete records at the end of a rotated file and reject the incomplete ones."""
        dropped, framing = _dropped_streams(position), self._framing or "plain"
        unwrapped = unwrap(self._cut(block, position), framing, limit=self._limit, dropped=dropped, last=True)
        rejections = [
            Rejection(RejectReason.PARTIAL_AT_ROTATION, path, number, detail=f"{length} bytes without their last part")
            for number, length in unwrapped.lines.too_long
        ]
        return RecordBlock(unwrapped.lines, unwrapped.dropped, rejections)

    def _parse_framed(self, block: bytes, position: FilePosition, path: str) -> RecordBlock | None:
        """Parse complete records only: an incomplete record is read again from its first part."""
        dropped, framing = _dropped_streams(position), self._framing or "plain"
        rest, last = block, False
        while True:
            lines = self._cut(rest, position)
            unwrapped = unwrap(lines, framing, limit=self._limit, dropped=dropped, last=last)
            if unwrapped.open_at is None:
                return RecordBlock(unwrapped.lines, unwrapped.dropped, self._too_long(unwrapped.lines, path))
            if unwrapped.open_at:
                rest = rest[: lines.offsets[unwrapped.open_at] - position.offset]
            elif len(block) >= self._options.window:
                rest, last = block, True
            else:
                return None

    def _too_long(self, lines: CutLines, path: str) -> list[Rejection]:
        return [
            Rejection(RejectReason.LINE_TOO_LONG, path, number, detail=f"{length} bytes, more than {self._limit}")
            for number, length in lines.too_long
        ]


def _dropped(block: bytes, *rejections: Rejection) -> RecordBlock:
    """A block that is dropped, and with it the line that it ends inside of."""
    return RecordBlock(CutLines(used=len(block)), "line", rejections)


def _dropped_streams(position: FilePosition) -> Dropped:
    within = position.within
    return "" if within == "line" or within == "hole" else within  # noqa: PLR1714 - mypy follows this


def _skip_dropped_line(block: bytes) -> RecordBlock | None:
    """Skip more of a line that was counted as rejected."""
    newline = block.find(b"\n")
    if newline >= 0:
        return RecordBlock(CutLines(used=newline + 1, ends=1))
    return _dropped(block) if block else None


def _is_wide_text(block: bytes, start: int) -> bool:
    """Whether the NUL bytes at `start` begin a line of UTF-16 or UTF-32, which is rejected as a whole, and once."""
    end = block.find(b"\n", start)
    line = block[start : end if end >= 0 else len(block)]
    text = line[:_MAX_CHARACTER_BYTES].lstrip(b"\0")
    return bool(text) and b"\0" in line[min(len(line), _MAX_CHARACTER_BYTES) - len(text) :]


def _find_hole(block: bytes) -> int:
    """Index of the first line, after the first one, that begins with a hole; -1 when there is none."""
    newline = block.find(b"\n\0")
    while newline >= 0 and _is_wide_text(block, newline + 1):
        newline = block.find(b"\n\0", newline + 1)
    return newline + 1 if newline >= 0 else -1


def _skip_hole(block: bytes, position: FilePosition, size: int, path: str) -> RecordBlock | None:
    """Skip NUL bytes at the start of a line: a writer kept its offset across a truncation, or a crash left them."""
    used = len(block) - len(block.lstrip(b"\0"))
    if used == len(block) and position.offset + used >= size:
        return None  # nothing after them yet: a writer may still fill space that it preallocated
    rejection = Rejection(RejectReason.BINARY, path, position.number, detail="a run of NUL bytes")
    return RecordBlock(CutLines(used=used), "hole", () if position.within == "hole" else (rejection,))
