"""`ragwatch rejudge`: has stored answers read by another configured judge, within its budget."""

import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from ragwatch.commands.api_client import ApiClient, address_of, lock_owner, read_token, reply_of_this_version
from ragwatch.commands.rejudge_plan import EXAMPLES, RejudgePlan, cost_of, describe, plan_of, require_other
from ragwatch.config import Config, JudgeConfig, load
from ragwatch.daemon.runtime import built_judge
from ragwatch.errors import ConfigError
from ragwatch.offline.state_reader import is_shared, state_reader, writable_store
from ragwatch.pipeline.reading import RejudgeOutcome, RejudgeRequest, Rejudging, outcome_of
from ragwatch.ports import LoopContext, RejudgeQuery
from ragwatch.ports.capabilities import uses_batches
from ragwatch.statistics.verdict import UnjudgedReason
from ragwatch.telemetry import Telemetry
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import require_route
from ragwatch.terminal.options.people import RejudgeArguments
from ragwatch.terminal.output import counted, printable, say
from ragwatch.web.json_values import ParameterError
from ragwatch.web.samples import moment

ANSWERS_AT_ONCE = 16
MAX_RETRIES = 5  # in a row, without a verdict
MAX_WAIT_SECONDS = 30.0
_ENDS = (UnjudgedReason.OVER_BUDGET, UnjudgedReason.MISCONFIGURED)  # waiting for seconds does not help

Read = Callable[[RejudgeRequest, RejudgeOutcome], Awaitable[RejudgeOutcome]]
"""Has answers read. Adds to the outcome as far as it is known before the end, and returns the whole."""


@dataclass(slots=True)
class RejudgeTotals:
    """What became of all answers so far."""

    stored: int = 0  # number of verdicts that were stored
    skipped: int = 0  # number of answers that the judge has read meanwhile, or whose texts were deleted
    failed: Counter[str] = field(default_factory=Counter)  # number of answers that could not be read, by reason
    why: str = ""  # what happened last to one of them, for a person
    ended: str = ""  # why the rest cannot be read at present; empty if all were tried

    @property
    def done(self) -> int:
        """Number of answers that need not be tried again in this run."""
        return self.stored + self.skipped + self.failed.total()

    def add(self, outcome: RejudgeOutcome) -> None:
        """Add what became of some answers."""
        self.stored += outcome.stored
        self.skipped += outcome.skipped
        self.failed.update(outcome.failed)
        if outcome.failed:
            self.why = outcome.why


async def read_answers(
    keys: Sequence[str],
    request: RejudgeRequest,
    read: Read,
    totals: RejudgeTotals,
    advance: Callable[[int], None],
    *,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Have answers read, some at a time, and add to the totals. Ends early where the judge cannot read at present.

    The request holds what all have in common; `advance` takes the number of answers that are done so far.
    """
    retries = 0
    for start in range(0, len(keys), ANSWERS_AT_ONCE):
        left = tuple(keys[start : start + ANSWERS_AT_ONCE])
        while left:
            before = totals.done
            outcome = RejudgeOutcome()
            try:
                outcome = await read(replace(request, keys=left), outcome)
            finally:  # when it is cancelled, too
                totals.add(outcome)
            advance(totals.done)
            left = outcome.left
            retries = retries + 1 if left and totals.done == before else 0
            if left and (retries > MAX_RETRIES or any(reason in outcome.deferred for reason in _ENDS)):
                totals.ended = outcome.why
                return
            if left:
                await pause(min(MAX_WAIT_SECONDS, max(1.0, outcome.wait_seconds)))


@asynccontextmanager
async def reading(config: Config, judge: JudgeConfig, url: str | None, token_file: Path | None) -> AsyncIterator[Read]:
    """Open what has answers read.

    The running ragwatch is asked where one uses the state directory. Otherwise, and with a database that workers share,
    this process reads.
    """
    shared = is_shared(config.store)
    if url is not None or (not shared and lock_owner(config.settings.state) is not None):
        client = ApiClient(url or address_of(config), read_token(token_file))
        yield _asking(client, judge.place.name)
        return
    with writable_store(config.store, config.settings.state) as store:
        telemetry = Telemetry()
        if uses_batches(judge.options):  # a person waits
            judge = replace(judge, options=judge.options.model_copy(update={"urgency": "normal"}))
        built = built_judge(judge, config.settings, LoopContext(store, telemetry, time.time))
        rejudging = Rejudging(built, store=store, timeout_seconds=config.settings.judging.timeout, telemetry=telemetry)
        try:
            yield rejudging.read
        finally:
            await built.close()


def _asking(client: ApiClient, judge: str) -> Read:
    async def read(request: RejudgeRequest, _: RejudgeOutcome) -> RejudgeOutcome:
        before = request.charted_before
        body = {"judge": judge, **asdict(request), "charted_before": before if math.isfinite(before) else None}
        reply = await asyncio.to_thread(client.operate, "rejudge", body)
        with reply_of_this_version(client.address):
            return outcome_of(reply)

    return read


NOTHING_TO_READ = 3
SOME_LEFT = 1


def rejudge(given: RejudgeArguments) -> int:
    """Have stored answers read by a judge. Returns 0, 3 if there are none, 1 if some could not be read."""
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
        say(line)
    if not plan.keys:
        say("nothing to read; choose an earlier --since, or answers of another judge with --of")
        return NOTHING_TO_READ
    if given.dry_run:
        return 0
    if cost.is_paid and not given.yes:
        if not sys.stdin.isatty():
            raise ConfigError("--yes: is missing; this costs money, and there is no terminal to ask on")
        click.confirm("Read them?", abort=True, err=True)
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
        reasons = counted(dict(totals.failed.most_common()))
        click.echo(printable(f"{totals.failed.total()} could not be read: {reasons}; the last one: {totals.why}"))
    if totals.ended:
        say(f"ended early: {totals.ended}")
    left = len(plan.keys) - totals.done
    if left > 0:
        say(f"{left} are left; run the same command again to continue")
