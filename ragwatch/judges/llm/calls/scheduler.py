"""Pool: who may call now. Places, the pause after a 429, pacing, the breaker, and how much may be asked twice."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from ragwatch.core.verdict import UnjudgedReason
from ragwatch.errors import JudgeError
from ragwatch.judges.llm.calls.circuit_breaker import CircuitBreaker
from ragwatch.judges.llm.calls.failures import CallError, CallFailure
from ragwatch.judges.llm.calls.limits import RateLimit
from ragwatch.judges.llm.calls.rate_limiter import RateLimiter
from ragwatch.telemetry import Telemetry

RETRY_SHARE = 0.1  # of all calls
RETRY_BURST = 10.0
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0
LONGEST_PAUSE = 3600.0  # whatever a header says, an hour later we look again
_MOST_DOUBLINGS = 6


class Clock(Protocol):
    """Time, so that tests can bring their own."""

    def now(self) -> float:
        """Seconds since some instant; never runs backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class RealClock:
    """The machine's."""

    def now(self) -> float:
        """Seconds since some instant."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class CallSlot:
    """Leave to make one call; `decides` when it alone is let through a breaker that is open."""

    decides: bool


class CallScheduler:
    """All calls of one judge pass through here.

    Args:
        judge: Its name.
        concurrency: Calls at a time.
        telemetry: Hears of the breaker and of rate limits.
        clock: Time.
        rng: Chance, for waits that must not coincide.
    """

    def __init__(self, judge: str, *, concurrency: int, telemetry: Telemetry, clock: Clock, rng: random.Random) -> None:
        self._judge = judge
        self._telemetry = telemetry
        self._clock = clock
        self._rng = rng
        self._places = asyncio.Semaphore(concurrency)
        self._breaker = CircuitBreaker()
        self._pace = RateLimiter()
        self._paused_until = 0.0
        self._throttled = 0
        self._spare = RETRY_BURST

    @property
    def healthy(self) -> bool:
        """The breaker is closed."""
        return not self._breaker.is_open

    def ready_in(self) -> float:
        """Seconds until a call may be tried; 0 for now."""
        now = self._clock.now()
        return max(0.0, self._paused_until - now, self._breaker.wait(now))

    @asynccontextmanager
    async def turn(self, until: float) -> AsyncIterator[CallSlot]:
        """A place in the pool for one call, when it is its turn.

        Args:
            until: The instant at which waiting has no point any more.

        Raises:
            JudgeError: It would have to wait for longer; not permanent.
        """
        async with self._places:
            await self._wait(until)
            now = self._clock.now()
            turn = CallSlot(self._breaker.begin())
            self._pace.begin(now)
            self._spare = min(RETRY_BURST, self._spare + RETRY_SHARE)
            try:
                yield turn
            finally:
                self._breaker.give_up(decides=turn.decides)

    async def _wait(self, until: float) -> None:
        """Wait for the end of a pause and for the pace; others may prolong both meanwhile."""
        while True:
            now = self._clock.now()
            if left := self._breaker.wait(now):
                raise _not_now(UnjudgedReason.UNAVAILABLE, f"left alone for another {left:.0f} s after failures")
            if now > until:
                raise _not_now(UnjudgedReason.UNAVAILABLE, "its turn did not come in time")
            seconds = max(0.0, self._paused_until - now, self._pace.wait(now))
            if now + seconds > until:
                raise _not_now(UnjudgedReason.RATE_LIMITED, f"the next call may start in {seconds:.0f} s")
            if not seconds:
                return
            await self._clock.sleep(seconds)

    def answered(self, turn: CallSlot, limits: tuple[RateLimit, ...], tokens: int) -> None:
        """A call was answered, whatever the answer is worth."""
        self._throttled = 0
        if tokens:
            self._pace.took(tokens)
        self._hear(limits)
        if self._breaker.good(self._clock.now(), decides=turn.decides):
            self._telemetry.breaker(self._judge, is_open=False)

    def failed(self, turn: CallSlot, failed: CallError) -> None:
        """A call was not answered."""
        now = self._clock.now()
        self._hear(failed.limits)
        if failed.reason is CallFailure.RATE_LIMITED:
            self._throttled += 1
            wait = self.backoff(self._throttled) if failed.wait is None else failed.wait
            self._paused_until = max(self._paused_until, now + min(wait, LONGEST_PAUSE))
        if not failed.rule.sick:
            return
        seconds = self._breaker.bad(now, decides=turn.decides, fatal=failed.fatal)
        if seconds is not None:
            why = f"{failed.reason}: {failed}"
            self._telemetry.breaker(self._judge, is_open=True, why=why, seconds=seconds)

    def may_repeat(self) -> bool:
        """Take leave to ask once more. At most a tenth of all calls are such, so that a sick provider is spared."""
        if self._spare < 1.0:
            return False
        self._spare -= 1.0
        return True

    def backoff(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row: evenly from 0 to 1 s, doubled each time, 60 s at most.

        Source: M. Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015), full jitter.
        """
        return self._rng.uniform(0.0, min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)))

    def _hear(self, limits: tuple[RateLimit, ...]) -> None:
        self._pace.heard(limits, self._clock.now())
        for limit in limits:
            self._telemetry.rate_limit(self._judge, limit.name, limit.left)


def _not_now(reason: UnjudgedReason, message: str) -> JudgeError:
    return JudgeError(reason, message, permanent=False)
