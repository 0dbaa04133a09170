"""Batched: the judge that asks a model, asking it by message batches: later, for half the price."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from typing import cast

from ragwatch.core.budget import Cost
from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.verdict import FREE, UnjudgedReason
from ragwatch.errors import JudgeError
from ragwatch.judges.llm.calls.caller import FRAME_BYTES, understood
from ragwatch.judges.llm.calls.failures import CallError
from ragwatch.judges.llm.calls.prices import BATCH_SHARE, worst_case
from ragwatch.judges.llm.calls.provider import BatchProvider, Completion
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.prompt.reading import Prompt, Reading
from ragwatch.ports.judging import Collected

_CLOCKS_DIFFER = 3600.0  # at most, ours and the provider's


class BatchLLMJudge(LLMJudge):
    """A judge whose provider takes message batches as well as calls. Implements `ports.reading.BatchJudge`."""

    def seed(self) -> str:
        """A new seed for one batch: a secret, and the mark of what is asked."""
        return f"{secrets.token_hex(16)} {self._mark}"

    @property
    def _mark(self) -> str:
        return " ".join((self.version, *sorted(self._context.quantities)))

    def _inquiry(self, sample: Sample, seed: str) -> Reading:
        return self.inquire(sample, self._seed(sample, seed))

    @staticmethod
    def _seed(sample: Sample, seed: str) -> str:
        return f"{seed} {sample.id}"

    async def reserve(self, sample: Sample, seed: str) -> int | Evidence:
        """Set half the worst case of one call aside; the evidence itself where nothing is to be asked.

        Raises:
            JudgeError: The sample is too large, or there is no money at present.
        """
        inquiry = await self.begin(sample, self._seed(sample, seed))
        asks = inquiry.asks()
        if not asks:
            self.report(inquiry)
            return inquiry.evidence()
        (ask,) = asks  # a joint reading has one
        sent = len(ask.system.encode()) + len(ask.user.encode()) + len(str(ask.schema)) + FRAME_BYTES
        whole = worst_case(self.prices, sent, ask.max_tokens + self._options.thinking_tokens)
        return await self._context.purse.reserve(Cost(whole.usd * BATCH_SHARE, whole.tokens))

    async def submit(self, samples: Mapping[str, Sample], seed: str) -> str | None:
        """Send samples as one message batch. None when the provider may have it or not.

        Raises:
            JudgeError: The provider has it not, and nothing was paid.
        """
        entries = await asyncio.to_thread(self._entries, samples, seed)
        start = self._clock.now()
        try:
            return await self._batches.submit(entries)
        except CallError as failed:
            error = self._told(failed)
            if failed.usage is None:
                return None
            raise error from None
        finally:
            self._context.telemetry.judge_called(self.name, self.model, self._clock.now() - start)

    def _entries(self, samples: Mapping[str, Sample], seed: str) -> list[tuple[str, Prompt]]:
        return [(name, ask) for name, sample in samples.items() for ask in self._inquiry(sample, seed).asks()]

    async def ended(self, batch: str) -> bool:
        """Whether every sample of a batch has its result.

        Raises:
            JudgeError: It cannot be told at present.
        """
        try:
            return await self._batches.ended(batch)
        except CallError as failed:
            raise self._told(failed) from None

    async def results(
        self, batch: str, samples: Mapping[str, Sample], seed: str
    ) -> AsyncIterator[tuple[str, Collected]]:
        """Results of these samples by our ids.

        Raises:
            JudgeError: They cannot be read (to the end) at present.
        """
        try:
            async for name, found in self._batches.results(batch):
                if name in samples:
                    yield name, self._collected(found, samples[name], seed)
                    await asyncio.sleep(0)  # what is downloaded is read without a pause, and others want their turn
        except CallError as failed:
            raise self._told(failed) from None

    def _collected(self, found: Completion | CallError, sample: Sample, seed: str) -> Collected:
        usage = found.usage
        if usage is not None and usage is not FREE:
            dollars = 0.0 if self.prices is None else self.prices.dollars(usage, batched=True)
            usage = replace(usage, cost_usd=dollars)
            self._context.telemetry.judge_spent(self.name, self.model, usage.by_direction(), dollars)
        if seed.partition(" ")[2] != self._mark:
            # Another version of the prompt asked: its reply cannot be read by this one.
            return Collected(JudgeError(UnjudgedReason.UNREADABLE, "asked by another version", permanent=False), usage)
        try:
            if isinstance(found, CallError):
                raise found
            return Collected(self._read(found, sample, seed), usage)
        except CallError as failed:
            return Collected(self._told(failed), usage)

    def _read(self, said: Completion, sample: Sample, seed: str) -> Evidence:
        inquiry = self._inquiry(sample, seed)
        inquiry.take([understood(ask, said) for ask in inquiry.asks()])
        self.report(inquiry)
        return inquiry.evidence()

    async def find(self, ids: Collection[str], since: float) -> str | None:
        """The provider's name for the batch that holds these ids; None when it has none.

        Raises:
            JudgeError: It cannot be told at present: one that has not ended yet may be it.
        """
        waiting = 0
        try:
            for batch in await self._batches.recent(since - _CLOCKS_DIFFER):
                if batch.entries != len(ids):
                    continue
                if not await self._batches.ended(batch.id):
                    waiting += 1
                elif any([name in ids async for name, _ in self._batches.results(batch.id)]):
                    return batch.id
        except CallError as failed:
            raise self._told(failed) from None
        if waiting:
            message = f"{waiting} batches that have not ended may be ours"
            raise JudgeError(UnjudgedReason.UNAVAILABLE, message, permanent=False)
        return None

    @property
    def _batches(self) -> BatchProvider:
        return cast("BatchProvider", self.provider)

    def _told(self, failed: CallError) -> JudgeError:
        """What a failure means for the sample; it is counted."""
        self._context.telemetry.call_failed(self.name, self.model, failed.reason, str(failed))
        return JudgeError(failed.rule.reason, f"{failed.reason}: {failed}", permanent=failed.rule.permanent)
