"""Click commands whose implementation is imported when they run, so that `--help` is fast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import click

from ragwatch.imports import without_garbage_collection
from ragwatch.interrupts import TERMINATION, interruptible

CONFIG = click.Path(path_type=Path)
OUT = click.Path(path_type=Path, dir_okay=False)


def import_function(path: str) -> Callable[..., object]:
    """Import and return the function named by `module:name`."""
    module, _, name = path.partition(":")
    function: Callable[..., object] = getattr(import_module(module), name)
    return function


def import_and_call(work: str, first_line: str | None = None, /, **options: object) -> object:
    """Import a command's function and call it; Ctrl-C raises KeyboardInterrupt meanwhile. Returns the exit code.

    Args:
        work: `module:name` of the function.
        first_line: Shown on standard error before the import, which takes a second or more.
        options: Values from the command line.
    """
    if first_line is not None:
        click.echo(first_line, err=True)
    with without_garbage_collection():
        function = import_function(work)
    if TERMINATION.requested:  # while modules were imported: nothing has begun
        return 0
    with interruptible():
        return function(**options)


class LazyCommand(click.Command):
    """A click command whose implementation is imported when it runs.

    Attributes:
        work: `module:name` of the function that takes the options as keyword arguments.
    """

    work: str


def lazy_command(
    work: str, name: str | None = None, *, first_line: str | None = None
) -> Callable[[Callable[[], None]], LazyCommand]:
    """Decorator that makes a command from a function without a body, whose docstring is the help.

    Args:
        work: `module:name` of the function that implements the command.
        name: Name of the command; None for the name of the decorated function.
        first_line: Shown on standard error before the import.
    """

    def decorate(declaration: Callable[[], None]) -> LazyCommand:
        command = click.command(name or declaration.__name__, cls=LazyCommand)(declaration)
        command.work, command.callback = work, partial(import_and_call, work, first_line)
        return command

    return decorate
