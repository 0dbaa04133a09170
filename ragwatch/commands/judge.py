"""`ragwatch judge`: JSONL in, one verdict a line out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.table import Table

from ragwatch.commands.input_files import FileOptions, InputFiles
from ragwatch.commands.samples import SampleFiles, judge_named, read_all
from ragwatch.config import load
from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.scores import Quantity
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.core.verdict_line import verdict_line
from ragwatch.telemetry import configure_logging


def judge(
    *,
    files: Sequence[BinaryIO],
    path: Path | None,
    name: str | None,
    format_name: str | None,
    source: str | None,
    settings: Sequence[str],
) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict JSON a line on stdout."""
    configure_logging("error")
    config = None if path is None else load(path)
    rows = SampleFiles(InputFiles(config, FileOptions(format_name, source)))
    streams = files or (sys.stdin.buffer,)
    verdicts = asyncio.run(read_all(rows, streams, judge_named(config, name, settings), _print))
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
    routes = Counter(each.draw.route for each in verdicts if each.draw.route)
    stages = Counter(str(each.stage or "unknown") for each in verdicts if isinstance(each, Judged))
    told = (("stage", stages), ("route", routes), ("unjudged", unjudged), ("rejected", rejected))
    for title, counts in told:
        if counts:
            console.print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
