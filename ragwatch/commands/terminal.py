"""Terminal: text of others (logs, replies, files) as it may be printed."""

from __future__ import annotations

from rich.markup import escape


def plain(text: str) -> str:
    """Text without anything that a terminal would obey.

    >>> plain("a" + chr(27) + "[2Jb")
    'a\ufffd[2Jb'
    """
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def shown(text: str) -> str:
    r"""The same in one line, for rich, which is not to take it for markup either.

    >>> shown("[red]a" + chr(10) + "b")
    '\\[red]a b'
    """
    return escape(" ".join(plain(text).split()))
