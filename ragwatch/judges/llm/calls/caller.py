"""Caller: one ask -> what its reply means, with every try paid, counted, and repeated where that helps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from ragwatch.core.budget import Cost
from ragwatch.core.verdict import FREE, UnjudgedReason, Usage
from ragwatch.errors import JudgeError
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, RetryPolicy, word
from ragwatch.judges.llm.calls.prices import Prices, worst_case
from ragwatch.judges.llm.calls.provider import Completion, Provider
from ragwatch.judges.llm.calls.scheduler import CallScheduler, Clock
from ragwatch.judges.llm.prompt.reading import Prompt
from ragwatch.judges.llm.prompt.reply import ReplyError
from ragwatch.ports import BudgetAccount
from ragwatch.telemetry import Telemetry

MOST_TRIES = 4
FRAME_BYTES = 1024  # what a provider puts around a prompt
_ENDED = frozenset({"end_turn", "stop_sequence"})
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True)
class CallTerms:
    """On what terms calls are made.

    Attributes:
        prices: What tokens cost; None when nobody knows.
        timeout_seconds: A call that takes longer is given up.
        thinking_tokens: Tokens that a model may use beside its reply.
    """

    prices: Prices | None
    timeout_seconds: float
    thinking_tokens: int = 0


@dataclass(slots=True)
class ReadingCost:
    """What one reading has cost so far."""

    usage: Usage = FREE


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What is sent this time, and what has been mended already."""

    ask: Prompt
    max_tokens: int
    mended: frozenset[CallFailure] = frozenset()


class Caller:
    """Makes the calls of one judge.

    Args:
        judge: Its name.
        provider: Who is asked.
        pool: Says when.
        purse: Money is set aside here before a call, and settled after it.
        telemetry: Counts calls, tokens, money and failures.
        clock: Time.
    """

    def __init__(
        self,
        judge: str,
        provider: Provider,
        terms: CallTerms,
        *,
        pool: CallScheduler,
        purse: BudgetAccount,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._judge = judge
        self._provider = provider
        self._terms = terms
        self._pool = pool
        self._purse = purse
        self._telemetry = telemetry
        self._clock = clock

    async def make(self, ask: Prompt, bill: ReadingCost, until: float) -> object:
        """What `ask.check` makes of the reply.

        Args:
            ask: What is asked.
            bill: Grows by what is spent, also where that was in vain.
            until: The clock's instant after which no call begins.

        Raises:
            JudgeError: There is no valid reply; permanent when that lies in the sample.
        """
        this = _Attempt(ask, ask.max_tokens + self._terms.thinking_tokens)
        tries = 0
        while True:
            tries += 1
            try:
                return await self._try(this, bill, until)
            except CallError as failed:
                self._telemetry.call_failed(self._judge, self._provider.model, failed.reason, str(failed))
                this = await self._again(this, failed, tries, until)

    async def _again(self, this: _Attempt, failed: CallError, tries: int, until: float) -> _Attempt:
        """What to send next, when its time has come.

        Raises:
            JudgeError: Nothing is sent any more.
        """
        mend = failed.rule.again is RetryPolicy.MENDED
        if tries == MOST_TRIES or not failed.retry or (mend and failed.reason in this.mended):
            raise _final(failed, permanent=failed.rule.permanent)
        wait = 0.0 if mend else self._wait(failed, tries)
        late = self._clock.now() + wait > until
        if late or not self._pool.healthy or not self._pool.may_repeat():
            # Asking again might have helped, so this is not the last word on the sample.
            raise _final(failed, permanent=False)
        self._telemetry.call_repeated(self._judge, self._provider.model)
        await self._clock.sleep(wait)
        return _mended(this, failed) if mend else this

    def _wait(self, failed: CallError, tries: int) -> float:
        if failed.reason is CallFailure.RATE_LIMITED:
            return self._pool.ready_in()
        return max(failed.wait or 0.0, self._pool.backoff(tries))

    async def _try(self, this: _Attempt, bill: ReadingCost, until: float) -> object:
        """One call: set money aside, ask, pay, and understand the reply.

        Whatever ends it before `_pay` (a cancellation, a bug) leaves the worst case set aside.
        """
        async with self._pool.turn(until) as turn:
            reservation = await self._purse.reserve(self._worst(this))
            try:
                said = await self._said(this)
            except CallError as failed:
                self._pool.failed(turn, failed)
                outcome: Completion | CallError = failed
            else:
                self._pool.answered(turn, said.limits, said.usage.tokens if said.usage else 0)
                outcome = said
        await self._pay(reservation, outcome.usage, bill)
        if isinstance(outcome, CallError):
            raise outcome
        return understood(this.ask, outcome)

    def _worst(self, this: _Attempt) -> Cost:
        ask = this.ask
        sent = len(ask.system.encode()) + len(ask.user.encode()) + len(str(ask.schema)) + FRAME_BYTES
        return worst_case(self._terms.prices, sent, this.max_tokens)

    async def _said(self, this: _Attempt) -> Completion:
        start = self._clock.now()
        timeout = self._terms.timeout_seconds
        try:
            # A client's own timeout is about silence; a server that drips would hold the place for ever.
            async with asyncio.timeout(timeout):
                return await self._provider.call(this.ask, max_tokens=this.max_tokens, timeout=timeout)
        except TimeoutError:
            raise CallError(CallFailure.TIMEOUT, f"no reply within {timeout:g} s", usage=None) from None
        finally:
            self._telemetry.judge_called(self._judge, self._provider.model, self._clock.now() - start)

    async def _pay(self, reservation: int, usage: Usage | None, bill: ReadingCost) -> None:
        """Settle what a call did cost. Where nobody knows, the worst case stays set aside."""
        if usage is None:
            return
        prices = self._terms.prices
        dollars = 0.0 if prices is None else prices.dollars(usage)
        if usage is not FREE:
            bill.usage += replace(usage, cost_usd=dollars)
            self._telemetry.judge_spent(self._judge, self._provider.model, usage.by_direction(), dollars)
        await self._purse.settle(reservation, Cost(dollars, usage.tokens))


def understood(ask: Prompt, said: Completion) -> object:
    """What a reply means.

    Raises:
        CallFailed: It means nothing.
    """
    if said.stop == "refusal":
        raise CallError(CallFailure.REFUSAL, f"the model refused ({said.detail or 'no category'})")
    if said.stop in _CUT:
        raise CallError(CallFailure.TRUNCATED, f"the reply was cut ({said.stop})", retry=said.stop == "max_tokens")
    if said.stop not in _ENDED:
        raise CallError(CallFailure.INVALID_OUTPUT, f"the reply ended by {word(said.stop) or 'no known reason'}")
    try:
        return ask.check(said.text)
    except ReplyError as error:
        raise CallError(CallFailure.INVALID_OUTPUT, str(error)) from None


def _mended(this: _Attempt, failed: CallError) -> _Attempt:
    """The same with twice the room, or with a word on what was wrong. The word is ours, never the reply's."""
    mended = this.mended | {failed.reason}
    if failed.reason is CallFailure.TRUNCATED:
        return replace(this, max_tokens=2 * this.max_tokens, mended=mended)
    note = f"\n\nYour last reply could not be used ({failed}). Reply again, with every id exactly once."
    return replace(this, ask=replace(this.ask, user=this.ask.user + note), mended=mended)


def _final(failed: CallError, *, permanent: bool) -> JudgeError:
    reason: UnjudgedReason = failed.rule.reason
    return JudgeError(reason, f"{failed.reason}: {failed}", permanent=permanent)
