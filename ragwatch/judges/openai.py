"""Kind `openai`: an LLM judge behind any OpenAI-compatible chat endpoint (vLLM, Ollama, LM Studio, gateways).

Servers differ in the request parameters that they accept. The first calls find out, and later calls reuse, whether a
server constrains the reply to a JSON schema, to any JSON object or not at all, and its name for the maximum number of
tokens of a reply.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import orjson
from pydantic import Field

from ragwatch.errors import ConfigError
from ragwatch.judges.llm.failures import CallError, CallFailure, Setting, safe_code, sanitize_message, value_at
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.options import CallOptions, Url
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.provider import PROBE, Completion, HttpProvider, parse_json, token_count
from ragwatch.judges.llm.reply import extract_json
from ragwatch.judges.llm.scheduler import Clock
from ragwatch.outgoing.client import judge_client
from ragwatch.ports import JudgeContext
from ragwatch.statistics.verdict import Usage

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

_REJECTS_DIALECT = frozenset({400, 415, 422, 501})
_MAX_SHOWN_MODELS = 5
_SETTINGS = (
    Setting(
        "temperature",
        re.compile(r"\W{0,2}temperature\b|unsupported (?:value|parameter): \W?temperature\b", re.IGNORECASE),
        "null, which sends none",
    ),
)


class ReplyConstraint(StrEnum):
    """How a server constrains the reply (structured outputs)."""

    SCHEMA = "schema"
    OBJECT = "object"
    NOTHING = "nothing"


_DESCRIPTIONS: Mapping[ReplyConstraint, str] = {
    ReplyConstraint.SCHEMA: "it binds replies to a JSON schema",
    ReplyConstraint.OBJECT: "it binds replies to JSON, not to a schema: expect some invalid ones",
    ReplyConstraint.NOTHING: "it cannot bind replies to JSON: expect invalid ones",
}


class Dialect(NamedTuple):
    """Request parameters that a server accepts: `max_tokens_key` is its name for the maximum length of a reply."""

    constraint: ReplyConstraint
    max_tokens_key: str


_DIALECTS = tuple(Dialect(one, key) for one in ReplyConstraint for key in ("max_tokens", "max_completion_tokens"))
"""In the order in which they are tried."""


def request_body(
    prompt: Prompt, model: str, *, max_tokens: int, temperature: float | None, dialect: Dialect
) -> dict[str, object]:
    """Build the body of a request. A schema that the server does not enforce is added to the system prompt."""
    system = prompt.system
    if dialect.constraint is not ReplyConstraint.SCHEMA:
        system += f"\n\nThe reply is one JSON object of this JSON schema:\n{orjson.dumps(prompt.schema).decode()}"
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}],
        dialect.max_tokens_key: max_tokens,
    }
    if dialect.constraint is ReplyConstraint.SCHEMA:
        json_schema = {"name": "reading", "strict": True, "schema": prompt.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    elif dialect.constraint is ReplyConstraint.OBJECT:
        body["response_format"] = {"type": "json_object"}
    if temperature is not None:
        body["temperature"] = temperature
    return body


_STOPS: Mapping[str, str] = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "eos": "end_turn"}


def parse_chat(body: Mapping[str, object]) -> Completion:
    """Parse the JSON of a chat completion; a CallError if it is none."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = value_at(choice, "message")
    if not isinstance(message, Mapping):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no chat completion", usage=None)
    finish_reason = safe_code(value_at(choice, "finish_reason"))
    stop = "refusal" if message.get("refusal") else _STOPS.get(finish_reason, finish_reason)
    content = message.get("content")
    return Completion(extract_json(content) if isinstance(content, str) else "", _usage(body.get("usage")), stop)


def _usage(usage: object) -> Usage | None:
    sent, received = (token_count(value_at(usage, name)) for name in ("prompt_tokens", "completion_tokens"))
    if sent is None or received is None:
        return None
    read = min(sent, token_count(value_at(usage, "prompt_tokens_details", "cached_tokens")) or 0)
    return Usage(sent - read, received, cache_read_tokens=read)


class Options(CallOptions):
    """Settings of a model behind an OpenAI-compatible endpoint."""

    base_url: Url = Field("https://api.openai.com/v1", description="URL of the server's API.")
    temperature: float | None = Field(
        None,
        ge=0.0,
        le=2.0,
        description="Sampling temperature; null to send none, because many models do not accept one.",
    )


class OpenAI(HttpProvider):
    """Chat completions of one model."""

    def __init__(self, options: Options, client: AsyncClient, clock: Callable[[], float], where: str) -> None:
        super().__init__(options, clock, where, _SETTINGS)
        self._options = options
        self._client = client
        self._dialects = _DIALECTS  # one, once it is known

    async def call(self, prompt: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """Make one call. Until one has succeeded, a call that the server rejects is made again in a simpler dialect."""
        first_error: CallError | None = None
        for dialect in self._dialects:
            body = request_body(
                prompt, self.model, max_tokens=max_tokens, temperature=self._options.temperature, dialect=dialect
            )
            response = await self._post(body, prompt.user, timeout)
            if response.is_success:
                self._dialects = (dialect,)
                return replace(parse_chat(parse_json(response.content)), limits=self._limits(response.headers))
            error = self._error(response, prompt.user)
            first_error = first_error or error
            is_dialect = response.status_code in _REJECTS_DIALECT and error.reason is not CallFailure.BUDGET_PROVIDER
            if len(self._dialects) == 1 or not is_dialect:  # another call may have found it meanwhile
                break
        raise first_error or CallError(CallFailure.PROTOCOL, "no dialect")

    async def _post(self, body: Mapping[str, object], page: str, timeout: float) -> Response:  # noqa: ASYNC109 - as above
        import httpx  # noqa: PLC0415 - see `build`

        try:
            return await self._client.post("chat/completions", content=orjson.dumps(body), timeout=timeout)
        except httpx.HTTPError as error:
            timed_out = isinstance(error, httpx.TimeoutException)
            raise self._unanswered(error, str(error), page, timed_out=timed_out) from None

    def _error(self, response: Response, page: str = "") -> CallError:
        try:
            body = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            body = None
        return self._rejected(response.status_code, response.headers, body, page)

    async def probe(self) -> str:
        """Check that the server has the model, and how it constrains replies, with one small call."""
        names = await self._models()
        if names and self.model not in names:
            shown = ", ".join(sorted(names)[:_MAX_SHOWN_MODELS])
            raise CallError(
                CallFailure.MISCONFIGURED, f"{self._options.base_url} has no model {self.model!r}; it has {shown}"
            )
        await self.call(
            PROBE, max_tokens=PROBE.max_tokens + self._options.thinking_budget, timeout=self._options.timeout_seconds
        )
        return f"{self.model} answers at {self._options.base_url}; {_DESCRIPTIONS[self._dialects[0].constraint]}"

    async def _models(self) -> set[str]:
        """Names of the models of the server; empty for a gateway that does not list them."""
        import httpx  # noqa: PLC0415 - see `build`

        try:
            response = await self._client.get("models")
        except httpx.HTTPError as error:
            cause = sanitize_message(f"{type(error).__name__}: {error}", key=self._key)
            raise CallError(
                CallFailure.UNREACHABLE, f"no answer from {self._options.base_url} ({cause}); is base_url right?"
            ) from None
        if response.status_code in {401, 403}:
            raise self._error(response)
        try:
            rows = parse_json(response.content).get("data") if response.is_success else None
        except CallError:
            rows = None
        names = [value_at(row, "id") for row in rows] if isinstance(rows, list) else []
        return {name for name in names if isinstance(name, str)}

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()


def build(
    options: Options, *, name: str, context: JudgeContext, clock: Clock | None = None, rng: random.Random | None = None
) -> LLMJudge:
    """Build the judge, with a client of its own; a ConfigError for a bad `base_url`, or where the price is unknown."""
    import httpx  # noqa: PLC0415 - slow to import, and only this kind needs it

    key = options.api_key.get_secret_value() if options.api_key else ""
    try:
        httpx.URL(options.base_url)
    except httpx.InvalidURL:
        raise ConfigError(f"judges.{name}.base_url: {options.base_url!r} is not a URL") from None
    client = judge_client(
        httpx,
        base_url=options.base_url.rstrip("/") + "/",
        headers={"content-type": "application/json", "accept-encoding": "identity"}
        | ({"authorization": f"Bearer {key}"} if key else {}),
        timeout=options.timeout_seconds,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=options.concurrency),
    )
    provider = OpenAI(options, client, context.clock, f"judges.{name}")
    return LLMJudge(name, "openai", provider, options, context, clock=clock, rng=rng)
