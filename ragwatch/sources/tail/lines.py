"""Lines: cut a block of bytes into records. The hot path: whole-block operations in C, a loop only where needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CutLines:
    """What a block holds.

    Attributes:
        lines: Records without line ends; blank ones and too long ones are left out.
        offsets: Where each record starts in the file.
        numbers: 1-based number of each line, 0 when unknown.
        too_long: Number (0: unknown) and length in bytes of each line above the limit.
        used: Bytes of the block up to and with its last newline.
        ends: Line ends in those bytes.
    """

    lines: Sequence[bytes]
    offsets: Sequence[int]
    numbers: Sequence[int]
    too_long: Sequence[tuple[int, int]]
    used: int
    ends: int


def cut(block: bytes, *, offset: int, line: int | None, limit: int) -> CutLines:
    r"""Cut a block that starts at a line's start. What follows the last newline is left for later.

    Args:
        block: Bytes of the file from `offset` on.
        offset: Where the block starts in the file; at 0 a byte order mark is taken off.
        line: Line ends before the block, None when unknown.
        limit: Longest record in bytes.

    >>> cut(b'{"a":1}\r\n\n{"b":2}\n{"c"', offset=0, line=0, limit=99).numbers
    [1, 3]
    """
    lines = block.split(b"\n")
    used = len(block) - len(lines.pop())
    ends = len(lines)
    starts = list(accumulate((len(raw) + 1 for raw in lines), initial=offset))
    starts.pop()
    numbers: Sequence[int] = range(line + 1, line + 1 + ends) if line is not None else [0] * ends
    if not _odd(block, lines, offset, limit):
        return CutLines(lines, starts, numbers, (), used, ends)
    too_long: list[tuple[int, int]] = []
    kept: list[tuple[bytes, int, int]] = []
    for raw, start, number in zip(lines, starts, numbers, strict=True):
        bom = len(BOM) if start == 0 and raw.startswith(BOM) else 0
        record = raw[bom:].removesuffix(b"\r")
        if len(record) > limit:
            too_long.append((number, len(record)))
        elif record and not record.isspace():
            kept.append((record, start + bom, number))
    return CutLines([k[0] for k in kept], [k[1] for k in kept], [k[2] for k in kept], too_long, used, ends)


def _odd(block: bytes, lines: list[bytes], offset: int, limit: int) -> bool:
    """Whether any line needs a closer look."""
    return (
        not all(lines)
        or b"\r" in block
        or (offset == 0 and block.startswith(BOM))
        or (len(block) > limit and any(len(raw) > limit for raw in lines))
        or any(map(bytes.isspace, lines))
    )
