"""An LLM judge that can also send message batches, at half the price."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import cast

from ragwatch.errors import JudgeError
from ragwatch.judges.llm.caller import ReadingCost, check_completion, prompt_bytes
from ragwatch.judges.llm.failures import CallError, CallFailure
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.options import BATCH_DISCOUNT, worst_case
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import BatchProvider, Completion
from ragwatch.model.budget import Cost
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Sample
from ragwatch.ports.judging import Collected
from ragwatch.statistics.verdict import NO_USAGE, UnjudgedReason, Usage

_MAX_CLOCK_SKEW_SECONDS = 3600.0  # between this machine and the provider


class BatchLLMJudge(LLMJudge):
    """A judge whose provider takes message batches as well as calls. Implements `ports.judging.BatchJudge`.

    Where the provider cannot say at present, the methods that ask about a batch raise JudgeError.
    """

    def seed(self) -> str:
        """A new seed for one batch: a secret, and the fingerprint of the prompt."""
        return f"{secrets.token_hex(16)} {self._fingerprint}"

    @property
    def _fingerprint(self) -> str:
        return " ".join((self.version, *sorted(self._context.quantities)))

    async def reserve(self, sample: Sample, seed: str) -> int | Evidence:
        """Reserve half the worst case of one call. Returns the evidence instead where no call is needed.

        Raises:
            JudgeError: The sample is too large, or the budget is exhausted at present.
        """
        reading = await self.prepare(sample, f"{seed} {sample.id}")
        prompts = reading.prompts()
        if not prompts:
            self.report(reading)
            return self.with_unread(reading.evidence())
        (prompt,) = prompts  # a joint reading has one
        cost = worst_case(self.prices, prompt_bytes(prompt), prompt.max_tokens + self._options.thinking_budget)
        return await self._context.budget.reserve(Cost(cost.usd * BATCH_DISCOUNT, cost.tokens))

    async def submit(self, samples: Mapping[str, Sample], seed: str) -> str | None:
        """Send samples as one message batch. Returns its id; None when it is unknown whether the provider accepted it.

        Raises:
            JudgeError: The provider has not accepted it, and nothing was charged.
        """
        entries = await asyncio.to_thread(self._entries, samples, seed)
        start = self._clock.now()
        try:
            return await self._batches.submit(entries)
        except CallError as error:
            judge_error = self._judge_error(error)
            if error.usage is None:
                return None
            raise judge_error from None
        finally:
            self._context.telemetry.judge_called(self.name, self.model, self._clock.now() - start)

    def _entries(self, samples: Mapping[str, Sample], seed: str) -> list[tuple[str, Prompt]]:
        return [
            (custom_id, prompt)
            for custom_id, sample in samples.items()
            for prompt in self.start_reading(sample, f"{seed} {sample.id}").prompts()
        ]

    async def ended(self, batch: str) -> bool:
        """Whether every sample of a batch has its result."""
        try:
            return await self._batches.ended(batch)
        except CallError as error:
            raise self._judge_error(error) from None

    async def results(
        self, batch: str, samples: Mapping[str, Sample], seed: str
    ) -> AsyncIterator[tuple[str, Collected]]:
        """Results of these samples by custom id. Of several results with one id, the first counts."""
        missing, repeated = dict(samples), 0
        try:
            async for custom_id, result in self._batches.results(batch):
                sample = missing.pop(custom_id, None)
                if sample is not None:
                    yield custom_id, self._collected(result, sample, seed)
                    await asyncio.sleep(0)  # reading a download never blocks, so let other tasks run
                elif custom_id in samples:
                    repeated += 1
        except CallError as error:
            raise self._judge_error(error) from None
        if repeated:
            why = f"batch {batch}: results that repeat the id of another one, which counts: {repeated}"
            self._context.telemetry.call_failed(self.name, self.model, CallFailure.PROTOCOL, why)

    def _collected(self, result: Completion | CallError, sample: Sample, seed: str) -> Collected:
        usage = result.usage
        if usage is not None and usage is not NO_USAGE:
            dollars = 0.0 if self.prices is None else self.prices.dollars(usage, batched=True)
            usage = replace(usage, cost_usd=dollars)
            self._context.telemetry.judge_spent(self.name, self.model, usage.by_direction(), dollars)
        if seed.partition(" ")[2] != self._fingerprint:
            # The batch was sent with another prompt, so its replies cannot be parsed.
            return Collected(
                JudgeError(UnjudgedReason.UNREADABLE, "sent by another version of the judge", permanent=False), usage
            )
        try:
            if isinstance(result, CallError):
                raise result
            reading = self.start_reading(sample, f"{seed} {sample.id}")
            reading.take([check_completion(prompt, result) for prompt in reading.prompts()])
        except CallError as error:
            return Collected(self._judge_error(error), usage)
        self.report(reading)
        return Collected(self.with_replies(self.evidence_of(reading, sample), [result.text]), usage)

    async def confirm(self, sample: Sample, evidence: Evidence) -> Usage:
        """Read a sample with a suspected prompt injection again, with single calls: few samples need that.

        Raises:
            JudgeError: A claim is not supported this time, or the calls failed.
        """
        cost = ReadingCost()
        try:
            await self._confirm(sample, evidence, cost, self._clock.now() + self._options.deadline_seconds)
        except JudgeError as error:
            raise self._counted(sample, error) from None
        return cost.usage

    async def find(self, ids: Collection[str], since: float) -> str | None:
        """Find the batch with these custom ids. Returns its id at the provider; None when there is none.

        It may have more entries, whose draws were erased since. An id is used in one batch only, so one decides.

        Raises:
            JudgeError: The provider cannot say at present, or a batch that has not ended yet may be it.
        """
        if not ids:  # all were erased, so there is nothing to collect
            return None
        running = 0
        try:
            recent = await self._batches.recent(since - _MAX_CLOCK_SKEW_SECONDS)
            latest = since + _MAX_CLOCK_SKEW_SECONDS  # of later batches some may always run: nothing would be decided
            candidates = [batch for batch in recent if batch.entries >= len(ids) and batch.created <= latest]
            for batch in sorted(candidates, key=attrgetter("entries")):  # few are erased: the closest in size first
                if not await self._batches.ended(batch.id):
                    running += 1
                elif any([custom_id in ids async for custom_id, _ in self._batches.results(batch.id)]):
                    return batch.id
        except CallError as error:
            raise self._judge_error(error) from None
        if running:
            message = f"{running} batches that have not ended may hold these samples"
            raise JudgeError(UnjudgedReason.UNAVAILABLE, message, permanent=False)
        return None

    @property
    def _batches(self) -> BatchProvider:
        return cast("BatchProvider", self.provider)

    def _judge_error(self, error: CallError) -> JudgeError:
        """Count a failed call, and return the error for its sample."""
        self._context.telemetry.call_failed(self.name, self.model, error.reason, str(error))
        return error.judge_error()
