"""Rate limiter: spaces out calls when the rate limit of a provider runs low. Pure: the caller passes `now`."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch.judges.llm.calls.limits import RateLimit

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
