r"""Line splitting: cuts a block of bytes into records, and removes what a container runtime wraps around each line.

Hot path: whole-block operations in C, loops only if needed. Frames are those of

- CRI (containerd, CRI-O): `2026-01-01T00:00:00.123456789Z stdout F text`, with `P` for a partial line that is continued
  in the next line of that stream;
- Docker's json-file: `{"log":"text\n","stream":"stdout","time":"..."}`, where a partial line has no `\n`.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

import orjson

from ragwatch.formats.record import width_of

BOM = b"\xef\xbb\xbf"
Framing = Literal["plain", "cri", "docker"]
Dropped = Literal["", "stdout", "stderr", "stdout+stderr"]

_FRAMES: tuple[Framing, ...] = ("cri", "docker")
_CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* (?P<stream>stdout|stderr) (?P<tag>[FP])(?::\S*)?(?: |$)")
_STREAMS: tuple[Dropped, ...] = ("stdout", "stderr")
_MAX_LINES_TO_DETECT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLines:
    """The records of a block."""

    lines: Sequence[bytes] = ()  # records without line ends; blank and too long ones are left out
    offsets: Sequence[int] = ()  # offset in the file at which each record starts
    numbers: Sequence[int] = ()  # 1-based number of each line, 0 when unknown
    too_long: Sequence[tuple[int, int]] = ()  # number (0: unknown) and length in bytes of each line above the limit
    used: int  # bytes of the block up to and including its last newline, or all that are consumed
    ends: int = 0  # line ends in those bytes


def cut(block: bytes, *, offset: int, line: int | None, limit: int) -> CutLines:
    r"""Cut a block that begins at the start of a line. Bytes after the last newline are left for the next block.

    At offset 0 of the file a byte order mark is removed. `line` counts the line ends before the block.

    >>> cut(b'{"a":1}\r\n\n{"b":2}\n{"c"', offset=0, line=0, limit=99).numbers
    [1, 3]
    """
    lines = block.split(b"\n")
    used = len(block) - len(lines.pop())
    ends = len(lines)
    starts = list(accumulate((len(raw) + 1 for raw in lines), initial=offset))
    starts.pop()
    numbers = _numbers(line, ends)
    if not _needs_cleaning(block, lines, offset, limit):
        return CutLines(lines=lines, offsets=starts, numbers=numbers, used=used, ends=ends)
    cleaned = []
    for raw, start, number in zip(lines, starts, numbers, strict=True):
        bom = len(BOM) if start == 0 and raw.startswith(BOM) else 0
        cleaned.append((raw[bom:].removesuffix(b"\r"), start + bom, number))
    return _records(cleaned, limit, used=used, ends=ends)


def _numbers(line: int | None, count: int) -> Sequence[int]:
    """Numbers of so many lines after `line` others; 0 for all where that is unknown."""
    return range(line + 1, line + 1 + count) if line is not None else [0] * count


def _records(lines: Iterable[tuple[bytes, int, int]], limit: int, *, used: int, ends: int) -> CutLines:
    """The lines that are records, each with its offset and number: those that are neither blank nor too long."""
    too_long: list[tuple[int, int]] = []
    kept: list[tuple[bytes, int, int]] = []
    for record, start, number in lines:
        if len(record) > limit:
            too_long.append((number, len(record)))
        elif record and not record.isspace():
            kept.append((record, start, number))
    return CutLines(
        lines=[record for record, _, _ in kept],
        offsets=[start for _, start, _ in kept],
        numbers=[number for _, _, number in kept],
        too_long=too_long,
        used=used,
        ends=ends,
    )


def cut_wide(block: bytes, *, offset: int, line: int | None, limit: int, encoding: str) -> CutLines:
    r"""Cut a block of UTF-16, in the named byte order, into records in UTF-8. It may begin inside a character.

    >>> cut_wide('{"a":1}\n{"b"'.encode("utf-16-le"), offset=0, line=0, limit=99, encoding="utf-16-le").lines
    [b'{"a":1}']
    """
    width = width_of(encoding)
    shift = -offset % width
    newline, end = "\n".encode(encoding), len(block)
    while (end := block.rfind(newline, shift, end)) >= 0 and (end - shift) % width:
        end += width - 1  # within two characters
    used = end + width if end >= 0 else 0
    pieces = block[shift:used].decode(encoding, "surrogatepass").split("\n")[:-1]
    starts = accumulate(
        (len(piece.encode(encoding, "surrogatepass")) + width for piece in pieces), initial=offset + shift
    )
    decoded = (
        (piece.removeprefix("\ufeff").strip("\r").encode("utf-8", "replace"), start, number)
        for piece, start, number in zip(pieces, starts, _numbers(line, len(pieces)), strict=False)
    )
    return _records(decoded, limit, used=used, ends=len(pieces))


def _needs_cleaning(block: bytes, lines: list[bytes], offset: int, limit: int) -> bool:
    """Whether any line is blank, too long, or has a carriage return or byte order mark to remove."""
    return (
        not all(lines)
        or b"\r" in block
        or (offset == 0 and block.startswith(BOM))
        or (len(block) > limit and any(len(raw) > limit for raw in lines))
        or any(map(bytes.isspace, lines))
    )


@dataclass(frozen=True, slots=True)
class FramedLine:
    """One line without its frame."""

    stream: str  # `stdout` or `stderr`
    whole: bool  # whether the record ends here
    text: bytes  # what the service printed


@dataclass(frozen=True, slots=True)
class UnwrappedLines:
    """The records of framed lines."""

    lines: CutLines  # the records; offsets and numbers are those of a record's first line
    # index of the first line that must be read again because a record is incomplete, None when all are complete
    open_at: int | None
    dropped: Dropped  # streams that are inside a record that is dropped up to its end


def detect(block: bytes) -> Framing | None:
    """Detect how the first lines are framed. None when there is no complete line that is not blank."""
    start = 0
    for _ in range(_MAX_LINES_TO_DETECT):
        end = block.find(b"\n", start)
        if end < 0:
            return None
        if line := block[start:end].removeprefix(BOM).strip():
            return next((framing for framing in _FRAMES if frame_of(line, framing)), "plain")
        start = end + 1
    return None


def frame_of(line: bytes, framing: Framing) -> FramedLine | None:
    """Parse the frame of a line. None when it has no such frame."""
    if framing == "cri":
        match = _CRI.match(line)
        return FramedLine(match["stream"].decode(), match["tag"] == b"F", line[match.end() :]) if match else None
    if not line.startswith(b'{"log":'):
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value["log"], str) or value.get("stream") not in _STREAMS or "time" not in value:
        return None
    text = value["log"].encode()
    return FramedLine(value["stream"], text.endswith(b"\n"), text.removesuffix(b"\n"))


@dataclass(slots=True)
class _PartialRecord:
    """The parts of a record so far."""

    start: int  # index of its first line
    parts: list[bytes]
    size: int = 0  # bytes of all parts


class _RecordJoiner:
    """Joins the parts of records, stream by stream."""

    def __init__(self, lines: CutLines, limit: int, dropped: AbstractSet[str]) -> None:
        self.numbers = lines.numbers
        self.limit = limit
        self.dropping = set(dropped)
        self.partial: dict[str, _PartialRecord] = {}
        self.records: list[tuple[int, int, bytes]] = []
        self.too_long = list(lines.too_long)

    def add(self, index: int, frame: FramedLine) -> None:
        if frame.stream in self.dropping:
            if frame.whole:
                self.dropping.remove(frame.stream)
            return
        record = self.partial.setdefault(frame.stream, _PartialRecord(index, []))
        record.parts.append(frame.text)
        record.size += len(frame.text)
        if record.size > self.limit:
            self.drop(frame.stream)
            if frame.whole:
                self.dropping.remove(frame.stream)
        elif frame.whole:
            parts = self.partial.pop(frame.stream).parts
            self.records.append((record.start, index, b"".join(parts).removesuffix(b"\r")))

    def drop(self, stream: str) -> None:
        record = self.partial.pop(stream)
        self.too_long.append((self.numbers[record.start], record.size))
        self.dropping.add(stream)

    def open_at(self) -> int | None:
        """The first line to read again: of an incomplete record, or of a record that ends after that line."""
        if not self.partial:
            return None
        first = min(record.start for record in self.partial.values())
        for start, end, _ in reversed(self.records):
            if start < first <= end:
                first = start
        return first


def unwrap(lines: CutLines, framing: Framing, *, limit: int, dropped: Dropped, last: bool) -> UnwrappedLines:
    """Remove frames and join the parts of records; a line without a frame is passed on unchanged.

    Streams in `dropped` begin inside a record that is dropped. Records that are incomplete at the end are dropped, as
    too long, if these lines are the `last` ones.
    """
    joiner = _RecordJoiner(lines, limit, {stream for stream in dropped.split("+") if stream})
    for index, line in enumerate(lines.lines):
        frame = frame_of(line, framing)
        if frame is None:
            joiner.records.append((index, index, line))
        else:
            joiner.add(index, frame)
    if last:
        for stream in list(joiner.partial):
            joiner.drop(stream)
    records = sorted((start, text) for start, _, text in joiner.records if text and not text.isspace())
    unwrapped = replace(
        lines,
        lines=[text for _, text in records],
        offsets=[lines.offsets[start] for start, _ in records],
        numbers=[lines.numbers[start] for start, _ in records],
        too_long=joiner.too_long,
    )
    both: Dropped = "stdout+stderr"
    dropping: Dropped = next((stream for stream in _STREAMS if joiner.dropping == {stream}), "")
    return UnwrappedLines(unwrapped, joiner.open_at(), both if len(joiner.dropping) > 1 else dropping)
