"""Limits: what a provider's headers say is left of its rate limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

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
        limit: The most there can be left.
        remaining: What is left.
        seconds: Until all of it is there again.
    """

    name: str
    limit: float
    remaining: float
    seconds: float

    @property
    def left(self) -> float:
        """Share that is left, 0 to 1."""
        return min(1.0, max(0.0, self.remaining / self.limit))


def limits_of(headers: Iterable[tuple[str, str]], now: float) -> tuple[RateLimit, ...]:
    """Every limit that the headers (lower-case names) state whole. What cannot be read is left out.

    >>> limits_of([("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "59"),
    ...            ("x-ratelimit-reset-requests", "1m1.5s")], now=0.0)
    (Limit(name='requests', limit=60.0, remaining=59.0, seconds=61.5),)
    """
    found: dict[str, dict[str, str]] = {}
    for key, value in headers:
        if key.startswith(_ANTHROPIC):
            name, _, what = key.removeprefix(_ANTHROPIC).rpartition("-")
        elif key.startswith(_OPENAI):
            what, _, name = key.removeprefix(_OPENAI).partition("-")
        else:
            continue
        found.setdefault(name, {})[what] = value
    limits = (_limit(name, found[name], now) for name in _NAMES if name in found)
    return tuple(limit for limit in limits if limit is not None)


def _limit(name: str, told: dict[str, str], now: float) -> RateLimit | None:
    limit, remaining = _number(told.get("limit")), _number(told.get("remaining"))
    seconds = _seconds(told.get("reset", ""), now)
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
    """Seconds until an instant (RFC 3339, as Anthropic writes it) or within a span (`6m0.5s`, as OpenAI does)."""
    spans = _SPAN.findall(text)
    if spans and "".join(number + unit for number, unit in spans) == text:
        return sum(float(number) * _SECONDS[unit] for number, unit in spans)
    try:
        return datetime.fromisoformat(text).timestamp() - now
    except ValueError:
        return _number(text)
