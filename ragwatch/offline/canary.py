"""`ragwatch canary`: runs every canary once and shows which failed and why; `canary suggest` proposes new ones."""

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ragwatch.config import Config, load
from ragwatch.config.canaries import SuiteConfig
from ragwatch.daemon.components import answers_of, suite_of
from ragwatch.daemon.process import readable_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.offline.judge import build_judge
from ragwatch.offline.state_reader import MAX_VERDICTS, labels_by_key, last_index_event, state_reader, verdicts
from ragwatch.offline.suggest import propose, suite_text, summary_lines
from ragwatch.pipeline.canaries import KIND, CanarySuite, levels_name
from ragwatch.ports import Judge, Query
from ragwatch.statistics.canary.answer import GOLD, RETRIEVED, answers_line
from ragwatch.statistics.canary.history import levels_of, report_of, with_levels
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.statistics.canary.report import CanaryOutcome, CanaryReport, SuiteReport, suite_line
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import suites_of, write_new
from ragwatch.terminal.options.offline import CanaryArguments, SuggestArguments
from ragwatch.terminal.output import compact_table, escape_line, figure, say

DEGRADED, FAILED_QUERIES, NOT_ENOUGH_DATA = 1, 3, 3
SCORES_FELL = (
    "all scores of the retriever fell by more than their own spread, so health is 0; was the embedding changed?"
)
_SHOWN_CHARS = 120  # of an answer
SHOWN_BY_K = (CanaryMetric.RECALL, CanaryMetric.PRECISION, CanaryMetric.F1, CanaryMetric.NDCG)


def canary(given: CanaryArguments) -> int:
    """Run every canary once, now, and judge the answers of suites with a `judge`. Nothing is stored."""
    config = load(given.path)
    chosen = suites_of(config, *given.names)
    reports = [_with_levels(config, report) for report in run_async(_judged_run(config, chosen))]
    if given.as_json:
        click.echo(json.dumps({"suites": [suite_line(report) for report in reports]}))
    else:
        for report in reports:
            _show(report)
    if any(report.degraded or report.faults for report in reports):
        return DEGRADED
    unread = any(answer.unread for report in reports for answer in report.answers)
    return FAILED_QUERIES if unread or any(report.failures for report in reports) else 0


async def _judged_run(config: Config, chosen: Iterable[SuiteConfig]) -> list[SuiteReport]:
    """Run the suites with judges of their own, whose budgets are in memory, and close these."""
    secret = readable_secret(config.settings.state)
    configured = {judge.place.name: judge for judge in config.judges}
    judges: dict[str, Judge] = {}

    def judge_of(name: str) -> Judge:
        if name not in judges:
            judges[name] = build_judge(configured[name], config.settings.criterion_rules)
        return judges[name]

    try:
        return await run_suites(
            [suite_of(suite, secret, answers_of(config, suite.place, judge_of)) for suite in chosen]
        )
    finally:
        for judge in judges.values():
            await judge.close()


def _with_levels(config: Config, report: SuiteReport) -> SuiteReport:
    """Compare the scores with those that the daemon has seen, if there is a state that can be read."""
    with suppress(ConfigError, StoreError), state_reader(config) as reader:
        report, _ = with_levels(report, levels_of(reader.recall(levels_name(report.suite))))
    return report


def _show(suite: SuiteReport) -> None:
    console = Console(soft_wrap=True)
    title = f"suite {suite.suite}: {len(suite.reports)} canaries"
    summary = Table("k", "recall", "precision", "F1", "NDCG", title=title)
    for k in suite.ks:
        summary.add_row(str(k), *(figure(suite.mean(metric, k)) for metric in SHOWN_BY_K))
    console.print(summary)
    console.print(
        f"MRR {figure(suite.mean(CanaryMetric.MRR))}"
        f"   recall@{suite.cutoff} {figure(suite.mean(CanaryMetric.RECALL))}"
        f"   coverage {figure(suite.mean(CanaryMetric.COVERAGE))}   health {figure(suite.mean(CanaryMetric.HEALTH))}"
    )
    if suite.scores_fell:
        console.print(f"[red]{SCORES_FELL}[/]")
    _show_categories(console, suite)
    _show_answers(console, suite)
    failed = [report for report in suite.reports if not report.success]
    if not failed:
        wrong = " to retrieve what it expects" if suite.faults else ""
        console.print(f"[green]every canary succeeded{wrong}[/]")
        return
    table = Table("canary", "outcome", "reason")
    for report in failed:
        colour = "red" if report.degraded else "yellow"
        table.add_row(escape_line(report.canary.name), f"[{colour}]{report.outcome}[/]", escape_line(_reason(report)))
    console.print(table)


def _show_answers(console: Console, suite: SuiteReport) -> None:
    line = answers_line(suite.answers)
    if line is None:
        return
    right, own = (figure(line["correctness"][contexts]) for contexts in (GOLD, RETRIEVED))
    console.print(f"answers: correctness {right} with the expected contexts, {own} with the retrieved ones")
    for verdict in line["verdict"]:
        console.print(f"[red]{escape_line(verdict)}[/]")
    for why, count in line["not_judged"].items():
        console.print(f"[yellow]{count} answers not judged: {escape_line(why)}[/]")
    if suite.faults:
        table = Table("canary", "stage at fault", "answer with the expected contexts", "with the retrieved ones")
        texts = {(answer.canary, answer.contexts): answer.answer or "" for answer in suite.answers}
        for name, fault in suite.faults.items():
            answers = (escape_line(texts.get((name, contexts), "")[:_SHOWN_CHARS]) for contexts in (GOLD, RETRIEVED))
            table.add_row(escape_line(name), str(fault), *answers)
        console.print(table)


def _show_categories(console: Console, suite: SuiteReport) -> None:
    k, parts = suite.cutoff, suite.by_category
    if len(parts) < 2:
        return
    columns = (f"{name}@{k}" for name in ("recall", "precision", "F1", "NDCG"))
    table = compact_table("category", "canaries", "degraded", *columns, "MRR")
    for category, part in parts.items():
        means = (figure(part.mean(metric)) for metric in (*SHOWN_BY_K, CanaryMetric.MRR))
        table.add_row(str(category), str(len(part.reports)), str(len(part.degraded)), *means)
    console.print(table)


def _reason(report: CanaryReport) -> str:
    if report.failure is not None:
        return failure_of(report)
    if report.canary.negative:
        limit, hits = report.canary.min_relevance_score, report.retrieved.hits
        if limit is not None:
            return f"score {hits[0].score} at rank 1, max_relevance_score {limit}"
        return f"{len(hits)} passages returned, none expected; give `max_relevance_score` if it always returns k"
    if report.outcome is CanaryOutcome.MISSING_FROM_TOP_K:
        pairs = zip(report.canary.expected, report.ranks, strict=True)
        missing = [expected.label for expected, rank in pairs if rank is None]
        first_hits = [hit.id or (hit.text or "?")[:40] for hit in report.retrieved.hits[:3]]
        return f"not in the first {report.cutoff}: {', '.join(missing)}; top results: {', '.join(first_hits) or 'none'}"
    first = min(rank for rank in report.ranks if rank is not None)
    score = report.retrieved.hits[first - 1].score
    return f"score {score} at rank {first}, min_relevance_score {report.canary.min_relevance_score}"


def failure_of(report: CanaryReport) -> str:
    """Why a query failed."""
    return f"{report.failure}: {report.retrieved.detail}" if report.retrieved.detail else str(report.failure)


def built_suites(config: Config, *names: str) -> list[CanarySuite]:
    """Return the suites of these names, or all, ready to be run without judges."""
    secret = readable_secret(config.settings.state)
    chosen = (suite for suite in config.canaries if not names or suite.place.suite in names)
    return [suite_of(suite, secret) for suite in chosen]


async def run_suites(suites: Sequence[CanarySuite]) -> list[SuiteReport]:
    """Run suites one after the other, with a progress bar on a terminal, and close their probes."""
    console = Console(stderr=True)
    reports = []
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        for suite in progress.track(suites, description="running canaries"):
            try:
                reports.append(await suite.ask(time.time))
            finally:
                await suite.probe.close()
    return reports


def stored_runs(config: Config, names: Iterable[str]) -> list[SuiteReport]:
    """Return the last stored run of each suite; suites that never ran, or whose run is damaged, are left out."""
    with state_reader(config) as reader:
        runs = [run for name in names for run in reader.runs(KIND, name, 1)]
    reports = (report_of(run.name, run.body) for run in runs)
    return [report for report in reports if report is not None]


def suggest(given: SuggestArguments) -> int:
    """Propose canaries from judged traffic, with the contexts that people or the judge found right."""
    config = load(given.path)
    config.require_texts("canary suggest")
    queries = [canary.query for suite in config.canaries for canary in suite.canaries]
    judge = config.judges[0].place.name  # one verdict per answer, by the judge that reads all of them
    judged = verdicts(config, Query(judge=judge, outcome="judged", limit=MAX_VERDICTS))
    proposal = propose(
        ((stored.verdict, stored.sample) for stored in judged),
        known=queries,
        limit=given.limit,
        labels=labels_by_key(config),
        indexed=f"{given.indexed:%Y-%m-%d}" if given.indexed is not None else last_index_event(config),
    )
    if not proposal.suggestions:
        say("nothing to propose yet: no question has an answer that its contexts fully support")
        return NOT_ENOUGH_DATA
    if given.out is None:
        click.echo(suite_text(proposal), nl=False)
        return 0
    write_new(given.out, suite_text(proposal))
    say(f"wrote {len(proposal.suggestions)} suggestions to {given.out}; review each before it becomes a canary")
    for line in summary_lines(proposal):
        say(line)
    return 0
