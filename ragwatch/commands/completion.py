"""`ragwatch completion`: prints the script that completes commands, options and file names in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ragwatch.commands import cli
from ragwatch.commands.options.administration import CompletionArguments

PROGRAM = "ragwatch"
VARIABLE = "_RAGWATCH_COMPLETE"


def completion(given: CompletionArguments) -> int:
    """Print the completion script of a shell. Returns 0."""
    kind = get_completion_class(given.shell)
    if kind is None:
        raise AssertionError(f"click has no completion for {given.shell}")
    click.echo(kind(cli, {}, PROGRAM, VARIABLE).source())
    return 0
