"""Classifies failed calls: retry, circuit breaker, and the reason for which a sample is unjudged.

A rejected request whose cause is a setting, which every call has, stops the judge with advice: taken for a fault of its
sample, it would lose every sample in turn.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ragwatch.errors import JudgeError
from ragwatch.outgoing.client import retry_after
from ragwatch.statistics.verdict import NO_USAGE, UnjudgedReason, Usage

_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")
_ANTHROPIC = "anthropic-ratelimit-"  # anthropic-ratelimit-tokens-remaining
_OPENAI = "x-ratelimit-"  # x-ratelimit-remaining-tokens
_SPAN = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|s|m|h|d)")  # of few digits: time is linear in the length
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One rate limit of a provider."""

    name: str  # `requests`, `tokens`, `input-tokens` or `output-tokens`
    limit: float  # requests or tokens when nothing is used
    remaining: float  # requests or tokens left
    seconds: float  # seconds until the limit is full again

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
    limits = (_limit(name, fields[name], now) for name in _LIMITS if name in fields)
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


class CallFailure(StrEnum):
    """Why a call gave no reading. The values are label values of a series."""

    RATE_LIMITED = "rate_limited"
    BUDGET_PROVIDER = "budget_provider"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    MISCONFIGURED = "misconfigured"
    REJECTED = "rejected"
    PROTOCOL = "protocol"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    INVALID_OUTPUT = "invalid_output"


class RetryPolicy(StrEnum):
    """Whether and how a failed call is retried."""

    NEVER = "never"
    BACKOFF = "backoff"  # the same request, after a backoff
    REPAIR = "repair"  # once, with a request that was changed


@dataclass(frozen=True, slots=True)
class FailureRule:
    """Consequences of a failure."""

    reason: UnjudgedReason  # why the sample is unjudged when there are no more retries
    retry: RetryPolicy  # whether and how the call is retried
    trips_circuit_breaker: bool = True  # the failure counts towards opening the circuit breaker
    fatal: bool = False  # it opens the circuit breaker at once, because every other call would fail too
    permanent: bool = False  # the sample is the cause; otherwise it goes back to the queue


_BACKOFF, _REPAIR, _NEVER = RetryPolicy.BACKOFF, RetryPolicy.REPAIR, RetryPolicy.NEVER
_OF_REPLY: Mapping[str, bool] = {"trips_circuit_breaker": False, "permanent": True}
RULES: Mapping[CallFailure, FailureRule] = {
    CallFailure.RATE_LIMITED: FailureRule(UnjudgedReason.RATE_LIMITED, _BACKOFF, trips_circuit_breaker=False),
    CallFailure.BUDGET_PROVIDER: FailureRule(UnjudgedReason.OVER_BUDGET, _NEVER, fatal=True),
    CallFailure.OVERLOADED: FailureRule(UnjudgedReason.UNAVAILABLE, _BACKOFF),
    CallFailure.SERVER: FailureRule(UnjudgedReason.UNAVAILABLE, _BACKOFF),
    CallFailure.TIMEOUT: FailureRule(UnjudgedReason.TIMEOUT, _BACKOFF),
    CallFailure.UNREACHABLE: FailureRule(UnjudgedReason.UNAVAILABLE, _BACKOFF),
    CallFailure.MISCONFIGURED: FailureRule(UnjudgedReason.MISCONFIGURED, _NEVER, fatal=True),
    CallFailure.REJECTED: FailureRule(UnjudgedReason.REJECTED, _NEVER, permanent=True),
    CallFailure.PROTOCOL: FailureRule(UnjudgedReason.PROTOCOL, _BACKOFF),
    CallFailure.TRUNCATED: FailureRule(UnjudgedReason.TRUNCATED, _REPAIR, **_OF_REPLY),
    CallFailure.REFUSAL: FailureRule(UnjudgedReason.REFUSED, _NEVER, **_OF_REPLY),
    CallFailure.INVALID_OUTPUT: FailureRule(UnjudgedReason.UNREADABLE, _REPAIR, **_OF_REPLY),
}


class CallError(Exception):
    """A call gave no reading.

    Args:
        reason: Label value of the counter of failures.
        message: What happened, for a person; without text of a sample and without secrets.
        wait: Seconds that the provider asks to wait; None when it does not say.
        retry: Whether to retry; None for what the rule says.
        usage: Tokens charged: none (`NO_USAGE`), so many, or None when unknown.
        limits: Rate limits that came with the failure.
        detail: The provider's own message, cleaned like `message`.
    """

    def __init__(
        self,
        reason: CallFailure,
        message: str,
        *,
        wait: float | None = None,
        retry: bool | None = None,
        usage: Usage | None = NO_USAGE,
        limits: tuple[RateLimit, ...] = (),
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.wait = wait
        self.retry = RULES[reason].retry is not RetryPolicy.NEVER if retry is None else retry
        self.usage = usage
        self.limits = limits
        self.detail = detail

    @property
    def rule(self) -> FailureRule:
        """Consequences of the failure."""
        return RULES[self.reason]

    def judge_error(self, *, permanent: bool | None = None) -> JudgeError:
        """The error for a sample that is unjudged because of it; permanent as its rule says unless stated otherwise."""
        permanent = self.rule.permanent if permanent is None else permanent
        return JudgeError(self.rule.reason, f"{self.reason}: {self}", permanent=permanent)


# A 400 for a spend limit has no error code; it is known by its message.
_SPEND_LIMIT = re.compile(r"credit balance is too low|spend(?:ing)? limit|api usage limits", re.IGNORECASE)
_BY_STATUS: Mapping[int, CallFailure] = {
    401: CallFailure.MISCONFIGURED,
    402: CallFailure.BUDGET_PROVIDER,
    403: CallFailure.MISCONFIGURED,
    404: CallFailure.MISCONFIGURED,
    408: CallFailure.SERVER,
    409: CallFailure.SERVER,
    429: CallFailure.RATE_LIMITED,
    529: CallFailure.OVERLOADED,
}
_BY_KIND: Mapping[str, CallFailure] = {
    "billing_error": CallFailure.BUDGET_PROVIDER,
    "overloaded_error": CallFailure.OVERLOADED,
}
_BY_CODE: Mapping[str, CallFailure] = {
    "enforced_spend_limit_reached": CallFailure.BUDGET_PROVIDER,
    "contract_spend_limit_reached": CallFailure.BUDGET_PROVIDER,
    "linked_organization_spend_limit_reached": CallFailure.BUDGET_PROVIDER,
    "linked_organization_billing_unavailable": CallFailure.BUDGET_PROVIDER,
    "organization_on_hold": CallFailure.MISCONFIGURED,
    "insufficient_quota": CallFailure.BUDGET_PROVIDER,  # OpenAI's
    "billing_hard_limit_reached": CallFailure.BUDGET_PROVIDER,
}
_MAYBE_BILLED = frozenset({408, 502, 504})  # a proxy may have timed out after the model had answered
_MAX_MESSAGE_CHARS = 300
_QUOTE_CHARS = 24


def failure_of_status(status: int, kind: str, code: str, message: str) -> CallFailure:
    """Classify an HTTP error by type, code and message of its body. A code takes precedence, then the type."""
    if status in {400, 403} and _SPEND_LIMIT.search(message):
        return CallFailure.BUDGET_PROVIDER
    failure = _BY_CODE.get(code) or _BY_KIND.get(kind) or _BY_STATUS.get(status)
    if failure is None and status < 500:
        return CallFailure.REJECTED if status >= 400 else CallFailure.PROTOCOL
    return failure or CallFailure.SERVER


def error_of_response(
    status: int,
    headers: Mapping[str, str],
    body: object,
    *,
    now: float,
    page: str = "",
    key: str = "",
    limits: tuple[RateLimit, ...] = (),
) -> CallError:
    """Build the CallError for a response with an error status, whose message shows neither `page` nor `key`."""
    kind, code, text = _error(body)
    text = sanitize_message(text, page=page, key=key)
    message = ", ".join(part for part in (f"HTTP {status}", kind, code, text, headers.get("request-id", "")) if part)
    retry = {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())
    return CallError(
        failure_of_status(status, kind, code, text),
        message,
        wait=retry_after(headers, now),
        retry=retry,
        usage=None if status in _MAYBE_BILLED else NO_USAGE,
        limits=limits,
        detail=text,
    )


def sanitize_message(text: str, *, page: str = "", key: str = "") -> str:
    r"""Shorten a provider's message to one line without the secret; withhold it when it quotes the page.

    >>> sanitize_message("bad key sk-1234567890\n", key="sk-1234567890")
    'bad key ***'
    """
    line = " ".join((text.replace(key, "***") if key else text).split())[:_MAX_MESSAGE_CHARS]
    pieces = (line[start : start + _QUOTE_CHARS] for start in range(max(0, len(line) - _QUOTE_CHARS + 1)))
    return "(it quotes the sample)" if page and any(piece in page for piece in pieces) else line


def _error(body: object) -> tuple[str, str, str]:
    """Type, code and message of an error body of Anthropic, OpenAI, or a compatible server."""
    error = value_at(body, "error")
    if isinstance(error, str) and isinstance(body, Mapping):
        error = {**body, "message": error}
    elif not isinstance(error, Mapping):
        error = body
    details = value_at(error, "details")
    code = value_at(details, "error_code") if isinstance(details, Mapping) else value_at(error, "code")
    message = value_at(error, "message") or value_at(error, "detail")
    return safe_code(value_at(error, "type")), safe_code(code), message if isinstance(message, str) else ""


def value_at(body: object, *keys: str) -> object:
    """The value at a path in a JSON body; None where there is none.

    >>> value_at({"usage": {"input_tokens": 5}}, "usage", "input_tokens"), value_at([], "usage")
    (5, None)
    """
    for key in keys:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def safe_code(value: object) -> str:
    """An identifier such as an error code; empty for any other text, which must not reach the logs."""
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", value) else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that shows in every request.

    `named` matches the beginning of a message that rejects what it sends; `advice` says what to write instead.
    """

    option: str
    named: re.Pattern[str]
    advice: str
