"""Line splitting: cuts a block of bytes into records. Hot path: whole-block operations in C, loops only if needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragwatch.formats.record import width_of

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLines:
    """The records of a block.

    Attributes:
        lines: Records without line ends; blank and too long ones are left out.
        offsets: Offset in the file at which each record starts.
        numbers: 1-based number of each line, 0 when unknown.
        too_long: Number (0: unknown) and length in bytes of each line above the limit.
        used: Bytes of the block up to and including its last newline, or all that are consumed.
        ends: Line ends in those bytes.
    """

    lines: Sequence[bytes] = ()
    offsets: Sequence[int] = ()
    numbers: Sequence[int] = ()
    too_long: Sequence[tuple[int, int]] = ()
    used: int
    ends: int = 0


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
