"""Judging: pending draws are read by one judge, scored, and settled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from ragwatch.core.cascade import FollowRule, follow_probability
from ragwatch.core.sample import Draw
from ragwatch.core.sampling import chosen, key_of
from ragwatch.core.tally import Tallies
from ragwatch.core.verdict import Judged, Reading, Unjudged, UnjudgedReason, Verdict
from ragwatch.errors import RagwatchError
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.pipeline.self_tests import JudgeSelfTests
from ragwatch.ports import Assignment, FollowUp, Judge, Store
from ragwatch.telemetry import Telemetry

GIVEN_UP_AT_ONCE = 500
LEAP = 600.0  # seconds that a draw waits, at most, between two looks: a clock that moves by more was set, or we slept
MOST_CHARS = 8 << 20  # of texts that are read or wait for their turn, above which no more are taken up
SETTLE_SECONDS = 0.5  # one transaction for all that was read within
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 600.0
MOST_DOUBLINGS = 7


@dataclass(frozen=True, slots=True)
class Follower:
    """Another judge that reads behind this one.

    Attributes:
        rule: How often.
        share: What these probabilities are multiplied with at present (its budget).
    """

    rule: FollowRule
    share: Callable[[], float]


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """Limits of one judge.

    Attributes:
        batch: Draws that are read or wait for their turn at a time.
        timeout_seconds: A reading that takes longer is given up.
        lease_seconds: How long a leased draw is held back from others.
        max_age_seconds: A draw that has been pending for longer is settled as unjudged.
        followers: Judges that read behind this one, by name.
    """

    batch: int = 32
    timeout_seconds: float = 60.0
    lease_seconds: float = 300.0
    max_age_seconds: float = 6 * 3600.0
    followers: Mapping[str, Follower] = field(default_factory=dict)


class WaitingTime:
    """How long draws may wait. Time that this process has not seen pass is no waiting: a leap of the clock is left out.

    Args:
        max_age: In seconds.
    """

    def __init__(self, max_age: float) -> None:
        self._max_age = max_age
        self._last: float | None = None
        self._leapt, self._unseen = 0.0, 0.0  # when the clock leapt, and by how much

    def before(self, now: float) -> float:
        """Instant before which a draw must have come to have waited for too long."""
        moved = 0.0 if self._last is None else now - self._last
        self._last = now
        if moved > LEAP:
            self._leapt, self._unseen = now, self._unseen + moved - LEAP
        elif moved < 0.0:  # what it was ahead is taken back
            self._leapt, self._unseen = self._leapt + moved, max(0.0, self._unseen + moved)
        if now - self._leapt >= self._max_age:  # all that came before has waited for as long since
            self._unseen = 0.0
        return now - self._max_age - self._unseen


_Outcome = tuple[Verdict | Deferred, Tallies]


@dataclass(slots=True)
class _FinishedReading:
    """What was read and is not written yet."""

    verdicts: list[Verdict] = field(default_factory=list)
    tallies: Tallies = field(default_factory=Counter)


class JudgingLoop:
    """The loop of one judge. Readings go on between steps, so that a slow one holds nobody up."""

    sends_batches = False

    def __init__(
        self,
        judge: Judge,
        rules: JudgingRules,
        *,
        store: Store,
        telemetry: Telemetry,
        clock: Callable[[], float],
        trials: JudgeSelfTests | None = None,
    ) -> None:
        self.judge = judge
        self._reader = DrawReader(judge, timeout_seconds=rules.timeout_seconds, telemetry=telemetry)
        self._trials = trials or JudgeSelfTests()
        self._rules = rules
        self._store = store
        self._clock = clock
        self._reading: set[asyncio.Task[_Outcome]] = set()
        self._done = _FinishedReading()
        self._put_back: Counter[str] = Counter()  # by key, how often
        self._held: dict[str, int] = {}  # by key of the draws that are read, or wait for their place: their turn
        self._chars: dict[str, int] = {}  # by key of the same: how long their texts are
        self._turns = count()
        self._ending = False
        self._patience = WaitingTime(rules.max_age_seconds)

    async def step(self) -> bool:
        """Take pending draws up, and settle what was read. False when nothing is pending.

        Verdicts that could not be written are kept and written first the next time: a reading may have cost money.
        """
        if not self._done.verdicts:
            await self._take_up()
            if not self._reading:
                return False
            await self._collect(SETTLE_SECONDS)
        await self._settle()
        return True

    async def finish(self) -> None:
        """Wait for the readings under way, and settle them. What goes back to the queue is free for whoever comes."""
        self._ending = True
        self._reader.stop()
        while self._reading:
            await self._collect(None)
        await self._settle()

    async def close(self) -> None:
        """Give up the readings under way (their draws stay pending), and release the judge."""
        for task in self._reading:
            task.cancel()
        ended = await asyncio.gather(*self._reading, return_exceptions=True)
        self._reading.clear()
        outcomes = self._in_turn(each for each in ended if isinstance(each, tuple))
        self._done.verdicts += [each for each, _ in outcomes if not isinstance(each, Deferred)]
        with suppress(RagwatchError):  # these draws stay pending
            await self._settle()
        await self.judge.close()

    def inherit(self, old: JudgingLoop) -> None:
        """Take over what the same judge had read, and the store would not take, before the configuration changed."""
        self._done = old._done

    async def expire(self) -> bool:
        """Settle as unjudged what has been pending for too long. True when there was some."""
        if not self.sends_batches:  # left over from when it was `relaxed`
            for batch in await asyncio.to_thread(self._store.batches, self.judge.name):
                await asyncio.to_thread(self._store.close_batch, batch.id)
        before = self._patience.before(self._clock())
        some = False
        while draws := await asyncio.to_thread(self._lease, GIVEN_UP_AT_ONCE, before):
            late: list[Verdict] = [Unjudged(draw, self._reader.nothing, UnjudgedReason.EXPIRED) for draw in draws]
            await asyncio.to_thread(self._store.settle, late, self._follow_ups(late))
            for verdict in late:
                self._put_back.pop(verdict.draw.key, None)
            some = True
        return some

    async def _take_up(self) -> None:
        room = self._rules.batch - len(self._reading)
        if sum(self._chars.values()) > MOST_CHARS:  # long answers are read a few at a time
            room = 0
        if room > 0 and self.judge.ready_in() <= 0.0:
            draws = await asyncio.to_thread(self._lease, room)
            fresh = [draw for draw in draws if draw.key not in self._held]  # a lease may end before a reading begins
            self._held.update((draw.key, next(self._turns)) for draw in fresh)
            self._chars.update((draw.key, draw.sample.chars) for draw in fresh)
            self._reading |= {asyncio.create_task(self._read(draw)) for draw in fresh}

    async def _read(self, draw: Draw) -> _Outcome:
        outcome = await self._reader.read(draw)
        try:
            return outcome, await self._trials.of(outcome, self._reader) if isinstance(outcome, Judged) else Counter()
        except asyncio.CancelledError:  # only the test of the judge is given up: the reading is paid
            return outcome, Counter()

    async def _collect(self, seconds: float | None) -> None:
        done, self._reading = await asyncio.wait(self._reading, timeout=seconds)
        back: list[Draw] = []
        for outcome, tallies in self._in_turn(task.result() for task in done):
            del self._held[outcome.draw.key], self._chars[outcome.draw.key]
            if isinstance(outcome, Deferred):
                back.append(outcome.draw)
            else:
                self._done.verdicts.append(outcome)
                self._done.tallies.update(tallies)
        if back:
            await asyncio.to_thread(self._postpone, [draw.key for draw in back])

    def _in_turn(self, outcomes: Iterable[_Outcome]) -> list[_Outcome]:
        """In the order in which they were taken up: detectors meet the scores of one log in one order, kill or no."""
        return sorted(outcomes, key=lambda each: self._held[each[0].draw.key])

    async def _settle(self) -> None:
        done = self._done
        if not done.verdicts:
            return
        await asyncio.to_thread(self._store.settle, done.verdicts, self._follow_ups(done.verdicts), done.tallies)
        for verdict in done.verdicts:
            self._put_back.pop(verdict.draw.key, None)
        self._done = _FinishedReading()

    def _postpone(self, keys: Sequence[str]) -> None:
        """Hold draws back a little longer each time, and not before the judge wants to be asked again."""
        if self._ending:  # what held them back was this judge, or its end
            self._store.postpone(self.judge.name, keys, self._clock())
            return
        for key in keys:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(MOST_DOUBLINGS, self._put_back[key]))
            self._put_back[key] += 1
            self._store.postpone(self.judge.name, [key], self._clock() + max(pause, self.judge.ready_in()))

    def _follow_ups(self, verdicts: Sequence[Verdict]) -> list[FollowUp]:
        now = self._clock()
        return [
            FollowUp(verdict.draw.key, self.judge.name, Assignment(name, verdict.draw.probability * share), now)
            for verdict in verdicts
            for name, follower in self._rules.followers.items()
            if (share := _share(follower, verdict)) >= 1.0 or chosen(key_of(name, verdict.draw.key), share)
        ]

    def _lease(self, limit: int, before: float | None = None) -> list[Draw]:
        now, seconds = self._clock(), self._rules.lease_seconds
        return self._store.lease(self.judge.name, limit, now=now, seconds=seconds, before=before)


def _share(follower: Follower, verdict: Verdict) -> float:
    evidence = verdict.evidence if isinstance(verdict, Judged) else None
    return follow_probability(follower.rule, evidence) * follower.share()


def give_up(store: Store, judges: Collection[str], *, now: float) -> int:
    """Settle what waits for judges that are no longer configured as unjudged. Returns how many draws that were.

    Nobody reads on behind them, although a draw that its judge could not read goes on as a rule: a configuration names
    the judge that one follows, so whoever followed these follows none or another one by now, and gets from there the
    draws that its probabilities are about. Its own means lose nothing: a draw that it was never given has no part in
    them, as none has from before a judge was configured.
    """
    settled = 0
    for name in sorted(set(store.pending()) - set(judges)):
        reading = Reading(name, kind="", version="")
        for batch in store.batches(name):
            store.close_batch(batch.id)
        while draws := store.lease(name, GIVEN_UP_AT_ONCE, now=now, seconds=1.0):
            settled += store.settle([Unjudged(draw, reading, UnjudgedReason.JUDGE_REMOVED) for draw in draws])
    return settled
