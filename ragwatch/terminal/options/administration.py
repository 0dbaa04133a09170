"""Options and help of the commands that administer a store, a configuration, rules and logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.terminal.options.lazy import CONFIG, CONFIG_FILE, INPUT, TOKEN_FILE, URL, Arguments, argument, option


class StoreCopyArguments(Arguments, work="ragwatch.commands.administration:copy"):
    """Copy the SQLite state in the directory SOURCE to the empty PostgreSQL store that the file TARGET names, or back.

    The other way, SOURCE is the configuration and TARGET a new state directory. Stop ragwatch before. Everything is
    copied: counters, verdicts, labels, costs, saved states and the secret of sampling. SOURCE is not changed. A copy
    that was cut short goes on when the same command is run again; until then ragwatch does not start with TARGET.
    """

    source: Path = argument(type=CONFIG, metavar="SOURCE")
    target: Path = argument(type=CONFIG, metavar="TARGET")


class StoreViewsArguments(Arguments, work="ragwatch.commands.administration:views"):
    """Create read-only views of the PostgreSQL store that the file CONFIG names, for Grafana and other readers.

    They stand in a schema of their own (`ragwatch_views` beside `ragwatch`) and contain no texts. Existing ones are
    replaced; ragwatch may be running, and replaces them itself when an upgrade changes the tables. --reader may be
    given several times.
    """

    path: Path = argument(type=CONFIG, metavar="CONFIG")
    readers: Sequence[str] = option("--reader", metavar="ROLE", help="Role that may read the views; must exist.")
    only_print: bool = option("--print", help="Print the SQL statements instead of running them.")


class ForgetArguments(Arguments, work="ragwatch.commands.forget:forget"):
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


class AuditVerifyArguments(Arguments, work="ragwatch.commands.administration:verify_audit"):
    """Check that no line of an audit log was changed, deleted, inserted or moved; names the first broken line.

    Give rotated files together, the oldest first. Exit code 1 when the chain is broken, 3 when there is no line.
    """

    files: Sequence[Path] = argument(required=True, type=INPUT, metavar="FILE...")


class RedactArguments(Arguments, work="ragwatch.commands.redact:redact"):
    """Show what redaction takes from FILE (any text; `-` is standard input): rule, line, column and a masked excerpt.

    Counts by rule go to stderr. Nothing is stored or changed; docs/redaction.md lists the rules.

    Exit code 0 when nothing would be redacted, 1 when something would be, 2 for usage or configuration.
    """

    file: BinaryIO = argument(type=click.File("rb"))
    path: Path | None = option(
        "--config", type=CONFIG, help="Configuration file (YAML): its own rules and keys are used too."
    )
    as_json: bool = option("--json", help="Print JSON instead of lines.")


class RulesArguments(Arguments, work="ragwatch.commands.rules:rules"):
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration.

    With --dashboards also the Grafana dashboards: their links lead to `web.external_url`, and panels that the
    configured judges can never fill are left out.

    With --from-baseline, print a section `thresholds` for the configuration: for each route and quantity the lower
    bound of its baseline, less the tolerance. Comments say how often each threshold would have paged last week, and how
    often the present one. Exit code 3 when no baseline is learned yet.
    """

    path: Path = CONFIG_FILE
    shape: str = option(
        "--format",
        type=click.Choice(["prometheus", "operator"]),
        default="prometheus",
        help="Rule files, or a PrometheusRule resource.",
    )
    out: Path | None = option(
        type=click.Path(path_type=Path, file_okay=False), help="Directory to write to; default: stdout."
    )
    dashboards: Path | None = option(
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory to write the Grafana dashboards to; the rules are then written only with --out.",
    )
    from_baseline: bool = option(help="Instead, propose thresholds by route from the stored drift baselines.")


class ConfigSchemaArguments(Arguments, work="ragwatch.commands.administration:schema"):
    """Print the JSON schema of the configuration file, for editors and validators.

    An editor with a YAML language server completes and checks keys if the file begins with the line
    `# yaml-language-server: $schema=ragwatch.schema.json` and the schema lies beside it.
    """


class CompletionArguments(Arguments, work="ragwatch.commands.administration:completion"):
    """Print a script that completes the commands and options of ragwatch in a shell.

    For bash: `ragwatch completion bash > ~/.local/share/bash-completion/completions/ragwatch`. For zsh, write it to a
    file `_ragwatch` in a directory of `$fpath`; for fish, to `~/.config/fish/completions/ragwatch.fish`.
    """

    shell: str = argument(type=click.Choice(["bash", "fish", "zsh"]))
