"""`ragwatch canary`: every canary once, now; a table that says which failed and why."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ragwatch.commands.terminal import shown
from ragwatch.config import load
from ragwatch.core.canary.report import CanaryOutcome, CanaryReport, SuiteReport, suite_line
from ragwatch.daemon.suites import suite_of
from ragwatch.errors import ConfigError
from ragwatch.pipeline.canaries.loop import CanarySuite
from ragwatch.telemetry import configure_logging

DEGRADED, UNASKED = 1, 3


def canary(*, path: Path, wanted: Sequence[str], as_json: bool) -> int:
    """Run every canary once, now. Nothing is stored."""
    configure_logging("error")
    config = load(path)
    known = [each.place.suite for each in config.canaries]
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--suite {name}: is not configured; use one of: {', '.join(known) or 'none is'}")
    suites = [suite_of(each) for each in config.canaries if not wanted or each.place.suite in wanted]
    if not suites:
        raise ConfigError("canaries: none is configured; add a suite such as {suite: docs, file: ..., probe: {...}}")
    found = asyncio.run(_run(suites))
    if as_json:
        click.echo(json.dumps({"suites": [suite_line(each) for each in found]}))
    else:
        for each in found:
            _show(each)
    if any(each.degraded for each in found):
        return DEGRADED
    return UNASKED if any(each.failures for each in found) else 0


async def _run(suites: Sequence[CanarySuite]) -> list[SuiteReport]:
    console = Console(stderr=True)
    found = []
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        for suite in progress.track(suites, description="asking"):
            try:
                found.append(await suite.ask(time.time))
            finally:
                await suite.probe.close()
    return found


def _show(found: SuiteReport) -> None:
    console = Console(soft_wrap=True)
    summary = Table("k", "recall", "precision", "NDCG", title=f"suite {found.suite}: {len(found.reports)} canaries")
    for k in found.ks:
        summary.add_row(str(k), *(_figure(each(k)) for each in (found.recall, found.precision, found.ndcg)))
    console.print(summary)
    console.print(
        f"MRR {_figure(found.mrr)}   recall@{found.cutoff} {_figure(found.recall(found.cutoff))}"
        f"   coverage {_figure(found.coverage)}   health {_figure(found.health)}"
    )
    bad = [each for each in found.reports if not each.success]
    if not bad:
        console.print("[green]every canary succeeded[/]")
        return
    table = Table("canary", "outcome", "why")
    for each in bad:
        colour = "red" if each.degraded else "yellow"
        table.add_row(shown(each.canary.name), f"[{colour}]{each.outcome}[/]", shown(_why(each)))
    console.print(table)


def _why(found: CanaryReport) -> str:
    if found.failure is not None:
        return f"{found.failure}: {found.retrieved.detail}" if found.retrieved.detail else str(found.failure)
    if found.canary.negative:
        return f"{len(found.retrieved.hits)} came back, nothing should"
    if found.outcome is CanaryOutcome.MISSING_FROM_TOP_K:
        pairs = zip(found.canary.expected, found.ranks, strict=True)
        gone = [expected.label for expected, rank in pairs if rank is None]
        came = [hit.id or (hit.text or "?")[:40] for hit in found.retrieved.hits[:3]]
        return f"not in the first {found.cutoff}: {', '.join(gone)}; first came {', '.join(came) or 'nothing'}"
    first = min(rank for rank in found.ranks if rank is not None)
    score = found.retrieved.hits[first - 1].score
    return f"score {score} at rank {first}, min_relevance_score {found.canary.min_relevance_score}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
