"""`ragwatch judge`: judges samples from files and prints one verdict per line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from ragwatch.config import load
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.offline.input_files import FileOptions, InputFiles
from ragwatch.offline.relevance import RelevanceCases
from ragwatch.offline.samples import SampleFiles, judge_named, read_all
from ragwatch.ports import Judge
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.relevance import CaseKind, RankedCase, ranking_metrics
from ragwatch.statistics.set_scores import score_of
from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.statistics.verdict_line import verdict_line
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.offline import JudgeArguments


def judge(given: JudgeArguments) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict per line (JSON) on stdout."""
    configure_logging("error")
    config = None if given.path is None else load(given.path)
    relevance = RelevanceCases()
    sample_files = SampleFiles(InputFiles(config, FileOptions(given.format_name, given.source)), relevance)
    reader = judge_named(config, given.name, given.settings)
    samples = sample_files.of_streams(given.files or (sys.stdin.buffer,))

    def show(verdict: Verdict) -> None:
        case = relevance.by_id.get(verdict.draw.sample.id)
        click.echo(json.dumps({**verdict_line(verdict), **({} if case is None else _ranking(case))}))

    verdicts = run_async(read_all(sample_files, samples, reader, show))
    for case in relevance.cases:
        if case.kind is CaseKind.RETRIEVAL:
            click.echo(json.dumps(_case_line(case, reader)))
    _summarise(verdicts, sample_files, relevance.cases)
    return 1 if sample_files.rejected else 0


def _ranking(case: RankedCase) -> dict[str, dict[str, float | None]]:
    ranking = case.ranking
    scores = {str(metric): None if ranking is None else metric.of(ranking) for metric in ranking_metrics()}
    return {"ranking": {name: None if score is None else round(score, 6) for name, score in scores.items()}}


def _case_line(case: RankedCase, judge: Judge) -> dict[str, object]:
    """The line of a row without an answer, of which no judge read anything."""
    return {
        "id": case.question.id,
        "outcome": "ranked",
        "reason": None if case.unknown is None else str(case.unknown),
        "scores": dict.fromkeys(map(str, Quantity)),
        **_ranking(case),
        "judge": {"kind": judge.kind, "version": judge.version},
    }


def _summarise(verdicts: Sequence[Verdict], files: SampleFiles, cases: Sequence[RankedCase]) -> None:
    alone = sum(case.kind is CaseKind.RETRIEVAL for case in cases)
    table = Table("quantity", "mean", "95 % interval", "rows", title=f"{len(verdicts) + alone} samples")
    judged = [verdict for verdict in verdicts if isinstance(verdict, Judged)]
    by_reference = tuple(ReferenceQuantity) if any(verdict.draw.sample.reference for verdict in judged) else ()
    criteria = dict.fromkeys(name for verdict in judged for name in verdict.scores if name.is_criterion)
    by_metric: dict[str, list[float | None]] = {
        quantity: [score_of(verdict, quantity) for verdict in judged]
        for quantity in (*Quantity, *criteria, *by_reference)
        if verdicts or not cases
    }
    rankings = [case.ranking for case in cases if case.ranking is not None]
    by_metric |= {metric: [metric.of(ranking) for ranking in rankings] for metric in ranking_metrics() if cases}
    for quantity, scores in by_metric.items():
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
    stages = Counter(verdict.counted_as or "unknown" for verdict in judged)
    faults = Counter(str(verdict.fault) for verdict in judged if verdict.fault is not None)
    waiting = Counter({"without the others of their request": files.waiting} if files.waiting else {})
    lines = (
        ("rejected", files.rejected),
        ("fields left out", files.lost),
        ("lines skipped", files.skipped),
        ("parts", waiting),
    )
    for title, counts in (
        ("stage", stages),
        ("top context ignored by fault", faults),
        ("route", routes),
        ("unjudged", unjudged),
        *lines,
    ):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
