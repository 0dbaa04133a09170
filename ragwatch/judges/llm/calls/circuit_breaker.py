"""Circuit breaker: suspends calls to a provider that fails. Pure: the caller passes the time as `now`."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

SPAN_SECONDS = 20.0
MIN_FAILURES = 5
FAILING_SHARE = 0.5
FIRST_OPEN_SECONDS = 30.0
MAX_OPEN_SECONDS = 600.0
TRIAL_POLL_SECONDS = 1.0  # wait reported while a trial call is under way
_MAX_DOUBLINGS = 10


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
