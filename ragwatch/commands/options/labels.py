"""Options and help of the commands for annotators and on-call engineers: label, rejudge, calibrate, open ..."""

from __future__ import annotations

import click

from ragwatch.commands.options.lazy import CONFIG, OUT, lazy_command

MAX_ANSWERS = 200  # shown in one session
TOKEN_FILE = click.option(
    "--token-file",
    type=OUT,
    help="File of the bearer token; default: $RAGWATCH_TOKEN_FILE, or the token in $RAGWATCH_TOKEN.",
)


@lazy_command("ragwatch.commands.label:label")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--annotator", metavar="NAME", help="Your name; labels are stored under it. Not needed with --revoke.")
@click.option(
    "--count", default=20, show_default=True, type=click.IntRange(1, MAX_ANSWERS), help="Number of answers to label."
)
@click.option("--whole", is_flag=True, help="Label each answer as a whole, not claim by claim.")
@click.option("--export", "out", type=click.File("w", encoding="utf-8"), help="Write all labels as JSONL; - is stdout.")
@click.option("--import", "rows", type=click.File("rb"), help="Read labels from JSONL; - is stdin.")
@click.option(
    "--revoke",
    metavar="KEY",
    help="Take the labels on this answer back: those of --annotator, or of everybody. They are kept, and do not count.",
)
@click.option("--url", metavar="URL", help="Address of the running ragwatch; default: that of the configuration.")
@TOKEN_FILE
@click.option(
    "--relevance", type=OUT, help="Judge the relevance of contexts instead; judgements are kept in this file."
)
@click.option("--suite", help="--relevance: canary suite whose queries and probe are used; default: the first one.")
@click.option("--corpus", type=OUT, help="--relevance: all contexts (JSONL with id and text), for random negatives.")
@click.option("--depth", type=click.IntRange(1), help="--relevance: contexts to retrieve; default: 5 times k.")
@click.option(
    "--below",
    default=3,
    show_default=True,
    type=click.IntRange(0),
    help="--relevance: contexts to judge from each band of ranks below k.",
)
@click.option(
    "--negatives",
    default=3,
    show_default=True,
    type=click.IntRange(0),
    help="--relevance: contexts to judge that the retriever did not return.",
)
@click.option("--qrels", type=OUT, help="--relevance: write the judgements as qrels (TREC) instead of labelling.")
@click.option("--suite-out", type=OUT, help="--relevance: write them as a canary suite (.jsonl) instead of labelling.")
def label() -> None:
    """Label answers, so that the estimates can be corrected for errors of the judges.

    Works with or without a running ragwatch. Answers are drawn with a known probability, more often where the judges
    are unsure; the verdicts of the judges are not shown.

    With --relevance, contexts are judged for the queries of a canary suite: the first k of the retriever, a sample from
    below, and random negatives. Shown are recall with an interval, the share of relevant contexts outside the first k,
    and the agreement of annotators.
    """


@lazy_command("ragwatch.commands.rejudge:rejudge")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--judge", "name", required=True, metavar="JUDGE", help="Name of the configured judge that reads.")
@click.option(
    "--of",
    metavar="JUDGE",
    help="Read answers that this judge was assigned, configured or not; default: the first other that follows none.",
)
@click.option(
    "--since",
    metavar="TIME",
    default="7d",
    show_default=True,
    help="Answers since then, such as 2026-01-31, or 7d.",
)
@click.option("--until", metavar="TIME", help="Answers before then; default: now.")
@click.option("--route", metavar="ROUTE", help="Only answers of this route.")
@click.option("--sample", "size", type=click.IntRange(1), metavar="N", help="Only N of them, chosen at random.")
@click.option("--dry-run", is_flag=True, help="Only say how many answers there are, and what it costs.")
@click.option("--yes", is_flag=True, help="Do not ask before money is spent.")
@click.option("--url", metavar="URL", help="Address of the running ragwatch; default: that of the configuration.")
@TOKEN_FILE
def rejudge() -> None:
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


@lazy_command("ragwatch.commands.calibrate:calibrate")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--judge", "name", help="Name of the judge; default: the first one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--out", type=OUT, help="Also write the report as JSON to this file.")
@click.option("--url", metavar="URL", help="Address of the running ragwatch; default: that of the configuration.")
@TOKEN_FILE
def calibrate() -> None:
    """Compare a judge with labels: agreement, kappa, sensitivity, specificity, reliability, largest disagreements.

    Exit code 3 when there are too few labels for a conclusion.
    """


@lazy_command("ragwatch.commands.acknowledge:acknowledge")
@click.option("--url", default="http://127.0.0.1:10477", show_default=True, help="Address of the running ragwatch.")
@TOKEN_FILE
@click.option("--quantity", help="Only this quantity or traffic signal.")
@click.option("--route", help="Only this route.")
@click.option(
    "--judge", help="Acknowledge the drift of this judge; its last reading of the anchors becomes the reference."
)
@click.option("--renew", is_flag=True, help="Also learn a new baseline: the change is intended.")
def acknowledge() -> None:
    """Acknowledge drift alarms. Evidence restarts at 0; if the drift persists, the alarm is raised again."""


@lazy_command("ragwatch.commands.open_worst:open_worst", "open")
@click.option("--url", metavar="URL", help="Address of the running ragwatch; default: http://127.0.0.1:10477.")
@click.option("--config", "path", type=CONFIG, help="Configuration file (YAML), which names the address.")
@TOKEN_FILE
@click.option("--quantity", metavar="QUANTITY", help="The worst score of this quantity; default: any stage at fault.")
@click.option("--route", metavar="ROUTE", help="Only answers of this route.")
@click.option("--since", metavar="TIME", default="1h", show_default=True, help="Answers since then, such as 15m or 7d.")
def open_answer() -> None:
    """Print the address of the worst answer of the last hour, such as for `xdg-open "$(ragwatch open)"`.

    The worst one has the lowest faithfulness of those with a stage at fault; with --quantity, the worst score of it.
    Standard error says what is wrong with it. A running ragwatch is asked over HTTP (right `pages`).

    Exit code 3 when no answer of that time fails.
    """
