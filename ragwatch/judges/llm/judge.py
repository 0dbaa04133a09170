"""Reader: a judge that asks a model. What it asks is `asking`'s, how it asks is the provider's; here they meet."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import OrderedDict
from collections.abc import Sequence

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.self_tests import TRIAL
from ragwatch.core.verdict import UnjudgedReason, Usage
from ragwatch.errors import ConfigError, JudgeError
from ragwatch.judges.llm.calls.caller import Caller, CallTerms, ReadingCost
from ragwatch.judges.llm.calls.failures import CallError
from ragwatch.judges.llm.calls.options import CallOptions
from ragwatch.judges.llm.calls.prices import prices_of
from ragwatch.judges.llm.calls.provider import Provider
from ragwatch.judges.llm.calls.scheduler import CallScheduler, Clock, RealClock
from ragwatch.judges.llm.prompt.parts import Part, parts_of
from ragwatch.judges.llm.prompt.reading import PROMPT_VERSION, Prompt, Reading, begin
from ragwatch.judges.llm.prompt.units import answer_of
from ragwatch.ports import JudgeContext

STRIKES = 3
_REMEMBERED = 10_000
# Told of the provider, yet it may lie in the sample: a page that no model reads in time, or never answers validly.
_SUSPECT = frozenset(
    {UnjudgedReason.TIMEOUT, UnjudgedReason.PROTOCOL, UnjudgedReason.TRUNCATED, UnjudgedReason.UNREADABLE}
)


class LLMJudge:
    """Reads samples by asking a model.

    Attributes:
        name: Configured name.
        kind: Its kind.
        model: The model that reads.
        version: Kind, model and prompt; `-isolated` where contexts are read apart.
        concurrency: Calls at a time.
        prices: What tokens cost; None when nobody knows: then dollars are not counted and cannot be capped.
        provider: Who is asked.

    Args:
        clock: Time, for waits.
        rng: Chance, for waits.

    Raises:
        ConfigError: Nobody knows what the model costs, or this cannot be asked in message batches.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        provider: Provider,
        options: CallOptions,
        context: JudgeContext,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.name, self.kind, self.model, self.concurrency = name, kind, provider.model, options.concurrency
        self.version = f"{kind}-{self.model}-{PROMPT_VERSION}{'-isolated' * (options.reading == 'isolated')}"
        self.provider = provider
        self.prices = prices_of(
            self.model, options.prices, allow_unknown=options.allow_unknown_price, where=f"judges.{name}"
        )
        if options.urgency == "relaxed":
            _check_relaxed(name, kind, provider, options)
        self._options = options
        self._context = context
        self._clock = clock or RealClock()
        self._pool = CallScheduler(
            name,
            concurrency=options.concurrency,
            telemetry=context.telemetry,
            clock=self._clock,
            rng=rng or random.Random(),  # noqa: S311 - it spreads waits and guards nothing
        )
        self._caller = Caller(
            name,
            provider,
            CallTerms(self.prices, options.timeout_seconds, options.thinking_tokens),
            pool=self._pool,
            purse=context.purse,
            telemetry=context.telemetry,
            clock=self._clock,
        )
        self._strikes: OrderedDict[str, int] = OrderedDict()

    def ready_in(self) -> float:
        """Seconds until it wants to be asked again: the end of a pause, or of being left alone."""
        return self._pool.ready_in()

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """What the model sees in the sample.

        Raises:
            JudgeError: It could not be read; permanent when that lies in the sample, or seems to after three times.
        """
        bill = ReadingCost()
        inquiry = await self.begin(sample, secrets.token_hex(16))
        until = self._clock.now() + self._options.deadline_seconds
        try:
            while asks := inquiry.asks():
                inquiry.take(await self._replies(asks, bill, until))
        except JudgeError as error:
            raise self._struck(sample, error) from None
        self._strikes.pop(sample.id, None)
        if TRIAL not in sample.metadata:
            self.report(inquiry)
        return inquiry.evidence(), bill.usage

    async def begin(self, sample: Sample, seed: str) -> Reading:
        """What is to be asked about a sample that is not too large: cut in a thread, so that the event loop goes on.

        Raises:
            JudgeError: It is too large.
        """

        def begun() -> Reading:
            check_size(sample, self._options)
            return self.inquire(sample, seed)

        return await asyncio.to_thread(begun)

    def inquire(self, sample: Sample, seed: str) -> Reading:
        """What is to be asked about a sample; the same for the same seed."""
        return begin(sample, parts=self._parts(sample), reading=self._options.reading, seed=seed)

    def report(self, inquiry: Reading) -> None:
        """Count what an inquiry that is over has noticed."""
        if inquiry.unquoted:
            self._context.telemetry.unquoted(self.name, inquiry.unquoted)
        for place in inquiry.instructions:
            self._context.telemetry.instructions_seen(self.name, place)

    async def probe(self) -> str:
        """What the provider can do for us, in one line for a person.

        Raises:
            JudgeError: It cannot be used; the message says why.
        """
        try:
            return await self.provider.probe()
        except CallError as failed:
            raise JudgeError(failed.rule.reason, f"{failed.reason}: {failed}") from None

    async def close(self) -> None:
        """Release the client."""
        await self.provider.close()

    def _parts(self, sample: Sample) -> frozenset[Part]:
        return parts_of(self._context.quantities, reference=bool(sample.reference))

    async def _replies(self, asks: Sequence[Prompt], bill: ReadingCost, until: float) -> list[object]:
        """The replies to asks that are made at once. All are awaited, for what has begun is paid anyway."""
        calls = [self._caller.make(ask, bill, until) for ask in asks]
        if len(calls) == 1:
            return [await calls[0]]
        found = await asyncio.gather(*calls, return_exceptions=True)
        errors = [each for each in found if isinstance(each, BaseException)]
        if errors:
            raise min(errors, key=_gravity)
        return list(found)

    def _struck(self, sample: Sample, error: JudgeError) -> JudgeError:
        """The same error; permanent when the sample fails again and again while others are read."""
        if error.permanent or not self._pool.healthy or UnjudgedReason(error.reason) not in _SUSPECT:
            return error
        strikes = self._strikes.pop(sample.id, 0) + 1
        if strikes >= STRIKES:
            return JudgeError(error.reason, f"{error}; {strikes} times while others were read")
        self._strikes[sample.id] = strikes
        while len(self._strikes) > _REMEMBERED:
            self._strikes.popitem(last=False)
        return error


def _check_relaxed(name: str, kind: str, provider: Provider, options: CallOptions) -> None:
    if options.reading == "isolated":
        raise ConfigError(f"judges.{name}.urgency: relaxed asks each sample in one call; use reading: joint")
    if not hasattr(provider, "submit"):
        raise ConfigError(f"judges.{name}.urgency: {kind} has no message batches; use urgency: normal")


def check_size(sample: Sample, options: CallOptions) -> None:
    """Refuse what would cost too much to read.

    Raises:
        JudgeError: The sample is larger than the options allow.
    """
    texts = [sample.question, sample.answer, sample.reference, *(found.text for found in sample.contexts)]
    _check(len(sample.contexts), options.max_contexts, "contexts")
    _check(sum(len(text or "") for text in texts), options.max_chars, "characters")
    _check(len(answer_of(sample).claims), options.max_claims, "claims")


def _check(count: int, limit: int, what: str) -> None:
    if count > limit:
        raise JudgeError(UnjudgedReason.TOO_LARGE, f"{count} {what}, more than the {limit} allowed")


def _gravity(error: BaseException) -> int:
    """What to tell of several errors: first a bug of ours, then what lies in the sample, then an outage."""
    if not isinstance(error, JudgeError):
        return 0
    return 1 if error.permanent else 2
