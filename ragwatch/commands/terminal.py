"""Terminal: text of others (logs, replies, files) as it may be printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def plain(text: str) -> str:
    """Text without anything that a terminal would obey.

    >>> plain("a" + chr(27) + "[2Jb")
    'a\ufffd[2Jb'
    """
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Errors of reading and writing meanwhile name this file; the system only names what could not be opened."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = name
        raise


def shown(text: str) -> str:
    r"""The same in one line, for rich, which is not to take it for markup either.

    >>> shown("[red]a" + chr(10) + "b")
    '\\[red]a b'
    """
    from rich.markup import escape  # noqa: PLC0415 - `plain` is wanted where rich is not

    return escape(" ".join(plain(text).split()))
