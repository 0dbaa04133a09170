"""Schedules the calls of one judge: concurrency, pause after a 429, rate limiter, circuit breaker, retry budget."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from ragwatch.core.verdict import UnjudgedReason
from ragwatch.errors import JudgeError
from ragwatch.judges.llm.calls.circuit_breaker import CircuitBreaker
from ragwatch.judges.llm.calls.failures import CallError, CallFailure
from ragwatch.judges.llm.calls.limits import RateLimit
from ragwatch.telemetry import Telemetry

LOW_SHARE = 0.2
MAX_INTERVAL_SECONDS = 3600.0  # an upper bound on what a header can ask for
_SMOOTHING = 0.1  # weight of the latest call in the moving average of tokens per call


class RateLimiter:
    """Computes when the next call may start.

    A limit refills at a constant rate. While more than a fifth of it is left, calls are not delayed. Below that, the
    interval between calls grows, up to the time that one call takes to refill when the limit is used up.
    """

    def __init__(self) -> None:
        self._tokens_per_call = 0.0
        self._interval = 0.0
        self._interval_ends = 0.0
        self._next_start = 0.0

    def record_tokens(self, tokens: int) -> None:
        """Record how many tokens a call used."""
        self._tokens_per_call += (tokens - self._tokens_per_call) * (_SMOOTHING if self._tokens_per_call else 1.0)

    def record_limits(self, limits: Iterable[RateLimit], now: float) -> None:
        """Record the rate limits that the provider has sent."""
        intervals = [(self._interval_for(limit), limit.seconds) for limit in limits]
        if intervals:
            self._interval = min(MAX_INTERVAL_SECONDS, max(interval for interval, _ in intervals))
            self._interval_ends = now + max(seconds for _, seconds in intervals)

    def wait(self, now: float) -> float:
        """Seconds until the next call may start."""
        return max(0.0, self._next_start - now)

    def begin_call(self, now: float) -> None:
        """Record that a call starts. An interval is obsolete once its limit has had the time to refill."""
        self._next_start = now + (self._interval if now < self._interval_ends else 0.0)

    def _interval_for(self, limit: RateLimit) -> float:
        used = limit.limit - limit.remaining
        if limit.remaining_share >= LOW_SHARE or used <= 0.0:
            return 0.0
        call_cost = 1.0 if limit.name == "requests" else self._tokens_per_call
        return (1.0 - limit.remaining_share / LOW_SHARE) * call_cost * limit.seconds / used


RETRIES_PER_CALL = 0.1
MAX_RETRY_BUDGET = 10.0
FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
MAX_PAUSE_SECONDS = 3600.0  # an upper bound on what a header can ask for
_MAX_DOUBLINGS = 6


class Clock(Protocol):
    """A monotonic clock; tests replace it."""

    def now(self) -> float:
        """Seconds since an arbitrary instant; it never decreases."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        ...


class RealClock:
    """The monotonic clock of the machine."""

    def now(self) -> float:
        """Seconds since an arbitrary instant."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class CallSlot:
    """Permission to make one call; `is_trial` for the one call that an open circuit breaker lets through."""

    is_trial: bool


class CallScheduler:
    """Decides when each call of a judge may start.

    Args:
        judge: Name of the judge.
        concurrency: Maximum number of concurrent calls.
        telemetry: Reports the circuit breaker and rate limits.
        clock: Clock for waits.
        rng: Source of the jitter of backoffs.
    """

    def __init__(self, judge: str, *, concurrency: int, telemetry: Telemetry, clock: Clock, rng: random.Random) -> None:
        self._judge = judge
        self._telemetry = telemetry
        self._clock = clock
        self._rng = rng
        self._semaphore = asyncio.Semaphore(concurrency)
        self._circuit_breaker = CircuitBreaker()
        self._rate_limiter = RateLimiter()
        self._paused_until = 0.0
        self._consecutive_429s = 0
        self._retry_budget = MAX_RETRY_BUDGET

    @property
    def healthy(self) -> bool:
        """Whether the circuit breaker is closed."""
        return self._circuit_breaker.is_closed

    def ready_in(self) -> float:
        """Seconds until a call may be tried; 0 for now."""
        now = self._clock.now()
        return max(0.0, self._paused_until - now, self._circuit_breaker.wait(now))

    @asynccontextmanager
    async def slot(self, until: float) -> AsyncIterator[CallSlot]:
        """Wait for permission to make one call, and hold its slot.

        Args:
            until: Deadline, as a reading of the clock.

        Raises:
            JudgeError: The call cannot start before the deadline; not permanent.
        """
        async with self._semaphore:
            await self._wait(until)
            now = self._clock.now()
            slot = CallSlot(self._circuit_breaker.begin_call())
            self._rate_limiter.begin_call(now)
            self._retry_budget = min(MAX_RETRY_BUDGET, self._retry_budget + RETRIES_PER_CALL)
            try:
                yield slot
            finally:
                self._circuit_breaker.end_call(is_trial=slot.is_trial)

    async def _wait(self, until: float) -> None:
        """Wait for the pause and the rate limiter, both of which other calls may extend meanwhile."""
        while True:
            now = self._clock.now()
            if open_seconds := self._circuit_breaker.wait(now):
                message = f"the circuit breaker is open for another {open_seconds:.0f} s"
                raise _not_now(UnjudgedReason.UNAVAILABLE, message)
            if now > until:
                raise _not_now(UnjudgedReason.UNAVAILABLE, "no slot became free before the deadline")
            seconds = max(0.0, self._paused_until - now, self._rate_limiter.wait(now))
            if now + seconds > until:
                raise _not_now(UnjudgedReason.RATE_LIMITED, f"the next call may start in {seconds:.0f} s")
            if not seconds:
                return
            await self._clock.sleep(seconds)

    def record_success(self, slot: CallSlot, limits: tuple[RateLimit, ...], tokens: int) -> None:
        """Record a call that was answered, with a valid reply or not."""
        self._consecutive_429s = 0
        if tokens:
            self._rate_limiter.record_tokens(tokens)
        self._record_limits(limits)
        if self._circuit_breaker.record_success(self._clock.now(), is_trial=slot.is_trial):
            self._telemetry.breaker(self._judge, is_open=False)

    def record_failure(self, slot: CallSlot, error: CallError) -> None:
        """Record a call that was not answered."""
        now = self._clock.now()
        self._record_limits(error.limits)
        if error.reason is CallFailure.RATE_LIMITED:
            self._consecutive_429s += 1
            wait = self.backoff(self._consecutive_429s) if error.wait is None else error.wait
            self._paused_until = max(self._paused_until, now + min(wait, MAX_PAUSE_SECONDS))
        if not error.rule.trips_circuit_breaker:
            return
        seconds = self._circuit_breaker.record_failure(now, is_trial=slot.is_trial, fatal=error.fatal)
        if seconds is not None:
            why = f"{error.reason}: {error}"
            self._telemetry.breaker(self._judge, is_open=True, why=why, seconds=seconds)

    def take_retry(self) -> bool:
        """Take one retry from the budget, and return whether one was left. At most a tenth of all calls are retries."""
        if self._retry_budget < 1.0:
            return False
        self._retry_budget -= 1.0
        return True

    def backoff(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row: uniform in 0 to 1 s, doubled each time, 60 s at most.

        Source: M. Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015), full jitter.
        """
        return self._rng.uniform(
            0.0, min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
        )

    def _record_limits(self, limits: tuple[RateLimit, ...]) -> None:
        self._rate_limiter.record_limits(limits, self._clock.now())
        for limit in limits:
            self._telemetry.rate_limit(self._judge, limit.name, limit.remaining_share)


def _not_now(reason: UnjudgedReason, message: str) -> JudgeError:
    return JudgeError(reason, message, permanent=False)
