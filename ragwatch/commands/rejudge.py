"""`ragwatch rejudge`: has stored answers read by another configured judge, within its budget."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from ragwatch.commands.event_loop import run_async
from ragwatch.commands.given import require_route
from ragwatch.commands.options.people import RejudgeArguments
from ragwatch.commands.rejudge_plan import EXAMPLES, RejudgePlan, cost_of, describe, plan_of, require_other
from ragwatch.commands.rejudge_readings import RejudgeTotals, read_answers, reading
from ragwatch.commands.state_reader import state_reader
from ragwatch.commands.terminal import printable
from ragwatch.config import Config, JudgeConfig, load
from ragwatch.errors import ConfigError
from ragwatch.pipeline.rejudging import RejudgeRequest
from ragwatch.ports import RejudgeQuery
from ragwatch.telemetry import configure_logging
from ragwatch.web.samples import ParameterError, moment

NOTHING_TO_READ = 3
SOME_LEFT = 1


def rejudge(given: RejudgeArguments) -> int:
    """Have stored answers read by a judge. Returns 0, 3 if there are none, 1 if some could not be read."""
    configure_logging("error")
    config = load(given.path)
    config.require_texts("rejudging")
    judge, of = require_other(config, given.name, given.of)
    require_route(config, given.route)
    now = time.time()
    begin = _instant("--since", given.since, now)
    end = now if given.until is None else _instant("--until", given.until, now)
    if begin >= end:
        raise ConfigError(
            f"--until {given.until or 'now'}: is not later than --since {given.since}; give an earlier --since"
        )
    with state_reader(config) as reader:
        plan = plan_of(reader, RejudgeQuery(given.name, of, begin, end, given.route), given.size)
        examples = reader.draws_of(of, plan.keys[:EXAMPLES])
    cost = cost_of(config, judge, examples, len(plan.keys))
    for line in describe(plan, cost, judge.place.budget.caps, now):
        click.echo(printable(line), err=True)
    if not plan.keys:
        click.echo("nothing to read; choose an earlier --since, or answers of another judge with --of", err=True)
        return NOTHING_TO_READ
    if given.dry_run:
        return 0
    if cost.is_paid and not given.yes:
        _confirm()
    return _read(config, judge, plan, given.url, given.token_file)


def _instant(option: str, text: str, now: float) -> float:
    try:
        at = float(moment({option: text}, option, now) or 0.0)
        datetime.fromtimestamp(at, UTC)
    except ParameterError as error:
        raise ConfigError(str(error)) from error
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigError(
            f"{option} {text}: is not in the years 1 to 9999; write 30d (ago), or 2026-01-31T12:00"
        ) from error
    return at


def _confirm() -> None:
    """Ask whether to spend that; `ConfigError` if there is nobody to ask."""
    if not sys.stdin.isatty():
        raise ConfigError("--yes: is missing; this costs money, and there is no terminal to ask on")
    click.confirm("Read them?", abort=True, err=True)


def _read(config: Config, judge: JudgeConfig, plan: RejudgePlan, url: str | None, token_file: Path | None) -> int:
    request = RejudgeRequest(plan.query.of, plan.share, (), plan.charted_before)
    totals = RejudgeTotals()
    console = Console(stderr=True)

    async def work() -> None:
        with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task("reading", total=len(plan.keys))
            async with reading(config, judge, url, token_file) as read:
                await read_answers(plan.keys, request, read, totals, lambda done: bar.update(task, completed=done))

    try:
        run_async(work())
    finally:
        _summarise(totals, plan)
    return SOME_LEFT if totals.failed or totals.ended else 0


def _summarise(totals: RejudgeTotals, plan: RejudgePlan) -> None:
    click.echo(f"{totals.stored} answers read by {plan.query.judge}")
    if totals.skipped:
        click.echo(f"{totals.skipped} left out: read or erased meanwhile")
    if totals.failed:
        reasons = ", ".join(f"{reason} {number}" for reason, number in totals.failed.most_common())
        click.echo(printable(f"{totals.failed.total()} could not be read: {reasons}; the last one: {totals.why}"))
    if totals.ended:
        click.echo(printable(f"ended early: {totals.ended}"), err=True)
    left = len(plan.keys) - totals.done
    if left > 0:
        click.echo(f"{left} are left; run the same command again to continue", err=True)
