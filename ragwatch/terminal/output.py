"""Standard input, output and error, whatever state the caller has left them in, and text that is safe to print.

Text from logs, replies and files is made printable, and I/O errors are given file names.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

import click

STDIN, STDOUT, STDERR = 0, 1, 2
OUTPUT = "standard output"


class _Output(io.FileIO):
    """Standard output. Its write errors name it as their file."""

    def write(self, data: bytes) -> int | None:  # type: ignore[override]  # whatever a buffer passes
        try:
            return super().write(data)
        except OSError as error:
            error.filename = OUTPUT
            raise


class _ErrorOutput(io.FileIO):
    """Standard error. Drops what cannot be written: a full disk under the log must not end the process."""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # the same
        try:
            written = super().write(data)
        except OSError:
            written = None
        return len(data) if written is None else written  # None: the write would block; do not wait for the reader


def prepare() -> None:
    """Open closed streams and wrap standard output and error. Streams replaced by a test are left unchanged."""
    _open_closed()
    if sys.stdin is None:
        sys.stdin = open(STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the process ends
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output(STDOUT, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_ErrorOutput(STDERR, "w", closefd=False), sys.stderr, by_line=True)


def _open_closed() -> None:
    """Open /dev/null for each closed stream; otherwise the next opened file would receive what is printed."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # returns the lowest free descriptor


def _text(raw: io.FileIO, replaced: TextIO | None, *, by_line: bool = False) -> TextIO:
    encoding = "utf-8" if replaced is None else replaced.encoding
    # Logs and file names may contain characters that no encoding has, such as unpaired surrogates.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=by_line or raw.isatty(), write_through=True
    )


def finish() -> OSError | None:
    """Flush both outputs. Returns the error of standard output, and keeps Python from printing it again at exit."""
    failure = None
    try:
        sys.stdout.flush()
    except OSError as error:
        failure = error
        discard_output()
    with suppress(OSError):
        sys.stderr.flush()
    return failure


def discard_output() -> None:
    """Redirect standard output to /dev/null: Python flushes its buffers at exit and would print an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, STDOUT)
    os.close(null)


def is_output_error(error: BaseException) -> bool:
    """Whether the error comes from writing to standard output."""
    return isinstance(error, OSError) and error.filename == OUTPUT


def is_reader_gone(error: BaseException) -> bool:
    """Whether the reader of standard output has closed its end of the pipe, as `head` does."""
    return is_output_error(error) and isinstance(error, BrokenPipeError)


if TYPE_CHECKING:
    from rich.table import Column, Table


def printable(text: str) -> str:
    r"""Replace control characters, such as escape sequences, by U+FFFD; newlines and tabs stay.

    >>> printable("a" + chr(27) + "[2Jb")
    'a\ufffd[2Jb'
    """
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def say(text: str) -> None:
    """Print a text on standard error, made printable: it may hold parts of a log, or names of files."""
    click.echo(printable(text), err=True)


def figure(value: float | None, form: str = ".3f") -> str:
    """Return a figure as text, `unknown` where it is.

    >>> figure(0.5), figure(None)
    ('0.500', 'unknown')
    """
    return "unknown" if value is None else f"{value:{form}}"


def moment(at: float) -> str:
    """Return a time, in seconds since the epoch, to the minute.

    >>> moment(0.0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def counted(counts: Mapping[str, float]) -> str:
    """Return counts by reason in one line, in their order.

    >>> counted({"timeout": 2, "torn_json": 1})
    'timeout 2, torn_json 1'
    """
    return ", ".join(f"{reason} {count}" for reason, count in counts.items())


@contextmanager
def file_name_in_errors(name: str) -> Iterator[None]:
    """Set the file name of OSErrors raised within the context; the system sets it only when opening fails."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = name
        raise


def escape_line(text: str) -> str:
    r"""Convert text to one printable line, with rich markup escaped.

    >>> escape_line("[red]a" + chr(10) + "b")
    '\\[red]a b'
    """
    from rich.markup import escape  # noqa: PLC0415 - callers of `printable` do not need rich

    return escape(" ".join(printable(text).split()))


def compact_table(*columns: str | Column) -> Table:
    """Return a table of so little frame that eight columns fit into 80 characters; named ones do not wrap."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - the same
    from rich.table import Column, Table  # noqa: PLC0415 - the same

    made = (Column(one, no_wrap=True) if isinstance(one, str) else one for one in columns)
    return Table(*made, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
