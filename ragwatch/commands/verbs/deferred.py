"""Deferred: commands whose work is imported when they run, so that `--help` answers at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ragwatch.interrupts import interruptible

CONFIG = click.Path(path_type=Path)
OUT = click.Path(path_type=Path, dir_okay=False)


def work_of(place: str) -> Callable[..., Any]:
    """The function that `module:name` names, imported now."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def perform(place: str, first_line: str | None = None, /, **options: object) -> object:
    """Import the work of a command and do it; returns its exit code. Ctrl-C ends it in order from there on.

    Args:
        place: `module:name` of the work.
        first_line: Shown on standard error before anything is imported, which takes a second or more.
        options: What the command line says.
    """
    if first_line is not None:
        click.echo(first_line, err=True)
    work = work_of(place)
    with interruptible():
        return work(**options)


class LazyCommand(click.Command):
    """A command that knows its options and its help, and where its work is.

    Attributes:
        work: `module:name` of the function that takes the options by name.
    """

    work: str


def lazy_command(
    work: str, name: str | None = None, *, first_line: str | None = None
) -> Callable[[Callable[[], None]], LazyCommand]:
    """Make a command of a declaration: a function without a body, whose docstring is the help.

    Args:
        work: `module:name` of the function that does it.
        name: What people type; None for the name of the declaration.
        first_line: Shown before it is imported.
    """

    def made(declaration: Callable[[], None]) -> LazyCommand:
        command = click.command(name or declaration.__name__, cls=LazyCommand)(declaration)
        command.work, command.callback = work, partial(perform, work, first_line)
        return command

    return made
