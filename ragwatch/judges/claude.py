"""Kind `claude`: an LLM judge that calls Claude through Anthropic's Messages API.

One call per sample: the rubric is a cached system prompt, and structured outputs constrain the reply to a JSON schema.
There are no tools and no sampling parameters. Retries of the SDK are off; `llm.caller` retries instead.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import Field, model_validator

from ragwatch.errors import ConfigError
from ragwatch.judges.llm.batch_judge import BatchLLMJudge
from ragwatch.judges.llm.failures import CallError, CallFailure, Setting, safe_code, value_at
from ragwatch.judges.llm.options import CallOptions, Thinking, Url, known_model
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import PROBE, Completion, HttpProvider, SentBatch, parse_json, token_count
from ragwatch.judges.llm.scheduler import Clock
from ragwatch.outgoing.client import judge_client
from ragwatch.ports import JudgeContext
from ragwatch.process import without_garbage_collection

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncAPIResponse, Omit
    from anthropic.types import OutputConfigParam, ThinkingConfigParam
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from anthropic.types.messages.batch_create_params import Request
from collections.abc import AsyncIterable
from datetime import datetime

import orjson
from pydantic import BaseModel, ValidationError

from ragwatch.statistics.verdict import Usage

# HTTP status that an error in the results of a batch would have as a response of its own.
STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def parse_message(body: object) -> Completion:
    """Parse the JSON of a message; a CallError if it is none."""
    blocks = value_at(body, "content")
    if value_at(body, "type") != "message" or not isinstance(blocks, list):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no message", usage=None)
    texts = [value_at(block, "text") for block in blocks if value_at(block, "type") == "text"]
    return Completion(
        "".join(text for text in texts if isinstance(text, str)),
        _usage(value_at(body, "usage")),
        stop=safe_code(value_at(body, "stop_reason")),
        detail=safe_code(value_at(body, "stop_details", "category")),
    )


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Split a download at line feeds alone, in linear time; lines without text are left out.

    Other separators (U+2028, U+0085) may stand inside the strings of a line of JSON.
    """
    pieces: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join((*pieces, end))
            pieces.clear()
            if line.strip():
                yield line
        pieces.append(rest)
    if (line := b"".join(pieces)).strip():
        yield line


def parse_result(line: bytes) -> tuple[str, Mapping[str, object]]:
    """Parse a line of the results of a batch: the custom id of an entry, and its result; a CallError if it is none."""
    try:
        entry = orjson.loads(line)
        custom_id, result = entry["custom_id"], entry["result"]
    except (ValueError, TypeError, KeyError):
        custom_id = result = None
    if not isinstance(custom_id, str) or not isinstance(result, dict):
        raise CallError(CallFailure.PROTOCOL, "invalid results of a batch")
    return custom_id, result


class _Batch(BaseModel):
    id: str
    created_at: datetime
    request_counts: dict[str, int]


class _BatchPage(BaseModel):
    data: list[_Batch]


def parse_batches(body: Mapping[str, object]) -> list[SentBatch]:
    """Parse one page of the list of message batches; a CallError if it is none."""
    try:
        rows = _BatchPage.model_validate(body).data
    except ValidationError:
        raise CallError(CallFailure.PROTOCOL, "JSON, but no list of batches") from None
    return [SentBatch(row.id, row.created_at.timestamp(), sum(row.request_counts.values())) for row in rows]


def _usage(usage: object) -> Usage | None:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, received, read, written = (token_count(value_at(usage, name)) for name in names)
    if sent is None or received is None:
        return None
    return Usage(sent, received, cache_read_tokens=read or 0, cache_write_tokens=written or 0)


_PAGE_SIZE = 100
_THINKING_TOKENS = 4_000  # of a call where the model thinks, or may
_EFFORTS_THAT_THINK = frozenset({"xhigh", "max"})  # at these, no model takes that its thinking is turned off
_SETTINGS = (
    Setting(
        "thinking",
        re.compile(r"\W{0,2}(?:adaptive |extended )?thinking\b", re.IGNORECASE),
        "null, which sends no such parameter, or another value that the model takes",
    ),
    Setting(
        "effort",
        re.compile(r"(?:output_config\.)?effort\b|this model does not support the effort\b", re.IGNORECASE),
        "null, or an effort that the model takes",
    ),
    Setting(
        "model",
        re.compile(r"\W{0,2}output_(?:config|format)\b|model\b|[^,:;]{0,80}\bdoes not support\b", re.IGNORECASE),
        "a model that takes structured outputs (output_config.format)",
    ),
)
_MAX_TOKENS = Setting("thinking_tokens", re.compile(r"max_tokens\b"), "fewer tokens than the model can write")


class Options(CallOptions):
    """Settings of Claude as a judge."""

    model: str = Field("claude-haiku-5-5", min_length=1, description="Name of the model.")
    base_url: Url = Field("https://api.anthropic.com", description="URL of the provider's API.")
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = Field(
        None, description="Effort of the model; null for its default. Models before Haiku 5 do not accept an effort."
    )
    thinking: Literal["auto", "disabled", "between_tools", "adaptive"] | None = Field(
        "auto",
        description=(
            "`auto` turns thinking off where the model takes that, so that only the reply is charged, and sends "
            "nothing to others; `disabled`, `between_tools` and `adaptive` are sent as they are; null sends "
            "nothing."
        ),
    )

    @model_validator(mode="after")
    def _check_thinking(self) -> Self:
        if self.thinking == "adaptive" and self.thinking_tokens == 0:
            raise ValueError("thinking: adaptive needs tokens; give thinking_tokens, such as 4000")
        return self

    @property
    def sent_thinking(self) -> str | None:
        """The type of thinking that a call asks for; None to leave the parameter out."""
        if self.thinking != "auto":
            return self.thinking
        known = known_model(self.model)
        if known is None or self.effort in _EFFORTS_THAT_THINK:
            return None
        return str(known.thinking) if known.thinking in {Thinking.DISABLED, Thinking.BETWEEN_TOOLS} else None

    @property
    def thinking_budget(self) -> int:
        """Tokens for thinking in a call."""
        if self.thinking_tokens is not None:
            return self.thinking_tokens
        sent, known = self.sent_thinking, known_model(self.model)
        is_off = sent is None and known is not None and known.thinking is Thinking.ON_REQUEST
        return 0 if is_off or sent in {Thinking.DISABLED, Thinking.BETWEEN_TOOLS} else _THINKING_TOKENS


class Claude(HttpProvider):
    """Calls and message batches of one model. The bodies of responses are parsed here, not by the SDK."""

    def __init__(self, options: Options, client: AsyncAnthropic, clock: Callable[[], float], where: str) -> None:
        super().__init__(options, clock, where, (*_SETTINGS, _MAX_TOKENS) if options.thinking_budget else _SETTINGS)
        self._thinking = options.sent_thinking
        self._options = options
        self._client = client

    async def call(self, prompt: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """Make one call."""
        request = self._request(prompt, max_tokens)
        response = await self._sent(
            self._client.messages.with_raw_response.create(**request, timeout=timeout), prompt.user
        )
        return replace(parse_message(parse_json(response.http_response.content)), limits=self._limits(response.headers))

    async def _sent(self, response: Awaitable[AsyncAPIResponse[Any]], page: str = "") -> AsyncAPIResponse[Any]:
        """The response of a request of the SDK. Every error is one of the provider, unless it is a bug."""
        try:
            return await response
        except Exception as error:  # noqa: BLE001 - `_call_error` handles every error of the SDK
            raise self._call_error(error, page) from None

    def _request(self, prompt: Prompt, max_tokens: int) -> MessageCreateParamsNonStreaming:
        output: OutputConfigParam = {"format": {"type": "json_schema", "schema": dict(prompt.schema)}}
        if self._options.effort:
            output["effort"] = self._options.effort
        request: MessageCreateParamsNonStreaming = {
            "model": self._options.model,
            "max_tokens": max_tokens,
            "system": [{"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": prompt.user}],
            "output_config": output,
        }
        if self._thinking:
            request["thinking"] = cast("ThinkingConfigParam", {"type": self._thinking})
        return request

    def _call_error(self, error: Exception, page: str = "") -> Exception:
        """Convert an error of the SDK to a CallError; any other error is returned as it is."""
        from anthropic import AnthropicError, APIConnectionError, APIStatusError, APITimeoutError  # noqa: PLC0415 - see `build`

        if isinstance(error, APIStatusError):
            return self._rejected(error.status_code, error.response.headers, error.body, page)
        if isinstance(error, APIConnectionError):
            cause, timed_out = error.__cause__, isinstance(error, APITimeoutError)
            return self._unanswered(cause, str(cause or error), page, timed_out=timed_out)
        is_of_sdk = isinstance(error, AnthropicError)
        return CallError(CallFailure.PROTOCOL, type(error).__name__, usage=None) if is_of_sdk else error

    async def probe(self) -> str:
        """Check the key, the model and the settings by counting tokens, which is free."""
        await self.count(PROBE)
        return f"{self.model} answers at {self._options.base_url}"

    async def count(self, prompt: Prompt) -> int:
        """Count the tokens that a call with this prompt sends, which is free."""
        from anthropic import omit  # noqa: PLC0415 - see `build`

        request = self._request(prompt, prompt.max_tokens)
        # The other parameters are those of a call, so that a model that rejects a setting rejects it here.
        response = await self._sent(
            self._client.messages.with_raw_response.count_tokens(
                model=request["model"],
                system=request["system"],
                messages=request["messages"],
                output_config=request["output_config"],
                thinking=request.get("thinking", omit),
            )
        )
        tokens = token_count(parse_json(response.http_response.content).get("input_tokens"))
        if tokens is None:
            raise CallError(CallFailure.PROTOCOL, f"{self._options.base_url} does not answer like the Messages API")
        return tokens

    async def submit(self, entries: Sequence[tuple[str, Prompt]]) -> str:
        """Send prompts as one message batch."""
        extra = self._options.thinking_budget
        requests: list[Request] = [
            {"custom_id": custom_id, "params": self._request(prompt, prompt.max_tokens + extra)}
            for custom_id, prompt in entries
        ]
        sent = self._client.messages.batches.with_raw_response.create(requests=requests)
        response = await self._sent(sent, "\n".join(prompt.user for _, prompt in entries))
        body = parse_json(response.http_response.content)
        if not isinstance(body.get("id"), str):
            raise CallError(CallFailure.PROTOCOL, "a batch without an id", usage=None)
        return str(body["id"])

    async def ended(self, batch: str) -> bool:
        """Whether every entry of a batch has its result."""
        response = await self._sent(self._client.messages.batches.with_raw_response.retrieve(batch))
        return parse_json(response.http_response.content).get("processing_status") == "ended"

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Completion | CallError]]:
        """Results by custom id, in no particular order."""
        try:
            async with self._client.messages.batches.with_streaming_response.results(batch) as response:
                async for line in split_lines(response.iter_bytes()):
                    custom_id, result = parse_result(line)
                    yield custom_id, self._result(result)
        except (AttributeError, ValueError):  # the SDK does not validate the body with the address of the results
            raise CallError(CallFailure.PROTOCOL, "invalid results of a batch") from None
        except Exception as error:  # noqa: BLE001 - as in `call`
            raise self._call_error(error) from None

    def _result(self, result: Mapping[str, object]) -> Completion | CallError:
        kind = result.get("type")
        if kind == "succeeded":
            try:
                return parse_message(result.get("message"))
            except CallError as error:
                return error
        if kind == "errored":
            body = result.get("error")
            return self._rejected(STATUS.get(safe_code(value_at(body, "error", "type")), 500), {}, body)
        return CallError(CallFailure.SERVER, f"the entry {safe_code(kind) or 'has no result'}")

    async def recent(self, since: float) -> list[SentBatch]:
        """Batches created since an instant, newest first."""
        from anthropic import omit  # noqa: PLC0415 - see `build`

        batches: list[SentBatch] = []
        after: str | Omit = omit
        while True:
            listed = self._client.messages.batches.with_raw_response.list(limit=_PAGE_SIZE, after_id=after)
            response = await self._sent(listed)
            body = parse_json(response.http_response.content)
            page = parse_batches(body)
            batches += [batch for batch in page if batch.created >= since]
            if not body.get("has_more") or not page or page[-1].created < since:
                return batches
            after = page[-1].id

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def build(
    options: Options, *, name: str, context: JudgeContext, clock: Clock | None = None, rng: random.Random | None = None
) -> BatchLLMJudge:
    """Build the judge, with a client of its own; a ConfigError without a key, or where the price is unknown."""
    with without_garbage_collection():
        import anthropic  # noqa: PLC0415 - a second of CPU time that only this kind needs

    if options.api_key is None or not options.api_key.get_secret_value():
        raise ConfigError(f'judges.{name}.api_key: is missing; give "${{ANTHROPIC_API_KEY}}" or file:PATH')
    client = anthropic.AsyncAnthropic(
        api_key=options.api_key.get_secret_value(),
        base_url=options.base_url,
        max_retries=0,
        timeout=options.timeout_seconds,
        open_telemetry=False,
        http_client=judge_client(
            import_module(anthropic.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]),
            unbounded_suffix="/results",
            headers={"accept-encoding": "identity"},
            timeout=options.timeout_seconds,
            limits=anthropic.DEFAULT_CONNECTION_LIMITS,
        ),
    )
    provider = Claude(options, client, context.clock, f"judges.{name}")
    return BatchLLMJudge(name, "claude", provider, options, context, clock=clock, rng=rng)
