"""Pace: calls are spread out when a provider's rate limit runs low. Pure: `now` is given."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch.judges.llm.calls.limits import RateLimit

NEAR_EMPTY = 0.2
LONGEST_INTERVAL = 3600.0  # whatever a header says, an hour later we look again
_MEMORY = 0.1  # weight of the latest call in the mean of tokens a call takes


class RateLimiter:
    """When the next call may start.

    A limit refills evenly: what is missing is there again after so many seconds. When a fifth of it or less is left,
    calls are held back little by little, down to the speed at which it refills when it is empty.
    """

    def __init__(self) -> None:
        self._tokens = 0.0
        self._interval = 0.0
        self._ends = 0.0
        self._next = 0.0

    def took(self, tokens: int) -> None:
        """A call used so many tokens."""
        self._tokens += (tokens - self._tokens) * (_MEMORY if self._tokens else 1.0)

    def heard(self, limits: Iterable[RateLimit], now: float) -> None:
        """The provider has said what is left."""
        known = [(self._between(limit), limit.seconds) for limit in limits]
        if known:
            self._interval = min(LONGEST_INTERVAL, max(between for between, _ in known))
            self._ends = now + max(seconds for _, seconds in known)

    def wait(self, now: float) -> float:
        """Seconds until the next call may start."""
        return max(0.0, self._next - now)

    def begin(self, now: float) -> None:
        """A call starts. What was heard is of no use any more once the limit has had the time to be full again."""
        self._next = now + (self._interval if now < self._ends else 0.0)

    def _between(self, limit: RateLimit) -> float:
        missing = limit.limit - limit.remaining
        if limit.left >= NEAR_EMPTY or missing <= 0.0:
            return 0.0
        a_call = 1.0 if limit.name == "requests" else self._tokens
        return (1.0 - limit.left / NEAR_EMPTY) * a_call * limit.seconds / missing
