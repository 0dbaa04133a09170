"""Calls a provider with one prompt: budget, retries with backoff, repair of invalid replies, telemetry."""

import asyncio
from dataclasses import dataclass, field, replace

from ragwatch.judges.llm.failures import CallError, CallFailure, RetryPolicy, safe_code
from ragwatch.judges.llm.options import CallOptions, Prices, worst_case
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import Completion, Provider
from ragwatch.judges.llm.reply import ReplyError
from ragwatch.judges.llm.scheduler import CallScheduler, Clock
from ragwatch.model.budget import Cost
from ragwatch.ports import BudgetAccount
from ragwatch.statistics.verdict import NO_USAGE, Usage
from ragwatch.telemetry import Telemetry

MAX_TRIES = 4
PROMPT_OVERHEAD_BYTES = 1024  # what a provider adds to a prompt
_COMPLETE = frozenset({"end_turn", "stop_sequence"})
_TRUNCATED = frozenset({"max_tokens", "model_context_window_exceeded"})


@dataclass(slots=True)
class ReadingCost:
    """Usage of all calls for one sample so far, and what they replied."""

    usage: Usage = NO_USAGE
    replies: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A request, and the failures that it was already repaired after."""

    prompt: Prompt
    max_tokens: int
    repaired: frozenset[CallFailure] = frozenset()


@dataclass(slots=True)
class Caller:
    """Makes the calls of one judge.

    The worst case of a call is reserved from the budget before it, and settled after it.
    """

    judge: str
    provider: Provider
    options: CallOptions
    prices: Prices | None
    scheduler: CallScheduler
    budget: BudgetAccount
    telemetry: Telemetry
    clock: Clock

    async def call(self, prompt: Prompt, cost: ReadingCost, until: float) -> object:
        """Call the provider, with retries, and return what `prompt.check` returns for the reply.

        The usage of every call, failed ones included, is added to `cost`. No call starts `until` a reading of the clock
        is passed.

        Raises:
            JudgeError: There is no valid reply; permanent when the sample is the cause.
        """
        attempt = _Attempt(prompt, prompt.max_tokens + self.options.thinking_budget)
        tries = 0
        while True:
            tries += 1
            try:
                return await self._attempt(attempt, cost, until)
            except CallError as error:
                self.telemetry.call_failed(self.judge, self.provider.model, error.reason, str(error))
                attempt = await self._next_attempt(attempt, error, tries, until)

    async def _next_attempt(self, attempt: _Attempt, error: CallError, tries: int, until: float) -> _Attempt:
        """Wait for the backoff, and return what to send next; a JudgeError without more retries."""
        repair = error.rule.retry is RetryPolicy.REPAIR
        if tries == MAX_TRIES or not error.retry or (repair and error.reason in attempt.repaired):
            raise error.judge_error()
        wait = 0.0
        if error.reason is CallFailure.RATE_LIMITED:
            wait = self.scheduler.ready_in()
        elif not repair:
            wait = max(error.wait or 0.0, self.scheduler.backoff(tries))
        late = self.clock.now() + wait > until
        if late or not self.scheduler.healthy or not self.scheduler.take_retry():
            # A retry might have succeeded, so the failure is not permanent.
            raise error.judge_error(permanent=False)
        self.telemetry.call_repeated(self.judge, self.provider.model)
        await self.clock.sleep(wait)
        return _repaired(attempt, error) if repair else attempt

    async def _attempt(self, attempt: _Attempt, cost: ReadingCost, until: float) -> object:
        """Make one call: reserve its worst case, call, settle, and check the reply.

        If it ends before `_settle` (a cancellation, a bug), the worst case stays reserved.
        """
        async with self.scheduler.slot(until) as is_trial:
            most = worst_case(self.prices, prompt_bytes(attempt.prompt), attempt.max_tokens)
            reservation = await self.budget.reserve(most)
            try:
                outcome: Completion | CallError = await self._complete(attempt)
            except CallError as error:
                outcome = error
            if isinstance(outcome, CallError):
                self.scheduler.record_failure(outcome, is_trial=is_trial)
            else:
                tokens = outcome.usage.tokens if outcome.usage else 0
                self.scheduler.record_success(outcome.limits, tokens, is_trial=is_trial)
        await self._settle(reservation, outcome.usage, cost)
        if isinstance(outcome, CallError):
            raise outcome
        cost.replies.append(outcome.text)
        return check_completion(attempt.prompt, outcome)

    async def _complete(self, attempt: _Attempt) -> Completion:
        start = self.clock.now()
        timeout = self.options.timeout_seconds
        try:
            # A client's own timeout is per read; a server that sends a byte at a time would hold the slot for ever.
            async with asyncio.timeout(timeout):
                return await self.provider.call(attempt.prompt, max_tokens=attempt.max_tokens, timeout=timeout)
        except TimeoutError:
            raise CallError(CallFailure.TIMEOUT, f"no reply within {timeout:g} s", usage=None) from None
        finally:
            self.telemetry.judge_called(self.judge, self.provider.model, self.clock.now() - start)

    async def _settle(self, reservation: int, usage: Usage | None, cost: ReadingCost) -> None:
        """Settle the cost of a call. While its usage is unknown, the worst case stays reserved."""
        if usage is None:
            return
        dollars = 0.0 if self.prices is None else self.prices.dollars(usage)
        if usage is not NO_USAGE:
            cost.usage += replace(usage, cost_usd=dollars)
            self.telemetry.judge_spent(self.judge, self.provider.model, usage.by_direction(), dollars)
        await self.budget.settle(reservation, Cost(dollars, usage.tokens))


def prompt_bytes(prompt: Prompt) -> int:
    """Upper bound on the bytes that a call sends to the model."""
    return len(prompt.system.encode()) + len(prompt.user.encode()) + len(str(prompt.schema)) + PROMPT_OVERHEAD_BYTES


def check_completion(prompt: Prompt, completion: Completion) -> object:
    """Return what `prompt.check` returns for a reply; a CallError if it is a refusal, truncated or invalid."""
    if completion.stop == "refusal":
        raise CallError(CallFailure.REFUSAL, f"the model refused ({completion.detail or 'no category'})")
    if completion.stop in _TRUNCATED:
        raise CallError(
            CallFailure.TRUNCATED, f"the reply was cut ({completion.stop})", retry=completion.stop == "max_tokens"
        )
    if completion.stop not in _COMPLETE:
        raise CallError(
            CallFailure.INVALID_OUTPUT, f"the reply ended by {safe_code(completion.stop) or 'no known reason'}"
        )
    try:
        return prompt.check(completion.text)
    except ReplyError as error:
        raise CallError(CallFailure.INVALID_OUTPUT, str(error)) from None


def _repaired(attempt: _Attempt, error: CallError) -> _Attempt:
    """Repair a request: twice the tokens, or a note on what was wrong, which never quotes the reply."""
    repaired = attempt.repaired | {error.reason}
    if error.reason is CallFailure.TRUNCATED:
        return replace(attempt, max_tokens=2 * attempt.max_tokens, repaired=repaired)
    note = f"\n\nYour last reply could not be used ({error}). Reply again, with every id exactly once."
    prompt = replace(attempt.prompt, user=attempt.prompt.user + note)
    return replace(attempt, prompt=prompt, repaired=repaired)
