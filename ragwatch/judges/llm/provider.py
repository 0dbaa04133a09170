"""Protocols of a provider of a large language model, the values that it returns, and what all over HTTP share."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, runtime_checkable

import orjson

from ragwatch.formats.record import decode_body
from ragwatch.judges.llm.failures import (
    CallError,
    CallFailure,
    RateLimit,
    Setting,
    error_of_response,
    parse_rate_limits,
    sanitize_message,
)
from ragwatch.judges.llm.options import CallOptions
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.statistics.verdict import NO_USAGE, Usage

PROBE = Prompt(
    system="Reply with JSON.",
    user='Reply with {"ready": "yes"}.',
    schema={
        "type": "object",
        "properties": {"ready": {"type": "string", "enum": ["yes"]}},
        "required": ["ready"],
        "additionalProperties": False,
    },
    max_tokens=64,
    check=orjson.loads,
)
"""A minimal prompt with a JSON schema, to check a provider."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply of a model."""

    text: str
    usage: Usage | None  # tokens without cost; None when the provider does not report them
    stop: str  # stop reason in Anthropic's terms: `end_turn`, `max_tokens`, `refusal` ..
    detail: str = ""  # such as the category of a refusal
    limits: tuple[RateLimit, ...] = ()


class Provider(Protocol):
    """Makes single calls, without retries. Where there is no reply, it raises CallError, whose message says why."""

    model: str

    async def call(self, prompt: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """Make one call."""

    async def probe(self) -> str:
        """Check the key, the model and the settings. Returns one line for a person."""

    async def close(self) -> None:
        """Close the client."""


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a prompt, free of charge; raises CallError if it cannot at present."""

    async def count(self, prompt: Prompt) -> int:
        """Return the number of tokens that a call with this prompt sends."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A message batch in the list of the provider."""

    id: str
    created: float
    entries: int


@runtime_checkable
class BatchProvider(Protocol):
    """Takes message batches, at half the price, with results within a day. Raises CallError if it cannot at present.

    Where an error has the usage None, a batch may have been accepted nevertheless: see `recent`.
    """

    async def submit(self, entries: Sequence[tuple[str, Prompt]]) -> str:
        """Send prompts, each with a custom id, as one batch. Returns the id of the batch at the provider."""

    async def ended(self, batch: str) -> bool:
        """Whether every entry of a batch has its result; an error is `misconfigured` when there is no such batch."""

    def results(self, batch: str) -> AsyncIterator[tuple[str, Completion | CallError]]:
        """Results by custom id, in no particular order."""

    async def recent(self, since: float) -> list[SentBatch]:
        """Batches created since an instant (seconds since the epoch), newest first."""


MAX_TOKENS = 10**9  # of one call; more is an error of the server, such as -1 as an unsigned number


def token_count(value: object) -> int | None:
    """A number of tokens; None for an invalid one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS else None


def parse_json(content: bytes) -> dict[str, object]:
    """Parse the body of a response with status 200: its JSON object, or an empty one for other JSON.

    Raises:
        CallError: It is not JSON, but the page of a proxy, or truncated. The call may have been charged.
    """
    try:
        body = decode_body(content)
    except orjson.JSONDecodeError:
        kind = "a web page" if content.lstrip()[:1] == b"<" else "no JSON"
        raise CallError(CallFailure.PROTOCOL, f"HTTP 200 with {kind}; is there a proxy between?", usage=None) from None
    return body if isinstance(body, dict) else {}


_NOT_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})  # errors of httpx before a request is sent


class HttpProvider:
    """What calls of any provider over HTTP share: its errors, its rate limits, and the key that no message may show."""

    def __init__(
        self, options: CallOptions, clock: Callable[[], float], where: str, settings: Sequence[Setting]
    ) -> None:
        self.model = options.model
        self._clock, self._where, self._settings = clock, where, settings
        self._key = options.api_key.get_secret_value() if options.api_key else ""

    def _limits(self, headers: Mapping[str, str]) -> tuple[RateLimit, ...]:
        return parse_rate_limits(headers.items(), self._clock())

    def _rejected(self, status: int, headers: Mapping[str, str], body: object, page: str = "") -> CallError:
        """The error for a response with an error status, whose message does not quote the page.

        It is `misconfigured`, with advice, where it rejects one of the settings that every call sends.
        """
        limits = self._limits(headers)
        error = error_of_response(status, headers, body, now=self._clock(), page=page, key=self._key, limits=limits)
        if status == HTTPStatus.UNAUTHORIZED:
            advice = f"{error}; the server does not accept the key: correct {self._where}.api_key"
            return CallError(error.reason, advice, limits=error.limits, detail=error.detail)
        setting = next((one for one in self._settings if one.named.match(error.detail)), None)
        if error.reason is not CallFailure.REJECTED or setting is None:
            return error
        message = f"{error}; set {self._where}.{setting.option}: {setting.advice}"
        return CallError(CallFailure.MISCONFIGURED, message, limits=error.limits, detail=error.detail)

    def _unanswered(self, cause: BaseException | None, text: str, page: str, *, timed_out: bool) -> CallError:
        """The error for a request without a response."""
        name = type(cause).__name__
        not_sent = name in _NOT_SENT
        message = sanitize_message(f"{name}: {text}", page=page, key=self._key)
        failure = CallFailure.TIMEOUT if timed_out and not not_sent else CallFailure.UNREACHABLE
        return CallError(failure, message, usage=NO_USAGE if not_sent else None)
