"""Options and help of the commands for privacy: forget, audit."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.options.labels import TOKEN_FILE
from ragwatch.commands.options.lazy import CONFIG, lazy_command

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@lazy_command("ragwatch.commands.forget:forget")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="All answers with this value in their metadata.")
@click.option(
    "--config", "path", type=CONFIG, help="Configuration file (YAML): names state, keys, redaction, other files."
)
@click.option("--state", type=CONFIG, help="State directory; default: that of the configuration.")
@click.option("--url", metavar="URL", help="Address of the running ragwatch; default: that of the configuration.")
@TOKEN_FILE
@click.option(
    "--with-scores", is_flag=True, help="Also delete scores and labels, which changes estimates of that time."
)
@click.option("--dry-run", is_flag=True, help="Only count what would be erased.")
def forget() -> None:
    """Erase a person from the state: texts, metadata, ids and notes of answers with these ids or metadata.

    Pending draws become unjudged; canary runs and events that contain the texts lose them. The database is then
    written again, so that no byte of a text remains in free space. Scores and labels remain unless --with-scores is
    given, as does the hash of each id, so that no answer is stored again. What cannot be erased (logs, suites, anchors,
    backups, providers) is listed. Workers that share a PostgreSQL database may go on.

    A running ragwatch is asked over HTTP (right `write`): it stops reading and judging for that long. The command
    needs to read the state directory.

    Exit code 1 when it cannot be asked or bytes remain, 2 for a usage or configuration error, 3 when no stored answer
    matches.
    """


@click.group()
def audit() -> None:
    """Work with audit logs (key `audit.file`)."""


@lazy_command("ragwatch.commands.audit:verify_command", "verify")
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
def verify() -> None:
    """Check that no line of an audit log was changed, deleted, inserted or moved; names the first broken line.

    Give rotated files together, the oldest first. Exit code 1 when the chain is broken, 3 when there is no line.
    """


audit.add_command(verify)
