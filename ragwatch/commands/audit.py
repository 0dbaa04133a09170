"""`ragwatch audit verify`: checks the hash chain of audit logs."""

from __future__ import annotations

import click

from ragwatch.audit import verify
from ragwatch.commands.options.administration import AuditVerifyArguments
from ragwatch.commands.terminal import printable

BROKEN, NOTHING = 1, 3


def verify_command(given: AuditVerifyArguments) -> int:
    """Check the chain. Returns 1 if a line was changed, deleted, inserted or moved, 3 if there is no line."""
    result = verify(given.files)
    if result.error is not None:
        click.echo(printable(f"broken: {result.error}"))
        return BROKEN
    if not result.lines:
        click.echo("no lines", err=True)
        return NOTHING
    earlier = f"; {result.first - 1} earlier ones are in other files" if result.first > 1 else ""
    click.echo(f"intact: {result.lines} lines, from {result.first} to {result.first + result.lines - 1}{earlier}")
    return 0
