"""Failures: everything that can become of a call, and what follows from it. One table, read by all."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from ragwatch.core.verdict import FREE, UnjudgedReason, Usage
from ragwatch.judges.llm.calls.limits import RateLimit


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
    """Whether the same may be asked again."""

    NEVER = "never"
    LATER = "later"  # as it is, after a wait
    MENDED = "mended"  # once, with what was wrong put right


@dataclass(frozen=True, slots=True)
class FailureRule:
    """What follows from a failure.

    Attributes:
        reason: Why a sample is unjudged when this was the last word on it.
        again: Whether it helps to ask again.
        sick: It speaks against the provider as a whole, and counts towards leaving it alone.
        fatal: The provider is left alone at once: every other call would fail likewise.
        permanent: It lies in the sample; otherwise the sample goes back to the queue.
    """

    reason: UnjudgedReason
    again: RetryPolicy
    sick: bool = True
    fatal: bool = False
    permanent: bool = False


RULES: Mapping[CallFailure, FailureRule] = MappingProxyType(
    {
        CallFailure.RATE_LIMITED: FailureRule(UnjudgedReason.RATE_LIMITED, RetryPolicy.LATER, sick=False),
        CallFailure.BUDGET_PROVIDER: FailureRule(UnjudgedReason.OVER_BUDGET, RetryPolicy.NEVER, fatal=True),
        CallFailure.OVERLOADED: FailureRule(UnjudgedReason.UNAVAILABLE, RetryPolicy.LATER),
        CallFailure.SERVER: FailureRule(UnjudgedReason.UNAVAILABLE, RetryPolicy.LATER),
        CallFailure.TIMEOUT: FailureRule(UnjudgedReason.TIMEOUT, RetryPolicy.LATER),
        CallFailure.UNREACHABLE: FailureRule(UnjudgedReason.UNAVAILABLE, RetryPolicy.LATER),
        CallFailure.MISCONFIGURED: FailureRule(UnjudgedReason.MISCONFIGURED, RetryPolicy.NEVER, fatal=True),
        CallFailure.REJECTED: FailureRule(UnjudgedReason.REJECTED, RetryPolicy.NEVER, permanent=True),
        CallFailure.PROTOCOL: FailureRule(UnjudgedReason.PROTOCOL, RetryPolicy.LATER),
        CallFailure.TRUNCATED: FailureRule(UnjudgedReason.TRUNCATED, RetryPolicy.MENDED, sick=False, permanent=True),
        CallFailure.REFUSAL: FailureRule(UnjudgedReason.REFUSED, RetryPolicy.NEVER, sick=False, permanent=True),
        CallFailure.INVALID_OUTPUT: FailureRule(
            UnjudgedReason.UNREADABLE, RetryPolicy.MENDED, sick=False, permanent=True
        ),
    }
)


class CallError(Exception):
    """A call gave no reading.

    Args:
        reason: What is counted.
        message: What happened, for a person; no text of a sample and no secret.
        wait: Seconds that the provider asks for; None when it does not say.
        retry: Whether to ask again; None for what the rule says.
        usage: What was charged: nothing (`FREE`), so many tokens, or None when nobody knows.
        limits: Rate limits that came with it.
    """

    def __init__(
        self,
        reason: CallFailure,
        message: str,
        *,
        wait: float | None = None,
        retry: bool | None = None,
        usage: Usage | None = FREE,
        limits: tuple[RateLimit, ...] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.wait = wait
        self.retry = RULES[reason].again is not RetryPolicy.NEVER if retry is None else retry
        self.usage = usage
        self.limits = limits

    @property
    def rule(self) -> FailureRule:
        """What follows."""
        return RULES[self.reason]

    @property
    def fatal(self) -> bool:
        """Every other call would fail likewise."""
        return self.rule.fatal


# A 400 for one's own limit carries no code; these words stand in it today.
_SPENT_WORDS = re.compile(r"credit balance is too low|spend(?:ing)? limit|api usage limits", re.IGNORECASE)
_BY_STATUS: Mapping[int, CallFailure] = MappingProxyType(
    {
        401: CallFailure.MISCONFIGURED,
        402: CallFailure.BUDGET_PROVIDER,
        403: CallFailure.MISCONFIGURED,
        404: CallFailure.MISCONFIGURED,
        408: CallFailure.SERVER,
        409: CallFailure.SERVER,
        429: CallFailure.RATE_LIMITED,
        529: CallFailure.OVERLOADED,
    }
)
_BY_KIND: Mapping[str, CallFailure] = MappingProxyType(
    {"billing_error": CallFailure.BUDGET_PROVIDER, "overloaded_error": CallFailure.OVERLOADED}
)
_BY_CODE: Mapping[str, CallFailure] = MappingProxyType(
    {
        "enforced_spend_limit_reached": CallFailure.BUDGET_PROVIDER,
        "contract_spend_limit_reached": CallFailure.BUDGET_PROVIDER,
        "linked_organization_spend_limit_reached": CallFailure.BUDGET_PROVIDER,
        "linked_organization_billing_unavailable": CallFailure.BUDGET_PROVIDER,
        "organization_on_hold": CallFailure.MISCONFIGURED,
        "insufficient_quota": CallFailure.BUDGET_PROVIDER,  # OpenAI's
        "billing_hard_limit_reached": CallFailure.BUDGET_PROVIDER,
    }
)
_MAYBE_BILLED = frozenset({408, 502, 504})  # something between us gave up; the model may have answered
_LONGEST_MESSAGE = 300
_QUOTE = 24


def of_status(status: int, kind: str, code: str, message: str) -> CallFailure:
    """What an HTTP status that is no success means; a code is more to the point than a type, a type than a status.

    Args:
        status: The HTTP status.
        kind: The body's `error.type`.
        code: The body's error code.
        message: The body's message.
    """
    if status in {400, 403} and _SPENT_WORDS.search(message):
        return CallFailure.BUDGET_PROVIDER
    known = _BY_CODE.get(code) or _BY_KIND.get(kind) or _BY_STATUS.get(status)
    if known is not None:
        return known
    if status >= 500:
        return CallFailure.SERVER
    return CallFailure.REJECTED if status >= 400 else CallFailure.PROTOCOL


def of_response(
    status: int,
    headers: Mapping[str, str],
    body: object,
    *,
    now: float,
    page: str = "",
    key: str = "",
    limits: tuple[RateLimit, ...] = (),
) -> CallError:
    """The failure that a response with an error status stands for.

    Args:
        status: Its status.
        headers: Its headers.
        body: Its JSON, or None.
        now: Seconds since the epoch.
        page: What was sent; a message that quotes it is withheld.
        key: A secret to take out of the message.
        limits: Rate limits that came with it.
    """
    kind, code, text = _error(body)
    told = discreet(text, page=page, key=key)
    message = ", ".join(part for part in (f"HTTP {status}", kind, code, told, headers.get("request-id", "")) if part)
    should = {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())
    return CallError(
        of_status(status, kind, code, told),
        message,
        wait=wait_of(headers, now),
        retry=should,
        usage=None if status in _MAYBE_BILLED else FREE,
        limits=limits,
    )


def wait_of(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds, or a date) ask for.

    >>> wait_of({"retry-after-ms": "1500"}, 0.0), wait_of({"retry-after": "nan"}, 0.0)
    (1.5, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            seconds = _until(text, now)
        if math.isfinite(seconds) and seconds >= 0.0:
            return seconds
    return None


def _until(text: str, now: float) -> float:
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except ValueError:
        return math.nan


def discreet(text: str, *, page: str = "", key: str = "") -> str:
    r"""A foreign message in one short line, without the secret; withheld when it quotes the page.

    >>> discreet("bad key sk-1234567890\n", key="sk-1234567890")
    'bad key ***'
    """
    line = " ".join((text.replace(key, "***") if key else text).split())[:_LONGEST_MESSAGE]
    pieces = (line[at : at + _QUOTE] for at in range(max(0, len(line) - _QUOTE + 1)))
    return "(it quotes the sample)" if page and any(piece in page for piece in pieces) else line


def _error(body: object) -> tuple[str, str, str]:
    """Type, code and message of an error body: Anthropic's, OpenAI's, and what their imitators make of it."""
    whole: Any = body if isinstance(body, Mapping) else {}
    error: Any = whole.get("error")
    if not isinstance(error, Mapping):
        error = whole | ({"message": error} if isinstance(error, str) else {})
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, Mapping) else error.get("code")
    return word(error.get("type")), word(code), _text(error.get("message") or error.get("detail"))


def word(value: object) -> str:
    """A foreign code, as far as it is one; else empty, for it must not be a way to put text into our logs."""
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", value) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
