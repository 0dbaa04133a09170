"""Packed: the records of a file as people hand it over: JSONL, one JSON array, one object over many lines, or gzip."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

from ragwatch.core.sample import RejectReason
from ragwatch.errors import FormatError

_GZIP = b"\x1f\x8b"


def records(stream: BinaryIO) -> Iterator[tuple[int, bytes | FormatError]]:
    r"""Each record that is not blank, in order, as the text of one JSON value, and its number.

    The number is that of its line, or its place in the array, from 1. What lies behind a tear in a gzip file cannot be
    read: one error stands in its place.

    >>> list(records(io.BytesIO(b'{"a": 1}\n\n{"a": 2}')))
    [(1, b'{"a": 1}'), (3, b'{"a": 2}')]
    >>> list(records(io.BytesIO(b'[\n {"a": 1},\n {"a": 2}\n]')))
    [(1, b'{"a": 1}'), (2, b'{"a": 2}')]
    """
    number = 0
    lines = _unzipped(stream)
    try:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            if number == 1 and not _is_object(line):
                yield from _of_document(line + lines.read())
                return
            yield number, line.rstrip(b"\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield number + 1, FormatError(RejectReason.BINARY, "", f"the gzip file is torn: {error}")


def _unzipped(stream: BinaryIO) -> IO[bytes]:
    buffered = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
    if buffered.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    return cast("IO[bytes]", buffered)


def _is_object(line: bytes) -> bool:
    """Whether a line begins and ends as an object does; whatever is inside, it is then read as a line."""
    return line.strip().removeprefix(b"\xef\xbb\xbf").startswith(b"{") and line.rstrip().endswith(b"}")


def _of_document(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The rows of one JSON value that fills the whole file; where it is none, its lines."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        lines = enumerate(text.split(b"\n"), start=1)
        yield from ((number, line.rstrip(b"\r")) for number, line in lines if line.strip())
        return
    rows = value if isinstance(value, list) else [value]
    yield from ((number, json.dumps(row).encode()) for number, row in enumerate(rows, start=1))
