"""Batching: pending draws are read by message batches: sent together, collected within a day, settled one by one.

Everything a step must know after a kill stands in the store before the next call: draws and money set aside, then the
provider's name for the batch. Whether a batch that has no name was accepted is asked of the provider, so that nothing
is paid twice; every write may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.core.budget import Cost
from ragwatch.core.evidence import Evidence, ShapeError
from ragwatch.core.sample import Draw
from ragwatch.core.sampling import key_of
from ragwatch.core.verdict import FREE, Reading, Unjudged, UnjudgedReason, Usage, judged
from ragwatch.errors import JudgeError
from ragwatch.pipeline.judging import FIRST_PAUSE, LONGEST_PAUSE, MOST_DOUBLINGS, JudgingLoop, JudgingRules
from ragwatch.pipeline.self_tests import JudgeSelfTests
from ragwatch.ports import OpenBatch, Store
from ragwatch.ports.judging import BatchJudge, Collected
from ragwatch.telemetry import Telemetry

MOST_ENTRIES = 500
MOST_OPEN = 16  # batches out at a time; while there are so many, the next one grows
LONGEST_WAIT = 300.0  # seconds until fewer draws than make a batch are sent as one
SOONEST_LOOK, LATEST_LOOK = 2.0, 300.0
LOOK_SHARE = 0.1  # of a batch's age, until it is looked at again
GRACE = 600.0  # seconds until a batch that the provider does not list is taken to have never arrived
A_DAY = 86400.0
LOST = 2 * A_DAY  # batches end within a day; what nobody can tell anything about for two is given up


@dataclass(frozen=True, slots=True)
class _SentDraw:
    """A draw that is out."""

    draw: Draw
    reservation: int


class BatchJudgingLoop(JudgingLoop):
    """The loop of one judge that is asked by message batches. Its trials, which are few, are calls like any other's."""

    sends_batches = True

    def __init__(
        self,
        judge: BatchJudge,
        rules: JudgingRules,
        *,
        store: Store,
        telemetry: Telemetry,
        clock: Callable[[], float],
        trials: JudgeSelfTests | None = None,
    ) -> None:
        super().__init__(judge, rules, store=store, telemetry=telemetry, clock=clock, trials=trials)
        self._batches = judge
        self._looks: dict[int, float] = {}  # by batch, when it is looked at next
        self._telemetry = telemetry
        self._refusals = 0
        self._rest_until = 0.0

    async def step(self) -> bool:
        """Collect the batches that have ended, and send one when enough waits. False when nothing was to be done."""
        await self._settle()
        batches = await asyncio.to_thread(self._store.batches, self.judge.name)
        self._looks = {batch.id: self._looks.get(batch.id, 0.0) for batch in batches}
        looked = [await self._look(batch) for batch in batches if self._looks[batch.id] <= self._clock()]
        sent = len(batches) < MOST_OPEN and self._clock() >= self._rest_until and await self._gather()
        return sent or any(looked)

    async def _look(self, batch: OpenBatch) -> bool:
        """Go on with a batch as far as that is possible now. True when something became of it."""
        age = self._clock() - batch.prepared
        self._looks[batch.id] = self._clock() + min(LATEST_LOOK, max(SOONEST_LOOK, LOOK_SHARE * age))
        out = await asyncio.to_thread(self._out, batch)
        try:
            if batch.provider_id is None:
                return await self._trace(batch, out, age)
            if out and not await self._batches.ended(batch.provider_id):
                return False
            await self._collect_batch(batch, batch.provider_id, out)
        except JudgeError as error:
            if age < LOST:
                return False
            self._telemetry.draw_put_back(self.judge.name, error.reason, f"a batch is given up after two days: {error}")
            await asyncio.to_thread(self._store.close_batch, batch.id)
        return True

    async def _trace(self, batch: OpenBatch, out: Mapping[str, _SentDraw], age: float) -> bool:
        """Find out whether the provider has a batch that has no name."""
        found = await self._batches.find(set(out), batch.prepared)
        if found is not None:
            await asyncio.to_thread(self._store.send_batch, batch.id, found)
            self._looks[batch.id] = 0.0
            return True
        if age < GRACE:
            return False
        await self._dissolve(batch.id, out)  # it never arrived, so nothing was paid
        return True

    async def _collect_batch(self, batch: OpenBatch, provider_id: str, out: Mapping[str, _SentDraw]) -> None:
        """Pay and settle every result; what has none, or none that is final, goes back to the queue.

        A reply about a text that was damaged since cannot be understood: its draw goes back too, and is settled there.
        """
        samples = {name: entry.draw.sample for name, entry in out.items() if entry.draw.damage is None}
        back: list[str] = []
        async for name, result in self._batches.results(provider_id, samples, batch.seed):
            entry = out[name]
            if result.usage is not None:  # paid before it is settled: a kill between leaves nothing unpaid
                cost = Cost(result.usage.cost_usd, result.usage.tokens)
                await asyncio.to_thread(self._store.pay, entry.reservation, cost)
            if not await self._take(entry.draw, result, self._clock() - batch.prepared):
                back.append(entry.draw.key)
        await self._settle()
        await asyncio.to_thread(self._store.close_batch, batch.id)
        await asyncio.to_thread(self._postpone, back)

    async def _take(self, draw: Draw, result: Collected, seconds: float) -> bool:
        """Keep the verdict that a result is, to be settled. False when the draw is to be read again."""
        judge = self.judge
        reading = Reading(judge.name, judge.kind, judge.version, seconds, result.usage or Usage())
        if isinstance(result.found, JudgeError):
            return self._refuse(draw, result.found, reading)
        try:
            verdict = judged(draw, reading, result.found)
        except ShapeError as error:
            return self._refuse(draw, JudgeError(UnjudgedReason.UNREADABLE, str(error)), reading)
        self._done.verdicts.append(verdict)
        self._done.tallies.update(await self._trials.of(verdict, self._reader))
        return True

    def _refuse(self, draw: Draw, error: JudgeError, reading: Reading) -> bool:
        """Keep an unjudged verdict. False when the error is none: asking again may help."""
        if not error.permanent:
            self._telemetry.draw_put_back(self.judge.name, error.reason, str(error))
            return False
        self._telemetry.draw_failed(self.judge.name, error.reason, str(error))
        self._done.verdicts.append(Unjudged(draw, reading, UnjudgedReason(error.reason), str(error)))
        return True

    async def _gather(self) -> bool:
        """Send what waits, when it is enough or has waited for long. False when it is neither."""
        draws = await asyncio.to_thread(self._enough)
        if not draws:
            return False
        seed = self._batches.seed()
        reservations = await self._reserved(draws, seed)
        await self._settle()
        if reservations:
            await self._send(reservations, seed)
        return True

    def _enough(self) -> list[Draw]:
        """Draws for one batch, leased; none while too few wait."""
        draws = self._lease(1, self._clock() - LONGEST_WAIT)
        late = bool(draws)
        draws += self._lease(self._rules.batch - len(draws))
        if len(draws) < self._rules.batch and not late:
            self._store.postpone(self.judge.name, [draw.key for draw in draws], self._clock())
            return []
        return draws + self._lease(max(0, MOST_ENTRIES - len(draws)))

    async def _reserved(self, draws: Sequence[Draw], seed: str) -> dict[str, int]:
        """Reservations by key. What needs no call is judged; what has no money at present goes back."""
        found: dict[str, int] = {}
        for index, draw in enumerate(draws):
            try:
                reserved = await self._reserve(draw, seed)
            except JudgeError as error:
                if self._refuse(draw, error, self._reader.nothing):
                    continue
                await asyncio.to_thread(self._postpone, [each.key for each in draws[index:]])
                break
            if isinstance(reserved, Evidence):
                await self._take(draw, Collected(reserved, FREE), 0.0)
            else:
                found[draw.key] = reserved
        return found

    async def _reserve(self, draw: Draw, seed: str) -> int | Evidence:
        if draw.damage is not None:
            raise JudgeError(UnjudgedReason.DAMAGED, f"sample {draw.key}: {draw.damage}")
        if not draw.sample.answer.strip():
            raise JudgeError(UnjudgedReason.EMPTY_ANSWER, "the answer is empty")
        return await self._batches.reserve(draw.sample, seed)

    async def _send(self, reservations: Mapping[str, int], seed: str) -> None:
        """Send a batch. What it holds is noted before, so that a kill at any instant loses nothing."""
        now = self._clock()
        number = await asyncio.to_thread(self._store.prepare_batch, self.judge.name, reservations, seed, now=now)
        self._looks[number] = now + SOONEST_LOOK
        out = await asyncio.to_thread(self._out, OpenBatch(number, None, now, seed))
        try:
            name = await self._batches.submit({each: entry.draw.sample for each, entry in out.items()}, seed)
        except JudgeError as error:
            self._telemetry.draw_put_back(self.judge.name, error.reason, f"a batch was not accepted: {error}")
            self._rest_until = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(MOST_DOUBLINGS, self._refusals))
            self._refusals += 1
            await self._dissolve(number, out)
            return
        self._refusals = 0
        if name is not None:
            await asyncio.to_thread(self._store.send_batch, number, name)

    async def _dissolve(self, batch: int, out: Mapping[str, _SentDraw]) -> None:
        """Forget a batch that the provider does not have: nothing was paid, and its draws go back to the queue."""
        for entry in out.values():
            await asyncio.to_thread(self._store.pay, entry.reservation, Cost())
        await asyncio.to_thread(self._store.close_batch, batch)
        await asyncio.to_thread(self._postpone, [entry.draw.key for entry in out.values()])

    def _out(self, batch: OpenBatch) -> dict[str, _SentDraw]:
        """What is out with a batch, by the ids that the provider is given. A draw's ids differ between batches."""
        entries = (_SentDraw(draw, reservation) for draw, reservation in self._store.batched(batch.id))
        return {key_of(batch.seed, entry.draw.key): entry for entry in entries}
