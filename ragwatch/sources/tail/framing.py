r"""Frames: what a container runtime wraps around each line that a service prints, taken off again.

CRI (containerd, CRI-O): `2026-01-01T00:00:00.123456789Z stdout F text`, with `P` for a part that goes on in the next
line of that stream. Docker's json-file: `{"log":"text\n","stream":"stdout","time":"..."}`, where a part has no `\n`.
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

_CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* (?P<stream>stdout|stderr) (?P<tag>[FP])(?::\S*)?(?: |$)")
_STREAMS = ("stdout", "stderr")
_LOOKED_AT = 16


@dataclass(frozen=True, slots=True)
class FramedLine:
    """One line, unwrapped.

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
    """What framed lines hold.

    Attributes:
        piece: Their records; offsets and numbers are those of a record's first line.
        open_at: Index of the first line of the piece that must be read again, None when no record is left open.
        dropped: Streams that are inside a record that is dropped up to its end.
    """

    piece: CutLines
    open_at: int | None
    dropped: Dropped


def detect(block: bytes) -> Framing | None:
    """How the first lines are framed, None when there is no complete line that is not blank."""
    start = 0
    for _ in range(_LOOKED_AT):
        end = block.find(b"\n", start)
        if end < 0:
            return None
        if line := block[start:end].removeprefix(BOM).strip():
            return next((each for each in ("cri", "docker") if frame_of(line, each)), "plain")
        start = end + 1
    return None


def frame_of(line: bytes, framing: Framing) -> FramedLine | None:
    """Unwrap a line; None when it is not framed like that."""
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
class _FrameRun:
    start: int
    parts: list[bytes]
    size: int = 0


class _RecordJoiner:
    """Joins the parts of records, stream by stream."""

    def __init__(self, piece: CutLines, limit: int, dropped: AbstractSet[str]) -> None:
        self.piece = piece
        self.limit = limit
        self.dropping = set(dropped)
        self.runs: dict[str, _FrameRun] = {}
        self.records: list[tuple[int, int, bytes]] = []
        self.too_long = list(piece.too_long)

    def take(self, at: int, frame: FramedLine) -> None:
        if frame.stream in self.dropping:
            if frame.whole:
                self.dropping.remove(frame.stream)
            return
        run = self.runs.setdefault(frame.stream, _FrameRun(at, []))
        run.parts.append(frame.text)
        run.size += len(frame.text)
        if run.size > self.limit:
            self.give_up(frame.stream)
            if frame.whole:
                self.dropping.remove(frame.stream)
        elif frame.whole:
            self.records.append((run.start, at, b"".join(self.runs.pop(frame.stream).parts).removesuffix(b"\r")))

    def give_up(self, stream: str) -> None:
        run = self.runs.pop(stream)
        self.too_long.append((self.piece.numbers[run.start], run.size))
        self.dropping.add(stream)

    def open_at(self) -> int | None:
        """The first line of what is open. A record that begins before it and ends behind it is read again too."""
        if not self.runs:
            return None
        first = min(run.start for run in self.runs.values())
        for start, end, _ in reversed(self.records):
            if start < first <= end:
                first = start
        return first


def unwrap(piece: CutLines, framing: Framing, *, limit: int, dropped: Dropped, last: bool) -> UnwrappedLines:
    """Take the frames off.

    Args:
        piece: Framed lines.
        framing: How they are framed; a line that is not is passed on as it is.
        limit: Longest record in bytes.
        dropped: Streams that begin inside a record that is dropped.
        last: Whether records that are still open at the end are given up, as too long.
    """
    joiner = _RecordJoiner(piece, limit, {each for each in dropped.split("+") if each})
    for at, line in enumerate(piece.lines):
        frame = frame_of(line, framing)
        if frame is None:
            joiner.records.append((at, at, line))
        else:
            joiner.take(at, frame)
    if last:
        for stream in list(joiner.runs):
            joiner.give_up(stream)
    records = sorted((start, text) for start, _, text in joiner.records if text and not text.isspace())
    unwrapped = replace(
        piece,
        lines=[text for _, text in records],
        offsets=[piece.offsets[start] for start, _ in records],
        numbers=[piece.numbers[start] for start, _ in records],
        too_long=joiner.too_long,
    )
    both: Dropped = "stdout+stderr"
    dropping: Dropped = next((each for each in ("stdout", "stderr") if joiner.dropping == {each}), "")
    return UnwrappedLines(unwrapped, joiner.open_at(), both if len(joiner.dropping) > 1 else dropping)
