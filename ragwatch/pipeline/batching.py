"""Batch judging: reads pending draws with message batches, which are sent together and collected within a day.

Before each call the store holds all that a step needs after a kill: draws and reserved costs, then the provider's id
of the batch. For a batch without an id, the provider is asked whether it was accepted, so that nothing is paid twice.
Every write can be repeated.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.errors import JudgeError, StoreError
from ragwatch.model.budget import Cost
from ragwatch.model.evidence import Evidence, ShapeError
from ragwatch.model.sample import Draw
from ragwatch.pipeline.judging import MAX_DOUBLINGS, MAX_PAUSE_SECONDS, MIN_PAUSE_SECONDS, JudgingLoop, JudgingRules
from ragwatch.pipeline.leadership import Step
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.ports import LoopContext, OpenBatch
from ragwatch.ports.judging import BatchJudge, Collected
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.verdict import NO_USAGE, Reading, Unjudged, UnjudgedReason, Usage, judged

MAX_BATCH_DRAWS = 500
MAX_OPEN_BATCHES = 16  # sent and not collected; while there are so many, the next batch grows
MAX_WAIT_SECONDS = 300.0  # until a batch that is not full is sent
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 2.0, 300.0
POLL_AGE_SHARE = 0.1  # of the age of a batch: interval between two polls
LISTING_GRACE_SECONDS = 600.0  # until a batch that the provider does not list counts as never received
MAX_BATCH_SECONDS = 86400.0
MAX_UNKNOWN_SECONDS = 2 * MAX_BATCH_SECONDS  # a batch whose state the provider does not tell for so long is abandoned


@dataclass(frozen=True, slots=True)
class _SentDraw:
    """A draw that was sent, with its reservation."""

    draw: Draw
    reservation: int


@dataclass(frozen=True, slots=True)
class _Suspected:
    """A result that needs a second reading: the first one, and what it cost."""

    draw: Draw
    evidence: Evidence
    usage: Usage


class BatchJudgingLoop(JudgingLoop):
    """The loop of one judge that is called with message batches. Its self-tests, which are few, are single calls.

    Of several workers one sends and collects batches: `led` makes a step one that runs in the leader only.
    """

    collects_batches = True
    _refusals = 0
    _send_after = 0.0

    def __init__(
        self,
        judge: BatchJudge,
        rules: JudgingRules,
        context: LoopContext,
        *,
        self_tests: JudgeSelfTests | None = None,
        led: Callable[[Step], Step] = lambda step: step,
    ) -> None:
        self._telemetry = context.telemetry
        super().__init__(judge, rules, context, self_tests=self_tests)
        self._batches = judge
        self._next_poll: dict[int, float] = {}  # by batch
        self._step_batches = led(self._collect_and_send)

    async def step(self) -> bool:
        """Collect the batches that have ended, and send one when enough draws are pending. False if nothing changed."""
        return await self._step_batches()

    async def _collect_and_send(self) -> bool:
        await self._settle()
        batches = await asyncio.to_thread(self._store.batches, self.judge.name)
        self._next_poll = {batch.id: self._next_poll.get(batch.id, 0.0) for batch in batches}
        progress = [await self._poll(batch) for batch in batches if self._next_poll[batch.id] <= self._clock()]
        sent = len(batches) < MAX_OPEN_BATCHES and self._clock() >= self._send_after and await self._send_pending()
        return sent or any(progress)

    async def _poll(self, batch: OpenBatch) -> bool:
        """Ask for the state of a batch and collect it when it has ended. True when the batch has changed."""
        age = self._clock() - batch.prepared
        self._next_poll[batch.id] = self._clock() + min(MAX_POLL_SECONDS, max(MIN_POLL_SECONDS, POLL_AGE_SHARE * age))
        sent = await asyncio.to_thread(self._sent, batch)
        try:
            if batch.provider_id is None:
                return await self._locate(batch, sent, age)
            if sent and not await self._batches.ended(batch.provider_id):
                return False
            await self._collect_batch(batch, batch.provider_id, sent)
        except JudgeError as error:
            if age < MAX_UNKNOWN_SECONDS:
                return False
            self._telemetry.draw_deferred(self.judge.name, error.reason, f"batch abandoned after two days: {error}")
            await asyncio.to_thread(self._store.close_batch, batch.id)
        return True

    async def _locate(self, batch: OpenBatch, sent: Mapping[str, _SentDraw], age: float) -> bool:
        """Find out whether the provider has received a batch whose id is unknown."""
        provider_id = await self._batches.find(set(sent), batch.prepared)
        if provider_id is not None:
            await asyncio.to_thread(self._store.send_batch, batch.id, provider_id)
            self._next_poll[batch.id] = 0.0
            return True
        if age < LISTING_GRACE_SECONDS:
            return False
        await self._discard(batch.id, sent)  # it was never received, so nothing was paid
        return True

    async def _collect_batch(self, batch: OpenBatch, provider_id: str, sent: Mapping[str, _SentDraw]) -> None:
        """Pay and settle every result; draws without a final result are deferred.

        A result on a text that was damaged since cannot be read: its draw is deferred, too, and settled later.
        """
        samples = {name: entry.draw.sample for name, entry in sent.items() if entry.draw.damage is None}
        deferred: list[str] = []
        suspected: list[_Suspected] = []
        async for name, collected in self._batches.results(provider_id, samples, batch.seed):
            entry = sent[name]
            if collected.usage is not None:  # paid before it is settled: a kill in between leaves nothing unpaid
                cost = Cost(collected.usage.cost_usd, collected.usage.tokens)
                await asyncio.to_thread(self._store.pay, entry.reservation, cost)
            evidence = collected.result
            if isinstance(evidence, Evidence) and self._batches.reads_again(entry.draw.sample, evidence):
                suspected.append(_Suspected(entry.draw, evidence, collected.usage or NO_USAGE))
            elif not await self._take(entry.draw, collected, self._clock() - batch.prepared):
                deferred.append(entry.draw.key)
        await self._settle()
        deferred += await self._confirm(suspected, batch)
        await asyncio.to_thread(self._store.close_batch, batch.id)
        await asyncio.to_thread(self._postpone, deferred)

    async def _confirm(self, suspected: Sequence[_Suspected], batch: OpenBatch) -> list[str]:
        """Settle results with a suspected prompt injection after a second reading. Returns the keys of those to defer.

        A batch that is collected again after a kill repeats second readings that were not settled.
        """
        deferred: list[str] = []
        for start in range(0, len(suspected), self.judge.concurrency):
            few = suspected[start : start + self.judge.concurrency]
            confirmed = await asyncio.gather(*map(self._read_again, few))
            for first, collected in zip(few, confirmed, strict=True):
                if not await self._take(first.draw, collected, self._clock() - batch.prepared):
                    deferred.append(first.draw.key)
            await self._settle()
        return deferred

    async def _read_again(self, first: _Suspected) -> Collected:
        """The first reading with the cost of both, or the error of the second one. Its calls are paid by themselves."""
        try:
            usage = await self._batches.confirm(first.draw.sample, first.evidence)
        except JudgeError as error:
            return Collected(error, first.usage)
        except StoreError as error:  # the cost of a call cannot be stored; the sample is not at fault
            return Collected(JudgeError(UnjudgedReason.UNAVAILABLE, str(error), permanent=False), first.usage)
        except ShapeError as error:
            return Collected(JudgeError(UnjudgedReason.UNREADABLE, str(error)), first.usage)
        return Collected(first.evidence, first.usage + usage)

    async def _take(self, draw: Draw, collected: Collected, seconds: float) -> bool:
        """Convert a result to a verdict, to be settled later. False when the draw must be read again."""
        judge = self.judge
        reading = Reading(judge.name, judge.kind, judge.version, seconds, collected.usage or Usage())
        if isinstance(collected.result, JudgeError):
            return self._refuse(draw, collected.result, reading)
        try:
            verdict = judged(draw, reading, collected.result)
        except ShapeError as error:
            return self._refuse(draw, JudgeError(UnjudgedReason.UNREADABLE, str(error)), reading)
        self._done.verdicts.append(verdict)
        self._done.tallies.update(await self._self_tests.run(verdict, self._reader))
        return True

    def _refuse(self, draw: Draw, error: JudgeError, reading: Reading) -> bool:
        """Convert a permanent error to an unjudged verdict. False when the error is not permanent: a retry may help."""
        if not error.permanent:
            self._telemetry.draw_deferred(self.judge.name, error.reason, str(error))
            return False
        self._telemetry.draw_failed(self.judge.name, error.reason, str(error))
        self._done.verdicts.append(Unjudged(draw, reading, UnjudgedReason(error.reason), str(error)))
        return True

    async def _send_pending(self) -> bool:
        """Send pending draws when they fill a batch or have waited for long. False when they do neither."""
        draws = await asyncio.to_thread(self._batch)
        if not draws:
            return False
        seed = self._batches.seed()
        reservations = await self._reserved(draws, seed)
        await self._settle()
        if reservations:
            await self._send(reservations, seed)
        return True

    def _batch(self) -> list[Draw]:
        """Lease the draws for one batch; none while too few are pending."""
        draws = self._lease(1, self._clock() - MAX_WAIT_SECONDS)
        late = bool(draws)
        draws += self._lease(self._rules.batch - len(draws))
        if len(draws) < self._rules.batch and not late:
            self._store.postpone(self.judge.name, [draw.key for draw in draws], self._clock())
            return []
        return draws + self._lease(max(0, MAX_BATCH_DRAWS - len(draws)))

    async def _reserved(self, draws: Sequence[Draw], seed: str) -> dict[str, int]:
        """Reservations by key. Draws that need no call are judged; those beyond the budget are deferred."""
        reservations: dict[str, int] = {}
        for index, draw in enumerate(draws):
            try:
                reserved = await self._reserve(draw, seed)
            except JudgeError as error:
                if self._refuse(draw, error, self._reader.no_reading):
                    continue
                await asyncio.to_thread(self._postpone, [later.key for later in draws[index:]])
                break
            if isinstance(reserved, Evidence):
                await self._take(draw, Collected(reserved, NO_USAGE), 0.0)
            else:
                reservations[draw.key] = reserved
        return reservations

    async def _reserve(self, draw: Draw, seed: str) -> int | Evidence:
        if draw.damage is not None:
            raise JudgeError(UnjudgedReason.DAMAGED, f"sample {draw.key}: {draw.damage}")
        if not draw.sample.answer.strip():
            raise JudgeError(UnjudgedReason.EMPTY_ANSWER, "the answer is empty")
        return await self._batches.reserve(draw.sample, seed)

    async def _send(self, reservations: Mapping[str, int], seed: str) -> None:
        """Send a batch. Its content is stored before, so that a kill at any instant loses nothing."""
        now = self._clock()
        batch = await asyncio.to_thread(self._store.prepare_batch, self.judge.name, reservations, seed, now=now)
        self._next_poll[batch] = now + MIN_POLL_SECONDS
        sent = await asyncio.to_thread(self._sent, OpenBatch(batch, None, now, seed))
        try:
            provider_id = await self._batches.submit({name: entry.draw.sample for name, entry in sent.items()}, seed)
        except JudgeError as error:
            self._telemetry.draw_deferred(self.judge.name, error.reason, f"a batch was not accepted: {error}")
            self._send_after = now + min(MAX_PAUSE_SECONDS, MIN_PAUSE_SECONDS * 2 ** min(MAX_DOUBLINGS, self._refusals))
            self._refusals += 1
            await self._discard(batch, sent)
            return
        self._refusals = 0
        if provider_id is not None:
            await asyncio.to_thread(self._store.send_batch, batch, provider_id)

    async def _discard(self, batch: int, sent: Mapping[str, _SentDraw]) -> None:
        """Drop a batch that the provider does not have: nothing was paid, and its draws are deferred."""
        for entry in sent.values():
            await asyncio.to_thread(self._store.pay, entry.reservation, Cost())
        await asyncio.to_thread(self._store.close_batch, batch)
        await asyncio.to_thread(self._postpone, [entry.draw.key for entry in sent.values()])

    def _sent(self, batch: OpenBatch) -> dict[str, _SentDraw]:
        """Draws of a batch, by the ids that the provider gets. A draw has another id in each batch."""
        entries = (
            _SentDraw(self._rules.in_segments(draw), reservation) for draw, reservation in self._store.batched(batch.id)
        )
        return {key_of(batch.seed, entry.draw.key): entry for entry in entries}


class LeftBatchesLoop(BatchJudgingLoop):
    """The loop of one judge that reads pending draws one by one, and collects the batches that are still open."""

    _send_after = math.inf

    async def step(self) -> bool:
        """Collect the batches that have ended, then do what any loop does. False when nothing changed or is pending."""
        collected = await self._step_batches()
        return await JudgingLoop.step(self) or collected
