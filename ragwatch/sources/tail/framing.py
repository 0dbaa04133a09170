r"""Log framing of container runtimes: detects and removes what a runtime wraps around each line that a service prints.

CRI (containerd, CRI-O): `2026-01-01T00:00:00.123456789Z stdout F text`, with `P` for a partial line that is continued
in the next line of that stream. Docker's json-file: `{"log":"text\n","stream":"stdout","time":"..."}`, where a partial
line has no `\n`.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from ragwatch.sources.tail.lines import BOM, CutLines

Framing = Literal["plain", "cri", "docker"]
Dropped = Literal["", "stdout", "stderr", "stdout+stderr"]

_FRAMES: tuple[Framing, ...] = ("cri", "docker")
_CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* (?P<stream>stdout|stderr) (?P<tag>[FP])(?::\S*)?(?: |$)")
_STREAMS: tuple[Dropped, ...] = ("stdout", "stderr")
_MAX_LINES_TO_DETECT = 16


@dataclass(frozen=True, slots=True)
class FramedLine:
    """One line without its frame.

    Attributes:
        stream: `stdout` or `stderr`.
        whole: Whether the record ends here.
        text: What the service printed.
    """

    stream: str
    whole: bool
    text: bytes


@dataclass(frozen=True, slots=True)
class UnwrappedLines:
    """The records of framed lines.

    Attributes:
        lines: The records; offsets and numbers are those of a record's first line.
        open_at: Index of the first line that must be read again because a record is incomplete, None when all are
            complete.
        dropped: Streams that are inside a record that is dropped up to its end.
    """

    lines: CutLines
    open_at: int | None
    dropped: Dropped


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
    """The parts of a record so far.

    Attributes:
        start: Index of its first line.
        size: Bytes of all parts.
    """

    start: int
    parts: list[bytes]
    size: int = 0


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
