"""Rate limits in the headers of Anthropic and OpenAI, and the interval between calls that they allow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

LOW_SHARE = 0.2
MAX_INTERVAL_SECONDS = 3600.0  # an upper bound on what a header can ask for
_SMOOTHING = 0.1  # weight of the latest call in the moving average of tokens per call
_NAMES = ("requests", "tokens", "input-tokens", "output-tokens")
_ANTHROPIC = "anthropic-ratelimit-"  # anthropic-ratelimit-tokens-remaining
_OPENAI = "x-ratelimit-"  # x-ratelimit-remaining-tokens
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One rate limit of a provider.

    Attributes:
        name: `requests`, `tokens`, `input-tokens` or `output-tokens`.
        limit: Requests or tokens when nothing is used.
        remaining: Requests or tokens left.
        seconds: Seconds until the limit is full again.
    """

    name: str
    limit: float
    remaining: float
    seconds: float

    @property
    def remaining_share(self) -> float:
        """Remaining share of the limit, 0 to 1."""
        return min(1.0, max(0.0, self.remaining / self.limit))


def parse_rate_limits(headers: Iterable[tuple[str, str]], now: float) -> tuple[RateLimit, ...]:
    """Parse the rate limits in headers with lower-case names. A limit that is incomplete or invalid is left out.

    >>> parse_rate_limits([("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "59"),
    ...                    ("x-ratelimit-reset-requests", "1m1.5s")], now=0.0)
    (RateLimit(name='requests', limit=60.0, remaining=59.0, seconds=61.5),)
    """
    fields: dict[str, dict[str, str]] = {}
    for key, value in headers:
        if key.startswith(_ANTHROPIC):
            name, _, field = key.removeprefix(_ANTHROPIC).rpartition("-")
        elif key.startswith(_OPENAI):
            field, _, name = key.removeprefix(_OPENAI).partition("-")
        else:
            continue
        fields.setdefault(name, {})[field] = value
    limits = (_limit(name, fields[name], now) for name in _NAMES if name in fields)
    return tuple(limit for limit in limits if limit is not None)


def _limit(name: str, fields: dict[str, str], now: float) -> RateLimit | None:
    limit, remaining = _number(fields.get("limit")), _number(fields.get("remaining"))
    seconds = _seconds(fields.get("reset", ""), now)
    if limit is None or remaining is None or seconds is None or limit <= 0.0:
        return None
    return RateLimit(name, limit, max(0.0, remaining), max(0.0, seconds))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds(text: str, now: float) -> float | None:
    """Seconds until an instant (RFC 3339, as Anthropic sends it) or in a span (`6m0.5s`, as OpenAI sends it)."""
    spans = _SPAN.findall(text)
    if spans and "".join(number + unit for number, unit in spans) == text:
        return sum(float(number) * _SECONDS[unit] for number, unit in spans)
    try:
        return datetime.fromisoformat(text).timestamp() - now
    except ValueError:
        return _number(text)


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
