"""Schedules the calls of one judge: concurrency, pause after a 429, rate limiter, circuit breaker, retry budget."""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from enum import Enum, auto

from ragwatch.errors import JudgeError
from ragwatch.judges.llm.failures import CallError, CallFailure, RateLimit
from ragwatch.statistics.verdict import UnjudgedReason
from ragwatch.telemetry import Telemetry

SPAN_SECONDS = 20.0
MIN_FAILURES = 5
FAILING_SHARE = 0.5
FIRST_OPEN_SECONDS = 30.0
MAX_OPEN_SECONDS = 600.0
TRIAL_POLL_SECONDS = 1.0  # wait reported while a trial call is under way


class CircuitState(Enum):
    """State of a circuit breaker."""

    CLOSED = auto()
    OPEN = auto()
    HALF_OPEN = auto()  # the trial call is under way


class CircuitBreaker:
    """A circuit breaker that is closed, open, or half-open.

    It opens on a fatal failure, or when at least five calls and half of all calls of the last 20 s failed. It stays
    open for 30 s; then one trial call is let through. Success closes the circuit breaker; failure opens it again for
    twice as long, up to 10 minutes.
    """

    def __init__(self) -> None:
        self._state = CircuitState.CLOSED
        self._open_until = 0.0
        self._openings = 0
        self._calls: deque[tuple[float, bool]] = deque()
        self._failures = 0

    @property
    def is_closed(self) -> bool:
        """Whether all calls are let through."""
        return self._state is CircuitState.CLOSED

    def wait(self, now: float) -> float:
        """Seconds until a call may be tried; 0 for now."""
        if self._state is CircuitState.CLOSED:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        return TRIAL_POLL_SECONDS if self._state is CircuitState.HALF_OPEN else 0.0

    def begin_call(self) -> bool:
        """Record that a call begins. Returns whether it is the trial call."""
        if self._state is CircuitState.CLOSED:
            return False
        self._state = CircuitState.HALF_OPEN
        return True

    def end_call(self, *, is_trial: bool) -> None:
        """Record that a call has ended. A trial call without an outcome leaves the circuit breaker open."""
        if is_trial and self._state is CircuitState.HALF_OPEN:
            self._state = CircuitState.OPEN

    def record_success(self, now: float, *, is_trial: bool) -> bool:
        """Record a call that was answered. Returns whether that closes the circuit breaker."""
        if self._state is CircuitState.CLOSED:
            self._record(now, failed=False)
            return False
        if not is_trial:
            return False
        self._calls.clear()
        self._failures = self._openings = 0
        self._state = CircuitState.CLOSED
        return True

    def record_failure(self, now: float, *, is_trial: bool, fatal: bool) -> float | None:
        """Record a call that failed. Returns for how many seconds that opens the circuit breaker, or None."""
        if self._state is CircuitState.CLOSED:
            self._record(now, failed=True)
            failing = self._failures >= MIN_FAILURES and self._failures >= FAILING_SHARE * len(self._calls)
            return self._open(now) if fatal or failing else None
        return self._open(now) if is_trial else None

    def _open(self, now: float) -> float:
        seconds = min(MAX_OPEN_SECONDS, FIRST_OPEN_SECONDS * 2.0 ** min(self._openings, _MAX_DOUBLINGS))
        self._openings += 1
        self._state, self._open_until = CircuitState.OPEN, now + seconds
        return seconds

    def _record(self, now: float, *, failed: bool) -> None:
        self._calls.append((now, failed))
        self._failures += failed
        while self._calls[0][0] < now - SPAN_SECONDS:
            self._failures -= self._calls.popleft()[1]


LOW_SHARE = 0.2
MAX_PAUSE_SECONDS = 3600.0  # an upper bound on what a header can ask for
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
            self._interval = min(MAX_PAUSE_SECONDS, max(interval for interval, _ in intervals))
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
_MAX_DOUBLINGS = 10  # far beyond the highest of these bounds


class Clock:
    """A monotonic clock; tests replace it."""

    def now(self) -> float:
        """Seconds since an arbitrary instant; it never decreases."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        await asyncio.sleep(seconds)


class CallScheduler:
    """Decides when each call of a judge may start. `rng` is the source of the jitter of backoffs."""

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
    async def slot(self, until: float) -> AsyncIterator[bool]:
        """Wait until a deadline for permission to make one call, and hold its slot.

        Yields whether it is the trial call that an open circuit breaker lets through.

        Raises:
            JudgeError: The call cannot start before the deadline; not permanent.
        """
        async with self._semaphore:
            await self._wait(until)
            is_trial = self._circuit_breaker.begin_call()
            self._rate_limiter.begin_call(self._clock.now())
            self._retry_budget = min(MAX_RETRY_BUDGET, self._retry_budget + RETRIES_PER_CALL)
            try:
                yield is_trial
            finally:
                self._circuit_breaker.end_call(is_trial=is_trial)

    async def _wait(self, until: float) -> None:
        """Wait for the pause and the rate limiter, both of which other calls may extend meanwhile."""
        while True:
            now = self._clock.now()
            if open_seconds := self._circuit_breaker.wait(now):
                why = f"the circuit breaker is open for another {open_seconds:.0f} s"
                raise JudgeError(UnjudgedReason.UNAVAILABLE, why, permanent=False)
            if now > until:
                why = "no slot became free before the deadline"
                raise JudgeError(UnjudgedReason.UNAVAILABLE, why, permanent=False)
            seconds = max(0.0, self._paused_until - now, self._rate_limiter.wait(now))
            if now + seconds > until:
                why = f"the next call may start in {seconds:.0f} s"
                raise JudgeError(UnjudgedReason.RATE_LIMITED, why, permanent=False)
            if not seconds:
                return
            await self._clock.sleep(seconds)

    def record_success(self, limits: tuple[RateLimit, ...], tokens: int, *, is_trial: bool) -> None:
        """Record a call that was answered, with a valid reply or not."""
        self._consecutive_429s = 0
        if tokens:
            self._rate_limiter.record_tokens(tokens)
        self._record_limits(limits)
        if self._circuit_breaker.record_success(self._clock.now(), is_trial=is_trial):
            self._telemetry.breaker(self._judge, is_open=False)

    def record_failure(self, error: CallError, *, is_trial: bool) -> None:
        """Record a call that was not answered."""
        now = self._clock.now()
        self._record_limits(error.limits)
        if error.reason is CallFailure.RATE_LIMITED:
            self._consecutive_429s += 1
            wait = self.backoff(self._consecutive_429s) if error.wait is None else error.wait
            self._paused_until = max(self._paused_until, now + min(wait, MAX_PAUSE_SECONDS))
        if not error.rule.trips_circuit_breaker:
            return
        seconds = self._circuit_breaker.record_failure(now, is_trial=is_trial, fatal=error.rule.fatal)
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
