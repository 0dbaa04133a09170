"""Options and help of the commands for people who look at answers, label them, or have them read again."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, TextIO

import click

from ragwatch.terminal.options import CONFIG, CONFIG_FILE, TOKEN_FILE, URL, Arguments, IntegerRange, option

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


class McpArguments(Arguments, work="ragwatch.commands.mcp:mcp"):
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
    out: Path | None = option("--out", help="File to write; default: standard output.")
    url: str | None = _URL
    path: Path | None = _ADDRESS_CONFIG
    token_file: Path | None = TOKEN_FILE


class OpenArguments(Arguments, work="ragwatch.commands.looking:open_worst"):
    """Print the address of the worst answer of the last hour, such as for `xdg-open "$(ragwatch open)"`.

    The worst one has the lowest faithfulness of those with a stage at fault; with --quantity, the worst score of it.
    Standard error says what is wrong with it. A running ragwatch is asked over HTTP (right `pages`).

    Exit code 3 when no answer of that time fails.
    """

    url: str | None = _URL
    path: Path | None = _ADDRESS_CONFIG
    token_file: Path | None = TOKEN_FILE
    quantity: str | None = option(
        metavar="QUANTITY", help="The worst score of this quantity; default: any stage at fault."
    )
    route: str | None = option(metavar="ROUTE", help="Only answers of this route.")
    since: str = option(metavar="TIME", default="1h", help="Answers since then, such as 15m or 7d.")


class AcknowledgeArguments(Arguments, work="ragwatch.commands.looking:acknowledge"):
    """Acknowledge drift alarms. Evidence restarts at 0; if the drift persists, the alarm is raised again."""

    url: str | None = _URL
    path: Path | None = _ADDRESS_CONFIG
    token_file: Path | None = TOKEN_FILE
    quantity: str | None = option(help="Only this quantity or traffic signal.")
    route: str | None = option(help="Only this route.")
    judge: str | None = option(
        help="Acknowledge the drift of this judge; its last reading of the anchors becomes the reference."
    )
    renew: bool = option(help="Also learn a new baseline: the change is intended.")


MAX_ANSWERS = 200  # shown in one session


class LabelArguments(Arguments, work="ragwatch.commands.label:label"):
    """Label answers, so that the estimates can be corrected for errors of the judges.

    Works with or without a running ragwatch. Answers are drawn with a known probability, more often where the judges
    are unsure; the verdicts of the judges are not shown.

    With --relevance, contexts are judged for the queries of a canary suite: the first k of the retriever, a sample from
    below, and random negatives. Shown are recall with an interval, the share of relevant contexts outside the first k,
    and the agreement of annotators.
    """

    path: Path = CONFIG_FILE
    annotator: str | None = option(
        metavar="NAME", help="Your name; labels are stored under it. Not needed with --revoke."
    )
    count: int = option(default=20, type=IntegerRange(1, MAX_ANSWERS), help="Number of answers to label.")
    whole: bool = option(help="Label each answer as a whole, not claim by claim.")
    out: TextIO | None = option(
        "--export", type=click.File("w", encoding="utf-8"), help="Write all labels as JSONL; - is stdout."
    )
    rows: BinaryIO | None = option("--import", type=click.File("rb"), help="Read labels from JSONL; - is stdin.")
    revoke: str | None = option(
        metavar="KEY",
        help="Take the labels on this answer back: those of --annotator, or of everybody. They are kept, and do "
        "not count.",
    )
    url: str | None = URL
    token_file: Path | None = TOKEN_FILE
    relevance: Path | None = option(help="Judge the relevance of contexts instead; judgements are kept in this file.")
    suite: str | None = option(
        help="--relevance: canary suite whose queries and probe are used; default: the first one."
    )
    corpus: Path | None = option(help="--relevance: all contexts (JSONL with id and text), for random negatives.")
    depth: int | None = option(type=IntegerRange(1), help="--relevance: contexts to retrieve; default: 5 times k.")
    below: int = option(
        default=3, type=IntegerRange(0), help="--relevance: contexts to judge from each band of ranks below k."
    )
    negatives: int = option(
        default=3, type=IntegerRange(0), help="--relevance: contexts to judge that the retriever did not return."
    )
    qrels: Path | None = option(help="--relevance: write the judgements as qrels (TREC) instead of labelling.")
    suite_out: Path | None = option(help="--relevance: write them as a canary suite (.jsonl) instead of labelling.")


class CalibrateArguments(Arguments, work="ragwatch.commands.calibrate:calibrate"):
    """Compare a judge with labels: agreement, kappa, sensitivity, specificity, reliability, largest disagreements.

    Exit code 3 when there are too few labels for a conclusion.
    """

    path: Path = CONFIG_FILE
    name: str | None = option("--judge", help="Name of the judge; default: the first one.")
    as_json: bool = option("--json", help="Print JSON instead of tables.")
    out: Path | None = option(help="Also write the report as JSON to this file.")
    url: str | None = URL
    token_file: Path | None = TOKEN_FILE


class RejudgeArguments(Arguments, work="ragwatch.commands.rejudge:rejudge"):
    """Have stored answers read by another judge, such as one that was not configured when they were given.

    It reads within its budget, which its other readings share, and keeps one verdict on each answer. Answers that it
    has read are left out, so that a second run continues an interrupted one; what it cannot read is counted, and tried
    again by the next run. Needs `store.texts: all`.

    The verdicts are on the pages, in searches, exports and causes. Gauges, alerts, drift detectors and counters of
    scores do not count them, since these answers were not assigned to the judge; charts gain those from before its
    first answer.

    A running ragwatch is asked over HTTP (right `write`) to read them, unless its workers share a PostgreSQL database.

    Exit code 1 when some could not be read, 3 when there is nothing to read.
    """

    path: Path = CONFIG_FILE
    name: str = option("--judge", metavar="JUDGE", help="Name of the configured judge that reads.")
    of: str | None = option(
        metavar="JUDGE",
        help="Read answers that this judge was assigned, configured or not; default: the first other that "
        "follows none.",
    )
    since: str = option(metavar="TIME", default="7d", help="Answers since then, such as 2026-01-31, or 7d.")
    until: str | None = option(metavar="TIME", help="Answers before then; default: now.")
    route: str | None = option(metavar="ROUTE", help="Only answers of this route.")
    size: int | None = option("--sample", type=IntegerRange(1), metavar="N", help="Only N of them, chosen at random.")
    dry_run: bool = option(help="Only say how many answers there are, and what it costs.")
    yes: bool = option(help="Do not ask before money is spent.")
    url: str | None = URL
    token_file: Path | None = TOKEN_FILE
