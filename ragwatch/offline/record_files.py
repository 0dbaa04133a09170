"""Reads the records of a file: JSONL, one JSON array, one object over many lines, or any of these in gzip."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

from ragwatch.errors import FormatError
from ragwatch.formats.record import BYTE_ORDER_MARKS, as_utf8
from ragwatch.formats.selection import begins_document
from ragwatch.model.sample import RejectReason

MAX_REJECTS_SHOWN = 20
_GZIP = b"\x1f\x8b"
_NUMBER = re.compile(r"\d+")


def records(
    stream: BinaryIO, *, whole: bool = False, encoding: str | None = None
) -> Iterator[tuple[int, bytes | FormatError]]:
    r"""The number and the JSON text of each record, without blank ones, in order.

    The number is that of its line, or its position in the array, from 1; with `whole` an array is one record.
    After a truncated or corrupt part of a gzip
    file nothing can be read: one error takes the place of the rest.

    >>> list(records(io.BytesIO(b'{"a": 1}\n\n{"a": 2}')))
    [(1, b'{"a": 1}'), (3, b'{"a": 2}')]
    >>> list(records(io.BytesIO(b'[\n {"a": 1},\n {"a": 2}\n]')))
    [(1, b'{"a": 1}'), (2, b'{"a": 2}')]
    """
    number = 0
    lines = _in_utf8(_unzip(stream), encoding)
    try:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            if number == 1 and begins_document(line):
                yield from _document_records(line + lines.read(), whole=whole)
                return
            yield from ((number, one) for one in line.rstrip(b"\r\n").split(b"\r") if one.strip())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield number + 1, FormatError(RejectReason.BINARY, "", f"the gzip file is truncated or corrupt: {error}")


def _unzip(stream: BinaryIO) -> IO[bytes]:
    buffered = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
    if buffered.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    return cast("IO[bytes]", buffered)


def _in_utf8(lines: IO[bytes], encoding: str | None) -> IO[bytes]:
    """The lines in UTF-8; UTF-16 is recognised by its byte order mark."""
    if encoding is None and isinstance(lines, io.BufferedReader):
        encoding = BYTE_ORDER_MARKS.get(lines.peek(2)[:2])
    return lines if encoding is None else io.BytesIO(as_utf8(lines.read(), encoding))


def _document_records(text: bytes, *, whole: bool) -> Iterator[tuple[int, bytes]]:
    """The records of a file that is a single JSON value; its lines if it is not."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        lines = enumerate(text.split(b"\n"), start=1)
        yield from ((number, line.rstrip(b"\r")) for number, line in lines if line.strip())
        return
    rows = value if isinstance(value, list) and not whole else [value]
    yield from ((number, json.dumps(row).encode()) for number, row in enumerate(rows, start=1))


class Rejects:
    """Counts the rejected records of one file. Errors that differ only in numbers (a position, a rank) are equal."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], tuple[int, FormatError]] = {}

    def add(self, number: int, error: FormatError) -> None:
        """Count the error of the record on line `number`."""
        kind = error.reason, _NUMBER.sub("0", str(error))
        self.counts[kind] += 1
        self._first.setdefault(kind, (number, error))

    def lines(self, name: str) -> Iterator[str]:
        """Lines that report the errors of the file `name`, the most common error first."""
        for kind, count in self.counts.most_common(MAX_REJECTS_SHOWN):
            number, error = self._first[kind]
            same = f" ({count} records of this file, the first at line {number})" if count > 1 else ""
            yield f"{name}:{number}: {error.reason}: {error}{same}"
        rest = self.counts.most_common()[MAX_REJECTS_SHOWN:]
        if rest:
            rejected = sum(count for _, count in rest)
            yield f"{name}: {rejected} more records are rejected, with {len(rest)} other errors"
