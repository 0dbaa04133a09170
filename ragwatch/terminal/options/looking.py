"""Options and help of the commands that say how answers are now, and why."""

from __future__ import annotations

from pathlib import Path

from ragwatch.terminal.options.lazy import CONFIG, CONFIG_FILE, OUT, TOKEN_FILE, Arguments, option

_URL = option(
    metavar="URL", help="Address of the running ragwatch; default: that of --config, else http://127.0.0.1:10477."
)
_ADDRESS_CONFIG = option(
    "--config", type=CONFIG, help="Configuration file (YAML), which names the address; default: the usual one."
)


class StatusArguments(Arguments, work="ragwatch.commands.looking:status"):
    """Show on one screen what the overview page says: thresholds and alarms, figures and stages by route, problems.

    A running ragwatch is asked over HTTP (right `pages`).

    Exit codes: 0 no figure is worse than its threshold and no alarm about answers is active, 1 one is, or ragwatch
    cannot be asked, 2 usage or configuration, 3 nothing is judged yet.
    """

    url: str | None = _URL
    path: Path | None = _ADDRESS_CONFIG
    token_file: Path | None = TOKEN_FILE
    route: str | None = option(metavar="ROUTE", help="Only this route.")
    window: str | None = option(metavar="WINDOW", help="Window of the figures, such as 1h; default: the shortest.")
    as_json: bool = option("--json", help="Print the data of the page as JSON.")


class McpArguments(Arguments, work="ragwatch.commands.looking:mcp"):
    """Answer an assistant on standard input and output (Model Context Protocol) from a running ragwatch.

    Its tools only read, over HTTP (right `pages`): status, alarms, causes, trend, compare_windows, worst_answers,
    answer, canaries, what_cannot_page. Needs the extra `mcp`. It ends with its input.
    """

    url: str | None = _URL
    path: Path | None = _ADDRESS_CONFIG
    token_file: Path | None = TOKEN_FILE


class CausesArguments(Arguments, work="ragwatch.offline.causes:causes"):
    """Find what failing answers have in common: slices of stored answers that fail more than the rest.

    Slices are values of metadata (release, model, tier), documents (retrieved, ranked first, cited, no longer
    retrieved), numbers of contexts, top scores, lengths of answers, words of questions, hours and judges. Of the shown
    ones, at most 5 % are there by chance on average, however often you look. A slice that another one explains is
    named with it.

    Exit codes: 0 answers were compared, 1 an error occurred, 2 usage or configuration, 3 no judged answers.
    """

    path: Path = CONFIG_FILE
    route: str | None = option(metavar="ROUTE", help="Only answers of this route.")
    judge: str | None = option(metavar="JUDGE", help="Verdicts of this judge; default: the one with most of them.")
    quantity: str | None = option(
        metavar="QUANTITY", help="Failing is beyond its threshold; default: any stage at fault."
    )
    below: str | None = option(metavar="SCORE", help="Failing is below this score of --quantity.")
    above: str | None = option(metavar="SCORE", help="Failing is above this score of --quantity.")
    window: str | None = option(metavar="TIME", help="Such as 1h: the full hour before and this one; default: 24h.")
    since: str | None = option(metavar="TIME", help="Answers since then, such as 2026-01-31T12:00, or 3d.")
    until: str | None = option(metavar="TIME", help="Answers before then.")
    as_json: bool = option("--json", help="Print JSON instead of text.")


class IncidentArguments(Arguments, work="ragwatch.commands.looking:incident"):
    """Write what the pages say of a time as one Markdown file, for a ticket or a post-mortem.

    Figures before and since, levels, alarms with begin and end, what failing answers have in common, the worst answers
    (redacted and cut), canaries, events, and links. A running ragwatch is asked over HTTP (right `pages`).

    Exit codes: 0 it is written, 1 ragwatch cannot be asked, 2 usage or configuration.
    """

    since: str = option(metavar="TIME", required=True, help="Begin: 14:00 (UTC), 2h (ago), or 2026-01-31T12:00.")
    until: str | None = option(metavar="TIME", help="End, likewise; default: now.")
    route: str | None = option(metavar="ROUTE", help="Only this route; default: all of them.")
    out: Path | None = option("--out", type=OUT, help="File to write; default: standard output.")
    url: str | None = _URL
    path: Path | None = _ADDRESS_CONFIG
    token_file: Path | None = TOKEN_FILE


class OpenArguments(Arguments, work="ragwatch.commands.looking:open_worst"):
    """Print the address of the worst answer of the last hour, such as for `xdg-open "$(ragwatch open)"`.

    The worst one has the lowest faithfulness of those with a stage at fault; with --quantity, the worst score of it.
    Standard error says what is wrong with it. A running ragwatch is asked over HTTP (right `pages`).

    Exit code 3 when no answer of that time fails.
    """

    url: str | None = option(metavar="URL", help="Address of the running ragwatch; default: http://127.0.0.1:10477.")
    path: Path | None = option("--config", type=CONFIG, help="Configuration file (YAML), which names the address.")
    token_file: Path | None = TOKEN_FILE
    quantity: str | None = option(
        metavar="QUANTITY", help="The worst score of this quantity; default: any stage at fault."
    )
    route: str | None = option(metavar="ROUTE", help="Only answers of this route.")
    since: str = option(metavar="TIME", default="1h", help="Answers since then, such as 15m or 7d.")


class AcknowledgeArguments(Arguments, work="ragwatch.commands.looking:acknowledge"):
    """Acknowledge drift alarms. Evidence restarts at 0; if the drift persists, the alarm is raised again."""

    url: str = option(default="http://127.0.0.1:10477", help="Address of the running ragwatch.")
    token_file: Path | None = TOKEN_FILE
    quantity: str | None = option(help="Only this quantity or traffic signal.")
    route: str | None = option(help="Only this route.")
    judge: str | None = option(
        help="Acknowledge the drift of this judge; its last reading of the anchors becomes the reference."
    )
    renew: bool = option(help="Also learn a new baseline: the change is intended.")
