"""Has stored answers read by another judge: in this process, or by the running ragwatch that uses the state."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragwatch.commands.api_client import ApiClient, address_of, read_token
from ragwatch.commands.log_warnings import lock_owner
from ragwatch.commands.state_reader import is_shared, writable_store
from ragwatch.config import Config, JudgeConfig
from ragwatch.core.verdict import UnjudgedReason
from ragwatch.errors import RagwatchError
from ragwatch.judges import KINDS
from ragwatch.pipeline.rejudging import RejudgeOutcome, RejudgeRequest, Rejudging, outcome_of
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import Judge, JudgeContext, Store
from ragwatch.ports.capabilities import uses_batches
from ragwatch.telemetry import Telemetry

ANSWERS_AT_ONCE = 16
MAX_RETRIES = 5  # in a row, without a verdict
MAX_WAIT_SECONDS = 30.0
_ENDS = (UnjudgedReason.OVER_BUDGET, UnjudgedReason.MISCONFIGURED)  # waiting for seconds does not help

Read = Callable[[RejudgeRequest, RejudgeOutcome], Awaitable[RejudgeOutcome]]
"""Has answers read. Adds to the outcome as far as it is known before the end, and returns the whole."""


@dataclass(slots=True)
class RejudgeTotals:
    """What became of all answers so far.

    Attributes:
        stored: Number of verdicts that were stored.
        skipped: Number of answers that the judge has read meanwhile, or whose texts were deleted.
        failed: Number of answers that could not be read, by reason.
        why: What happened last to one of them, for a person.
        ended: Why the rest cannot be read at present; empty if all were tried.
    """

    stored: int = 0
    skipped: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    why: str = ""
    ended: str = ""

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
        built = _judge(config, judge, store, telemetry)
        rejudging = Rejudging(built, store=store, timeout_seconds=config.settings.judging.timeout, telemetry=telemetry)
        try:
            yield rejudging.read
        finally:
            await built.close()


def _judge(config: Config, judge: JudgeConfig, store: Store, telemetry: Telemetry) -> Judge:
    """Build the judge with its budget, which other processes may use too, and without message batches."""
    place, settings = judge.place, config.settings
    budget = StoredBudgetAccount(place.name, place.budget.caps, store, time.time)
    quantities = frozenset(settings.quantities if place.quantities is None else place.quantities)
    redactor = settings.redaction.redactor()
    redact = str if redactor is None else redactor.redact
    context = JudgeContext(telemetry, budget, time.time, quantities, settings.criterion_rules, redact=redact)
    options = judge.options.model_copy(update={"urgency": "normal"}) if uses_batches(judge.options) else judge.options
    return KINDS[judge.kind].build(options, name=place.name, context=context)


def _asking(client: ApiClient, judge: str) -> Read:
    async def read(request: RejudgeRequest, _: RejudgeOutcome) -> RejudgeOutcome:
        before = request.charted_before
        body = {
            "judge": judge,
            "of": request.of,
            "share": request.share,
            "keys": list(request.keys),
            "charted_before": before if math.isfinite(before) else None,
        }
        reply = await asyncio.to_thread(client.rejudge, body)
        try:
            return outcome_of(reply)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise RagwatchError(
                f"--url: the response is not that of a ragwatch of this version ({error}); give its address"
            ) from error

    return read
