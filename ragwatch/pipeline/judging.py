"""Judging: reads pending draws with one judge, scores and settles them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

from ragwatch.errors import RagwatchError
from ragwatch.model.sample import Draw
from ragwatch.pipeline.reading import Deferred, DrawReader, JudgeSelfTests
from ragwatch.ports import Assignment, FollowUp, Judge, LoopContext, Store
from ragwatch.statistics.sampling import FollowRule, SamplingHash, follow_probability, key_of
from ragwatch.statistics.segments import Segments
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict import Judged, Reading, Unjudged, UnjudgedReason, Verdict

MAX_SETTLED_AT_ONCE = 500
MAX_CLOCK_STEP_SECONDS = 600.0  # between two checks of the clock: one that moves by more was set, or the host slept
MAX_CHARS = 8 << 20  # of the texts of leased draws, above which no more draws are leased
SETTLE_SECONDS = 0.5  # all that was read within is settled in one transaction
MIN_PAUSE_SECONDS = 5.0
MAX_PAUSE_SECONDS = 600.0
MAX_DOUBLINGS = 7


@dataclass(frozen=True, slots=True)
class Follower:
    """Another judge that reads after this one in a cascade."""

    rule: FollowRule  # how often
    share: Callable[[], float]  # factor on these probabilities at present, from its budget and its queue


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """Limits of one judge."""

    batch: int = 32  # maximum number of leased draws
    timeout_seconds: float = 60.0  # a reading that takes longer is cancelled
    lease_seconds: float = 300.0  # how long nobody else can lease a leased draw
    max_age_seconds: float = 6 * 3600.0  # a draw that has been pending for longer is settled as unjudged
    followers: Mapping[str, Follower] = field(default_factory=dict)  # judges that read after this one, by name
    # decides which draws they read
    sampling: SamplingHash = SamplingHash()  # noqa: RUF009 - it holds nothing that changes
    # finds the segments of a draw in its metadata
    segments: Segments = Segments()  # noqa: RUF009 - the same

    def in_segments(self, draw: Draw) -> Draw:
        """A draw with its segments."""
        return replace(draw, segments=self.segments.of(draw.sample.metadata)) if self.segments.values else draw


class WaitingTime:
    """Decides which draws have been pending for too long. Jumps of the clock do not count as waiting time."""

    def __init__(self, max_age: float) -> None:
        self._max_age = max_age
        self._last: float | None = None
        self._jumped_at, self._jump = 0.0, 0.0  # when the clock jumped, and by how much

    def before(self, now: float) -> float:
        """Instant before which a draw must have become pending to have waited for too long."""
        moved = 0.0 if self._last is None else now - self._last
        self._last = now
        if moved > MAX_CLOCK_STEP_SECONDS:
            self._jumped_at, self._jump = now, self._jump + moved - MAX_CLOCK_STEP_SECONDS
        elif moved < 0.0:  # the clock was ahead and is set back
            self._jumped_at, self._jump = self._jumped_at + moved, max(0.0, self._jump + moved)
        if now - self._jumped_at >= self._max_age:  # all draws of before the jump have waited that long since
            self._jump = 0.0
        return now - self._max_age - self._jump


_Outcome = tuple[Verdict | Deferred, Tallies]


@dataclass(slots=True)
class _FinishedReading:
    """Verdicts and tallies that are not written yet."""

    verdicts: list[Verdict] = field(default_factory=list)
    tallies: Tallies = field(default_factory=Counter)


class JudgingLoop:
    """The loop of one judge. Readings go on between steps, so that a slow one does not block others."""

    collects_batches = False
    """Whether message batches that are open are collected."""

    def __init__(
        self, judge: Judge, rules: JudgingRules, context: LoopContext, *, self_tests: JudgeSelfTests | None = None
    ) -> None:
        self._store, self._clock = context.store, context.clock
        self.judge = judge
        self._reader = DrawReader(judge, timeout_seconds=rules.timeout_seconds, telemetry=context.telemetry)
        self._self_tests = self_tests or JudgeSelfTests()
        self._rules = rules
        self._tasks: set[asyncio.Task[_Outcome]] = set()
        self._done = _FinishedReading()
        self._deferrals: Counter[str] = Counter()  # number by key
        self._order: dict[str, int] = {}  # by key of the leased draws: the order in which they were leased
        self._chars: dict[str, int] = {}  # by key of the leased draws: length of their texts
        self._numbers = count()
        self._ending = False
        self._waiting = WaitingTime(rules.max_age_seconds)

    async def step(self) -> bool:
        """Lease pending draws and settle what was read. False when nothing is pending.

        Verdicts that could not be written are kept and written first in the next step: they may have cost money.
        """
        if not self._done.verdicts:
            await self._start_readings()
            if not self._tasks:
                return False
            await self._collect(SETTLE_SECONDS)
        await self._settle()
        return True

    async def finish(self) -> None:
        """Wait for the readings under way and settle them. Deferred draws can be leased at once."""
        self._ending = True
        self._reader.stop()
        while self._tasks:
            await self._collect(None)
        await self._settle()

    async def close(self) -> None:
        """Cancel the readings under way (their draws stay pending), and close the judge."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        outcomes = self._in_order(result for result in results if isinstance(result, tuple))
        self._done.verdicts += [outcome for outcome, _ in outcomes if not isinstance(outcome, Deferred)]
        with suppress(RagwatchError):  # these draws stay pending
            await self._settle()
        await self.judge.close()

    def inherit(self, old: JudgingLoop) -> None:
        """Take over the verdicts that the loop of the same judge could not write before the configuration changed."""
        self._done = old._done

    async def expire(self) -> bool:
        """Settle draws that have been pending for too long as unjudged. True when there were some."""
        if not self.collects_batches:  # those of a judge of another kind with this name
            for batch in await asyncio.to_thread(self._store.batches, self.judge.name):
                await asyncio.to_thread(self._store.close_batch, batch.id)
        before = self._waiting.before(self._clock())
        expired = False
        while draws := await asyncio.to_thread(self._lease, MAX_SETTLED_AT_ONCE, before):
            reading = self._reader.no_reading
            verdicts: list[Verdict] = [Unjudged(draw, reading, UnjudgedReason.EXPIRED) for draw in draws]
            await asyncio.to_thread(self._store.settle, verdicts, self._follow_ups(verdicts))
            for verdict in verdicts:
                self._deferrals.pop(verdict.draw.key, None)
            expired = True
        return expired

    async def _start_readings(self) -> None:
        free = self._rules.batch - len(self._tasks)
        if sum(self._chars.values()) > MAX_CHARS:  # of long answers, fewer are read at a time
            free = 0
        if free > 0 and self.judge.ready_in() <= 0.0:
            draws = await asyncio.to_thread(self._lease, free)
            fresh = [draw for draw in draws if draw.key not in self._order]  # a lease may end before a reading begins
            self._order.update((draw.key, next(self._numbers)) for draw in fresh)
            self._chars.update((draw.key, draw.sample.chars) for draw in fresh)
            self._tasks |= {asyncio.create_task(self._read(draw)) for draw in fresh}

    async def _read(self, draw: Draw) -> _Outcome:
        outcome = await self._reader.read(draw)
        try:
            return outcome, await self._self_tests.run(outcome, self._reader) if isinstance(
                outcome, Judged
            ) else Counter()
        except asyncio.CancelledError:  # only the self-test is cancelled: the reading is paid
            return outcome, Counter()

    async def _collect(self, seconds: float | None) -> None:
        done, self._tasks = await asyncio.wait(self._tasks, timeout=seconds)
        deferred: list[str] = []
        for outcome, tallies in self._in_order(task.result() for task in done):
            del self._order[outcome.draw.key], self._chars[outcome.draw.key]
            if isinstance(outcome, Deferred):
                deferred.append(outcome.draw.key)
            else:
                self._done.verdicts.append(outcome)
                self._done.tallies.update(tallies)
        if deferred:
            await asyncio.to_thread(self._postpone, deferred)

    def _in_order(self, outcomes: Iterable[_Outcome]) -> list[_Outcome]:
        """Outcomes in the order of leasing: detectors get the scores of a log in the same order despite kills."""
        return sorted(outcomes, key=lambda outcome: self._order[outcome[0].draw.key])

    async def _settle(self) -> None:
        done = self._done
        if not done.verdicts:
            return
        await asyncio.to_thread(self._store.settle, done.verdicts, self._follow_ups(done.verdicts), done.tallies)
        for verdict in done.verdicts:
            self._deferrals.pop(verdict.draw.key, None)
        self._done = _FinishedReading()

    def _postpone(self, keys: Sequence[str]) -> None:
        """Defer draws, with exponential backoff, and at least until the judge is ready."""
        if self._ending:  # deferred because this judge failed or is closed: the next one may read them at once
            self._store.postpone(self.judge.name, keys, self._clock())
            return
        for key in keys:
            pause = min(MAX_PAUSE_SECONDS, MIN_PAUSE_SECONDS * 2 ** min(MAX_DOUBLINGS, self._deferrals[key]))
            self._deferrals[key] += 1
            self._store.postpone(self.judge.name, [key], self._clock() + max(pause, self.judge.ready_in()))

    def _follow_ups(self, verdicts: Sequence[Verdict]) -> list[FollowUp]:
        now = self._clock()
        return [
            FollowUp(verdict.draw.key, self.judge.name, Assignment(name, verdict.draw.probability * share), now)
            for verdict in verdicts
            for name, follower in self._rules.followers.items()
            if (share := _share(follower, verdict)) >= 1.0
            or self._rules.sampling.draws(key_of(name, verdict.draw.key), share)
        ]

    def _lease(self, limit: int, before: float | None = None) -> list[Draw]:
        now, seconds = self._clock(), self._rules.lease_seconds
        draws = self._store.lease(self.judge.name, limit, now=now, seconds=seconds, before=before)
        return [self._rules.in_segments(draw) for draw in draws]


def _share(follower: Follower, verdict: Verdict) -> float:
    evidence = verdict.evidence if isinstance(verdict, Judged) else None
    return follow_probability(follower.rule, evidence) * follower.share()


def give_up(store: Store, judges: Collection[str], *, now: float) -> int:
    """Settle draws that are pending for judges no longer configured as unjudged. Returns their number.

    No judge follows up on them, although draws that their judge could not read do have followers as a rule. A
    configuration names the judge that another one follows, so a follower of these now follows another judge, or none,
    and gets the draws that its probabilities are about from there. Its means lose nothing: a draw that it was never
    assigned is not part of them, as none is from before a judge was configured.
    """
    settled = 0
    for name in sorted(set(store.pending()) - set(judges)):
        reading = Reading(name, kind="", version="")
        for batch in store.batches(name):
            store.close_batch(batch.id)
        while draws := store.lease(name, MAX_SETTLED_AT_ONCE, now=now, seconds=1.0):
            settled += store.settle([Unjudged(draw, reading, UnjudgedReason.JUDGE_REMOVED) for draw in draws])
    return settled
