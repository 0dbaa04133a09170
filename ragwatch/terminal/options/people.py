"""Options and help of the commands for annotators and for readings by another judge: label, calibrate, rejudge."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, TextIO

import click

from ragwatch.terminal.options.lazy import CONFIG_FILE, OUT, TOKEN_FILE, URL, Arguments, option

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
    count: int = option(default=20, type=click.IntRange(1, MAX_ANSWERS), help="Number of answers to label.")
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
    relevance: Path | None = option(
        type=OUT, help="Judge the relevance of contexts instead; judgements are kept in this file."
    )
    suite: str | None = option(
        help="--relevance: canary suite whose queries and probe are used; default: the first one."
    )
    corpus: Path | None = option(
        type=OUT, help="--relevance: all contexts (JSONL with id and text), for random negatives."
    )
    depth: int | None = option(type=click.IntRange(1), help="--relevance: contexts to retrieve; default: 5 times k.")
    below: int = option(
        default=3, type=click.IntRange(0), help="--relevance: contexts to judge from each band of ranks below k."
    )
    negatives: int = option(
        default=3, type=click.IntRange(0), help="--relevance: contexts to judge that the retriever did not return."
    )
    qrels: Path | None = option(
        type=OUT, help="--relevance: write the judgements as qrels (TREC) instead of labelling."
    )
    suite_out: Path | None = option(
        type=OUT, help="--relevance: write them as a canary suite (.jsonl) instead of labelling."
    )


class CalibrateArguments(Arguments, work="ragwatch.commands.calibrate:calibrate"):
    """Compare a judge with labels: agreement, kappa, sensitivity, specificity, reliability, largest disagreements.

    Exit code 3 when there are too few labels for a conclusion.
    """

    path: Path = CONFIG_FILE
    name: str | None = option("--judge", help="Name of the judge; default: the first one.")
    as_json: bool = option("--json", help="Print JSON instead of tables.")
    out: Path | None = option(type=OUT, help="Also write the report as JSON to this file.")
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
    size: int | None = option("--sample", type=click.IntRange(1), metavar="N", help="Only N of them, chosen at random.")
    dry_run: bool = option(help="Only say how many answers there are, and what it costs.")
    yes: bool = option(help="Do not ask before money is spent.")
    url: str | None = URL
    token_file: Path | None = TOKEN_FILE
