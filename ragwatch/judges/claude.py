"""Kind `claude`: an LLM judge that asks Claude through Anthropic's Messages API. Needs the extra `claude`.

One call a sample: the rubric is a cached system prompt, the reply is bound by a JSON schema, there are no tools, and
no sampling parameter is sent, for there is none any more. The SDK repeats nothing; see `calling` for who does.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from ragwatch.core.verdict import FREE
from ragwatch.errors import ConfigError
from ragwatch.judges.llm.calls.batched import BatchLLMJudge
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, discreet, of_response, word
from ragwatch.judges.llm.calls.limits import limits_of
from ragwatch.judges.llm.calls.messages import STATUS, count_of, json_of, message, sent_batches
from ragwatch.judges.llm.calls.options import CallOptions, Url
from ragwatch.judges.llm.calls.provider import PROBE, Completion, SentBatch
from ragwatch.judges.llm.calls.scheduler import Clock
from ragwatch.judges.llm.prompt.reading import Prompt
from ragwatch.ports import JudgeContext

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_A_PAGE = 100
_UNSENT = ("ConnectError", "ConnectTimeout", "PoolTimeout")


class Options(CallOptions):
    """Settings of Claude as a judge.

    Attributes:
        effort: How hard the model tries; None for its own default. Models before Haiku 5 know no effort.
        thinking: `disabled`, so that a reply is all that is paid; `adaptive` needs `thinking_tokens` beside; None
            sends nothing, for models that cannot be told.
    """

    model: str = Field("claude-haiku-5-5", min_length=1)
    base_url: Url = "https://api.anthropic.com"
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    thinking: Literal["disabled", "adaptive"] | None = "disabled"

    @model_validator(mode="after")
    def _room_to_think(self) -> Self:
        if self.thinking == "adaptive" and not self.thinking_tokens:
            raise ValueError("thinking: adaptive needs room; give thinking_tokens, such as 4000")
        return self


class Claude:
    """Calls and message batches of one model.

    Attributes:
        model: Its name.
    """

    def __init__(self, options: Options, client: AsyncAnthropic, clock: Callable[[], float]) -> None:
        self.model = options.model
        self._options = options
        self._client = client
        self._clock = clock
        self._key = options.api_key.get_secret_value() if options.api_key else ""

    async def call(self, ask: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """One call.

        Raises:
            CallFailed: There is no reply.
        """
        try:
            response = await self._client.messages.with_raw_response.create(
                **self._request(ask, max_tokens), timeout=timeout
            )
        except Exception as error:  # noqa: BLE001 - every way in which the SDK fails has its row; see `_failed`
            raise self._failed(error, ask.user) from None
        said = message(json_of(response.http_response.content))
        limits = limits_of(response.headers.items(), self._clock())
        return Completion(said.text, said.usage, said.stop, said.detail, limits)

    def _request(self, ask: Prompt, max_tokens: int) -> dict[str, Any]:
        options = self._options
        effort = {"effort": options.effort} if options.effort else {}
        request: dict[str, Any] = {
            "model": options.model,
            "max_tokens": max_tokens,
            "system": [{"type": "text", "text": ask.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": ask.user}],
            "output_config": {"format": {"type": "json_schema", "schema": ask.schema}, **effort},
        }
        if options.thinking:
            request["thinking"] = {"type": options.thinking}
        return request

    def _failed(self, error: Exception, page: str = "") -> Exception:
        """What an error of the SDK means; the error itself when it is none of the provider's."""
        from anthropic import (  # noqa: PLC0415 - an extra, see `build`
            AnthropicError,
            APIConnectionError,
            APIStatusError,
            APITimeoutError,
        )

        if isinstance(error, APIStatusError):
            headers, now = error.response.headers, self._clock()
            limits = limits_of(headers.items(), now)
            return of_response(error.status_code, headers, error.body, now=now, page=page, key=self._key, limits=limits)
        if not isinstance(error, APIConnectionError):
            known = isinstance(error, AnthropicError)
            return CallError(CallFailure.PROTOCOL, type(error).__name__, usage=None) if known else error
        cause = type(error.__cause__).__name__
        unsent = cause in _UNSENT
        told = discreet(f"{cause}: {error.__cause__ or error}", page=page, key=self._key)
        usage = FREE if unsent else None
        timed_out = isinstance(error, APITimeoutError) and not unsent
        return CallError(CallFailure.TIMEOUT if timed_out else CallFailure.UNREACHABLE, told, usage=usage)

    async def probe(self) -> str:
        """Whether key, model and settings are good, found out by counting tokens, which costs nothing.

        Raises:
            CallFailed: It cannot be used; the message says why.
        """
        request = self._request(PROBE, PROBE.max_tokens)
        del request["max_tokens"]  # the rest is as in a call, so that a model that takes no effort says so here
        try:
            response = await self._client.messages.with_raw_response.count_tokens(**request)
        except Exception as error:  # noqa: BLE001 - as in `call`
            raise self._failed(error) from None
        if count_of(json_of(response.http_response.content).get("input_tokens")) is None:
            raise CallError(CallFailure.PROTOCOL, f"{self._options.base_url} does not answer as the Messages API does")
        return f"{self.model} answers at {self._options.base_url}"

    async def submit(self, entries: Sequence[tuple[str, Prompt]]) -> str:
        """Send asks as one message batch. Returns the provider's name for it.

        Raises:
            CallFailed: It is not known to be accepted; with `usage` None it may have been.
        """
        extra = self._options.thinking_tokens
        requests: Any = [
            {"custom_id": custom_id, "params": self._request(ask, ask.max_tokens + extra)} for custom_id, ask in entries
        ]
        try:
            response = await self._client.messages.batches.with_raw_response.create(requests=requests)
        except Exception as error:  # noqa: BLE001 - as in `call`
            raise self._failed(error, "\n".join(ask.user for _, ask in entries)) from None
        found = json_of(response.http_response.content)
        if not isinstance(found.get("id"), str):
            raise CallError(CallFailure.PROTOCOL, "a batch without a name", usage=None)
        return str(found["id"])

    async def ended(self, batch: str) -> bool:
        """Whether every entry of a batch has its result.

        Raises:
            CallFailed: It cannot be told at present; `misconfigured` when there is no such batch.
        """
        try:
            response = await self._client.messages.batches.with_raw_response.retrieve(batch)
        except Exception as error:  # noqa: BLE001 - as in `call`
            raise self._failed(error) from None
        return bool(json_of(response.http_response.content).get("processing_status") == "ended")

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Completion | CallError]]:
        """Results by our ids, in no particular order.

        Raises:
            CallFailed: They cannot be read (to the end) at present.
        """
        try:
            async for entry in await self._client.messages.batches.results(batch):
                yield entry.custom_id, self._result(entry.model_dump(mode="json", warnings=False)["result"])
        except Exception as error:  # noqa: BLE001 - as in `call`
            if isinstance(error, (ValueError, KeyError, AttributeError)):
                raise CallError(CallFailure.PROTOCOL, "the results of a batch are not what they should be") from None
            raise self._failed(error) from None

    def _result(self, result: Mapping[str, Any]) -> Completion | CallError:
        kind = result.get("type")
        if kind == "succeeded":
            try:
                return message(result.get("message"))
            except CallError as failed:
                return failed
        if kind == "errored":
            whole = result.get("error")
            error = whole.get("error") if isinstance(whole, Mapping) else None
            status = STATUS.get(word(error.get("type")) if isinstance(error, Mapping) else "", 500)
            return of_response(status, {}, whole, now=self._clock(), page="", key=self._key)
        return CallError(CallFailure.SERVER, f"the entry {word(kind) or 'has no result'}")

    async def recent(self, since: float) -> list[SentBatch]:
        """Batches accepted since an instant, newest first.

        Raises:
            CallFailed: They cannot be listed at present.
        """
        found: list[SentBatch] = []
        after: dict[str, Any] = {}
        while True:
            try:
                response = await self._client.messages.batches.with_raw_response.list(limit=_A_PAGE, **after)
            except Exception as error:  # noqa: BLE001 - as in `call`
                raise self._failed(error) from None
            body = json_of(response.http_response.content)
            page = sent_batches(body)
            found += [batch for batch in page if batch.created >= since]
            if not body.get("has_more") or not page or page[-1].created < since:
                return found
            after = {"after_id": page[-1].id}

    async def close(self) -> None:
        """Release the client."""
        await self._client.close()


def build(
    options: Options, *, name: str, context: JudgeContext, clock: Clock | None = None, rng: random.Random | None = None
) -> BatchLLMJudge:
    """The judge, with a client of its own that stays open.

    Raises:
        ConfigError: The extra or the key is missing, or nobody knows what the model costs.
    """
    try:
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - an extra: only who wants this kind needs it
    except ImportError as error:
        raise ConfigError(
            f"judges.{name}.kind: claude needs the package anthropic; install ragwatch-exporter[claude]"
        ) from error
    if options.api_key is None or not options.api_key.get_secret_value():
        raise ConfigError(f'judges.{name}.api_key: is missing; give "${{ANTHROPIC_API_KEY}}" or file:PATH')
    client = AsyncAnthropic(
        api_key=options.api_key.get_secret_value(),
        base_url=options.base_url,
        max_retries=0,
        timeout=options.timeout_seconds,
        open_telemetry=False,
    )
    return BatchLLMJudge(name, "claude", Claude(options, client, context.clock), options, context, clock=clock, rng=rng)
