"""Breaker: a provider that fails is left alone for a while, and then asked by one call alone. Pure: `now` is given."""

from __future__ import annotations

from collections import deque

SPAN_SECONDS = 20.0
FEWEST_FAILURES = 5
FAILING_SHARE = 0.5
FIRST_OPEN = 30.0
LONGEST_OPEN = 600.0
LOOK_AGAIN = 1.0  # while the one call is under way
_MOST_DOUBLINGS = 10


class CircuitBreaker:
    """Closed, open until an instant, or half-open: one call decides.

    It opens on a fatal failure, or when at least five calls and half of all calls of the last 20 s failed; for 30 s,
    doubled each time the deciding call fails, up to 10 minutes.
    """

    def __init__(self) -> None:
        self._calls: deque[tuple[float, bool]] = deque()
        self._failures = 0
        self._openings = 0
        self._until: float | None = None
        self._deciding = False

    @property
    def is_open(self) -> bool:
        """Whether the provider is left alone, but for a deciding call."""
        return self._until is not None

    def wait(self, now: float) -> float:
        """Seconds until a call may be tried; 0 for now."""
        if self._until is None:
            return 0.0
        if now < self._until:
            return self._until - now
        return LOOK_AGAIN if self._deciding else 0.0

    def begin(self) -> bool:
        """A call begins. True when it is the one that decides."""
        self._deciding = self.is_open
        return self._deciding

    def give_up(self, *, decides: bool) -> None:
        """A call ended without telling anything about the provider."""
        if decides:
            self._deciding = False

    def good(self, now: float, *, decides: bool) -> bool:
        """A call was answered. True when that closes the breaker."""
        if self._until is None:
            self._note(now, failed=False)
            return False
        if not decides:
            return False
        self._calls.clear()
        self._failures = self._openings = 0
        self._until, self._deciding = None, False
        return True

    def bad(self, now: float, *, decides: bool, fatal: bool) -> float | None:
        """A call failed. Returns for how many seconds that opens the breaker; None when it does not."""
        if self._until is None:
            self._note(now, failed=True)
            failing = self._failures >= FEWEST_FAILURES and self._failures >= FAILING_SHARE * len(self._calls)
            return self._open(now) if fatal or failing else None
        return self._open(now) if decides else None

    def _open(self, now: float) -> float:
        seconds = min(LONGEST_OPEN, FIRST_OPEN * 2.0 ** min(self._openings, _MOST_DOUBLINGS))
        self._openings += 1
        self._until, self._deciding = now + seconds, False
        return seconds

    def _note(self, now: float, *, failed: bool) -> None:
        self._calls.append((now, failed))
        self._failures += failed
        while self._calls[0][0] < now - SPAN_SECONDS:
            self._failures -= self._calls.popleft()[1]
