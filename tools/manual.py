"""Builds the manual page ragwatch(1): every command with its help and its options."""

from collections.abc import Iterator

import click

from ragwatch import __version__
from ragwatch.commands import cli
from tools.reference import commands_of

HEAD = f""".\\" Written by `tools/readme.py` from the program.
.TH RAGWATCH 1 "" "ragwatch {__version__}" "User Commands"
.ad l
.nh
.SH NAME
ragwatch \\- monitor the answer quality of a RAG service in production
.SH SYNOPSIS
.B ragwatch
.I COMMAND
.RI [ OPTIONS ]...
.SH DESCRIPTION
"""
TAIL = """.SH ENVIRONMENT
.TP
.B RAGWATCH_TOKEN, RAGWATCH_TOKEN_FILE
Bearer token, or its file, for commands that ask a running ragwatch.
.SH SEE ALSO
.BR prometheus (1),
.BR systemd.service (5)
"""


def manual() -> str:
    """The text of the page, in the macros of man(7)."""
    parts = [HEAD, *_paragraphs(cli.help or ""), ".SH COMMANDS\n"]
    for path, command in commands_of(cli, ("ragwatch",)):
        parts += _command(path, command)
    return "".join([*parts, TAIL])


def _command(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join((*path, *command.collect_usage_pieces(context)))
    yield f'.SS "{_escaped(usage)}"\n'
    yield from _paragraphs(command.help or "")
    for option in command.params:
        record = option.get_help_record(context)
        if record is not None and record[1]:
            name, text = record
            yield f".TP\n.B {_escaped(name)}\n{_line(text)}\n"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.replace("\b\n", "").strip().split("\n\n"):
        yield f".PP\n{_line(paragraph)}\n"


def _line(text: str) -> str:
    """One line of text, which is no request to the formatter."""
    line = _escaped(" ".join(text.split()))
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _escaped(text: str) -> str:
    r"""Escape what the formatter would change.

    >>> _escaped('--set "a\\b"')
    '\\-\\-set \\(dqa\\eb\\(dq'
    """
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("`", "\\(ga")
