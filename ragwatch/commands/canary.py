"""`ragwatch canary`: runs every canary once and shows which failed and why."""

from __future__ import annotations

import json

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ragwatch.commands.event_loop import run_async
from ragwatch.commands.options.samples import CanaryArguments
from ragwatch.commands.suite_runs import run_suites
from ragwatch.commands.terminal import escape_line
from ragwatch.config import load
from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.core.canary.report import CanaryOutcome, CanaryReport, SuiteReport, suite_line
from ragwatch.daemon.state_secret import readable_secret
from ragwatch.daemon.suites import suite_of
from ragwatch.errors import ConfigError
from ragwatch.telemetry import configure_logging

DEGRADED, FAILED_QUERIES = 1, 3
SHOWN_BY_K = (CanaryMetric.RECALL, CanaryMetric.PRECISION, CanaryMetric.F1, CanaryMetric.NDCG)


def canary(given: CanaryArguments) -> int:
    """Run every canary once, now. Nothing is stored."""
    configure_logging("error")
    config = load(given.path)
    configured = [suite.place.suite for suite in config.canaries]
    for name in given.names:
        if name not in configured:
            raise ConfigError(f"--suite {name}: is not configured; use one of: {', '.join(configured) or 'none is'}")
    secret = readable_secret(config.settings.state)
    chosen = [suite for suite in config.canaries if not given.names or suite.place.suite in given.names]
    suites = [suite_of(suite, secret) for suite in chosen]
    if not suites:
        raise ConfigError("canaries: none is configured; add a suite such as {suite: docs, file: ..., probe: {...}}")
    reports = run_async(run_suites(suites))
    if given.as_json:
        click.echo(json.dumps({"suites": [suite_line(report) for report in reports]}))
    else:
        for report in reports:
            _show(report)
    if any(report.degraded for report in reports):
        return DEGRADED
    return FAILED_QUERIES if any(report.failures for report in reports) else 0


def _show(suite: SuiteReport) -> None:
    console = Console(soft_wrap=True)
    title = f"suite {suite.suite}: {len(suite.reports)} canaries"
    summary = Table("k", "recall", "precision", "F1", "NDCG", title=title)
    for k in suite.ks:
        summary.add_row(str(k), *(_figure(suite.mean(metric, k)) for metric in SHOWN_BY_K))
    console.print(summary)
    console.print(
        f"MRR {_figure(suite.mean(CanaryMetric.MRR))}"
        f"   recall@{suite.cutoff} {_figure(suite.mean(CanaryMetric.RECALL))}"
        f"   coverage {_figure(suite.mean(CanaryMetric.COVERAGE))}   health {_figure(suite.mean(CanaryMetric.HEALTH))}"
    )
    _show_categories(console, suite)
    failed = [report for report in suite.reports if not report.success]
    if not failed:
        console.print("[green]every canary succeeded[/]")
        return
    table = Table("canary", "outcome", "reason")
    for report in failed:
        colour = "red" if report.degraded else "yellow"
        table.add_row(escape_line(report.canary.name), f"[{colour}]{report.outcome}[/]", escape_line(_reason(report)))
    console.print(table)


def _show_categories(console: Console, suite: SuiteReport) -> None:
    """Show the figures by category, if the suite has more than one."""
    k, parts = suite.cutoff, suite.by_category
    if len(parts) < 2:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # eight columns fit into 80 characters
    for name in ("category", "canaries", "degraded", f"recall@{k}", f"precision@{k}", f"F1@{k}", f"NDCG@{k}", "MRR"):
        table.add_column(name, no_wrap=True)
    for category, part in parts.items():
        figures = (part.mean(metric) for metric in (*SHOWN_BY_K, CanaryMetric.MRR))
        table.add_row(str(category), str(len(part.reports)), str(len(part.degraded)), *map(_figure, figures))
    console.print(table)


def _reason(report: CanaryReport) -> str:
    if report.failure is not None:
        return f"{report.failure}: {report.retrieved.detail}" if report.retrieved.detail else str(report.failure)
    if report.canary.negative:
        return f"{len(report.retrieved.hits)} passages returned, none expected"
    if report.outcome is CanaryOutcome.MISSING_FROM_TOP_K:
        pairs = zip(report.canary.expected, report.ranks, strict=True)
        missing = [expected.label for expected, rank in pairs if rank is None]
        first_hits = [hit.id or (hit.text or "?")[:40] for hit in report.retrieved.hits[:3]]
        return f"not in the first {report.cutoff}: {', '.join(missing)}; top results: {', '.join(first_hits) or 'none'}"
    first = min(rank for rank in report.ranks if rank is not None)
    score = report.retrieved.hits[first - 1].score
    return f"score {score} at rank {first}, min_relevance_score {report.canary.min_relevance_score}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
