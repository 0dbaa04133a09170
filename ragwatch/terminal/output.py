"""Makes text from logs, replies and files safe to print on a terminal, and adds file names to I/O errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Column, Table


def printable(text: str) -> str:
    r"""Replace control characters, such as escape sequences, by U+FFFD; newlines and tabs stay.

    >>> printable("a" + chr(27) + "[2Jb")
    'a\ufffd[2Jb'
    """
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


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
