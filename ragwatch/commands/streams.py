"""Streams: standard input, output and error as the program may rely on them, whatever the caller has done to them."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

STDIN, STDOUT, STDERR = 0, 1, 2
OUTPUT = "standard output"


class _Output(io.FileIO):
    """Standard output; an error of it says so."""

    def write(self, data: bytes) -> int | None:  # type: ignore[override]  # whatever a buffer hands over
        try:
            return super().write(data)
        except OSError as error:
            error.filename = OUTPUT
            raise


class _Errors(io.FileIO):
    """Standard error. What cannot be written to it is lost: a full disk under a log must not end what is logged."""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # the same
        try:
            written = super().write(data)
        except OSError:
            written = None
        return len(data) if written is None else written  # None: it would block, and we do not wait for a reader


def prepare() -> None:
    """Open what is closed, and give output and errors the properties above. Streams of a test stay as they are."""
    _fill()
    if sys.stdin is None:
        sys.stdin = open(STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, for good
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output(STDOUT, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Errors(STDERR, "w", closefd=False), sys.stderr, by_line=True)


def _fill() -> None:
    """Open /dev/null in place of a closed stream, or the next file that is opened would take what is printed."""
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def _text(raw: io.FileIO, before: TextIO | None, *, by_line: bool = False) -> TextIO:
    encoding = "utf-8" if before is None else before.encoding
    # Logs and file names may hold what no encoding knows, such as half a surrogate pair.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=by_line or raw.isatty(), write_through=True
    )


def finish() -> OSError | None:
    """Write out what is left. Returns why it could not be written; Python's own end is then told nothing of it."""
    failure = None
    try:
        sys.stdout.flush()
    except OSError as error:
        failure = error
        silence()
    with suppress(OSError):
        sys.stderr.flush()
    return failure


def silence() -> None:
    """Send standard output to nowhere: Python writes out what is left in buffers when it ends, and would complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, STDOUT)
    os.close(null)


def is_of_output(error: BaseException) -> bool:
    """Whether standard output could not be written."""
    return isinstance(error, OSError) and error.filename == OUTPUT


def is_reader_gone(error: BaseException) -> bool:
    """Whether whoever read our output has gone away, as `head` does."""
    return is_of_output(error) and isinstance(error, BrokenPipeError)
