"""`ragwatch judge`: JSONL in, one verdict a line out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import BinaryIO

import click
from rich.console import Console
from rich.table import Table

from ragwatch import formats
from ragwatch.commands.samples import Rows, judge_of_kind, read_all
from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.scores import Quantity
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.core.verdict_line import verdict_line
from ragwatch.judges import KINDS
from ragwatch.telemetry import configure_logging


@click.command()
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--judge", "kind", default="lexical", show_default=True, type=click.Choice(sorted(KINDS)), help="Kind.")
@click.option(
    "--format",
    "format_name",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", *formats.FORMATS]),
    help="Shape of the rows.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the judge, as in YAML.")
def judge(files: Sequence[BinaryIO], kind: str, format_name: str, settings: Sequence[str]) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict JSON a line on stdout.

    A summary goes to stderr. Exit code 1 when a row could not be read as a sample.
    """
    configure_logging("error")
    rows = Rows(format_name)
    streams = files or (sys.stdin.buffer,)
    verdicts = asyncio.run(read_all(rows, streams, judge_of_kind(kind, settings), _print))
    _summarise(verdicts, rows.rejected)
    return 1 if rows.rejected else 0


def _print(verdict: Verdict) -> None:
    click.echo(json.dumps(verdict_line(verdict)))


def _summarise(verdicts: Sequence[Verdict], rejected: Counter[str]) -> None:
    table = Table("quantity", "mean", "95 % interval", "answers", title=f"{len(verdicts)} samples")
    for quantity in Quantity:
        scores = [each.scores[quantity] for each in verdicts if isinstance(each, Judged)]
        found = hajek.estimate(Addends.of((score, 1.0) for score in scores if score is not None))
        if found is None:
            table.add_row(quantity, "unknown", "", "0")
        else:
            table.add_row(quantity, f"{found.value:.3f}", f"{found.low:.3f} .. {found.high:.3f}", str(found.n))
    console = Console(stderr=True)
    console.print(table)
    unjudged = Counter(str(each.reason) for each in verdicts if not isinstance(each, Judged))
    stages = Counter(str(each.stage or "unknown") for each in verdicts if isinstance(each, Judged))
    for title, counts in (("stage", stages), ("unjudged", unjudged), ("rejected", rejected)):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
