"""Options and help of the commands for privacy: forget, audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ragwatch.commands.options.lazy import CONFIG, TOKEN_FILE, URL, Arguments, LazyCommand, argument, option

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class ForgetArguments(Arguments):
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

    ids: Sequence[str] = argument(metavar="[ID]...")
    metadata: Sequence[str] = option(metavar="KEY=VALUE", help="All answers with this value in their metadata.")
    path: Path | None = option(
        "--config", type=CONFIG, help="Configuration file (YAML): names state, keys, redaction, other files."
    )
    state: Path | None = option(type=CONFIG, help="State directory; default: that of the configuration.")
    url: str | None = URL
    token_file: Path | None = TOKEN_FILE
    with_scores: bool = option(help="Also delete scores and labels, which changes estimates of that time.")
    dry_run: bool = option(help="Only count what would be erased.")


forget = LazyCommand(ForgetArguments, "ragwatch.commands.forget:forget", "forget")


@click.group()
def audit() -> None:
    """Work with audit logs (key `audit.file`)."""


class AuditVerifyArguments(Arguments):
    """Check that no line of an audit log was changed, deleted, inserted or moved; names the first broken line.

    Give rotated files together, the oldest first. Exit code 1 when the chain is broken, 3 when there is no line.
    """

    files: Sequence[Path] = argument(required=True, type=_FILE, metavar="FILE...")


verify = LazyCommand(AuditVerifyArguments, "ragwatch.commands.audit:verify_command", "verify")


audit.add_command(verify)
