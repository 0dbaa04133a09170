"""`ragwatch judge`: judges samples from files and prints one verdict per line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from ragwatch.commands.event_loop import run_async
from ragwatch.commands.input_files import FileOptions, InputFiles
from ragwatch.commands.options.samples import JudgeArguments
from ragwatch.commands.samples import SampleFiles, judge_named, read_all
from ragwatch.config import load
from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.gate import score_of
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.core.verdict_line import verdict_line
from ragwatch.model.quantities import Quantity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.telemetry import configure_logging


def judge(given: JudgeArguments) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict per line (JSON) on stdout."""
    configure_logging("error")
    config = None if given.path is None else load(given.path)
    sample_files = SampleFiles(InputFiles(config, FileOptions(given.format_name, given.source)))
    streams = given.files or (sys.stdin.buffer,)
    verdicts = run_async(read_all(sample_files, streams, judge_named(config, given.name, given.settings), _print))
    _summarise(verdicts, sample_files)
    return 1 if sample_files.rejected else 0


def _print(verdict: Verdict) -> None:
    click.echo(json.dumps(verdict_line(verdict)))


def _summarise(verdicts: Sequence[Verdict], files: SampleFiles) -> None:
    table = Table("quantity", "mean", "95 % interval", "answers", title=f"{len(verdicts)} samples")
    judged = [verdict for verdict in verdicts if isinstance(verdict, Judged)]
    by_reference = tuple(ReferenceQuantity) if any(verdict.draw.sample.reference for verdict in judged) else ()
    criteria = dict.fromkeys(name for verdict in judged for name in verdict.scores if name.is_criterion)
    for quantity in (*Quantity, *criteria, *by_reference):
        scores = [score_of(verdict, quantity) for verdict in judged]
        estimate = hajek.estimate(Addends.of((score, 1.0) for score in scores if score is not None))
        if estimate is None:
            table.add_row(quantity, "unknown", "", "0")
        else:
            interval = f"{estimate.low:.3f} .. {estimate.high:.3f}"
            table.add_row(quantity, f"{estimate.value:.3f}", interval, str(estimate.n))
    console = Console(stderr=True)
    console.print(table)
    unjudged = Counter(str(verdict.reason) for verdict in verdicts if not isinstance(verdict, Judged))
    routes = Counter(verdict.draw.route for verdict in verdicts if verdict.draw.route)
    stages = Counter(str(verdict.stage or "unknown") for verdict in judged)
    waiting = Counter({"without the others of their request": files.waiting} if files.waiting else {})
    lines = (
        ("rejected", files.rejected),
        ("fields left out", files.lost),
        ("lines skipped", files.skipped),
        ("parts", waiting),
    )
    for title, counts in (("stage", stages), ("route", routes), ("unjudged", unjudged), *lines):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
