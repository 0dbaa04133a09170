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
from typing import TYPE_CHECKING

import orjson
from pydantic import Field

from ragwatch.core.verdict import NO_USAGE
from ragwatch.errors import ConfigError
from ragwatch.judges.llm.calls.chat import Dialect, parse_chat, request_body
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, error_of_response, sanitize_message
from ragwatch.judges.llm.calls.limits import RateLimit, parse_rate_limits
from ragwatch.judges.llm.calls.messages import parse_json
from ragwatch.judges.llm.calls.options import CallOptions, Url
from ragwatch.judges.llm.calls.provider import PROBE, Completion
from ragwatch.judges.llm.calls.rejected_settings import Setting, with_setting_advice
from ragwatch.judges.llm.calls.scheduler import Clock
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.prompt.prompt import Prompt
from ragwatch.outgoing.client import judge_client
from ragwatch.ports import JudgeContext

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


class Options(CallOptions):
    """Settings of a model behind an OpenAI-compatible endpoint.

    Attributes:
        temperature: Sampling temperature; None to send none, because many models do not accept one.
    """

    base_url: Url = "https://api.openai.com/v1"
    temperature: float | None = Field(None, ge=0.0, le=2.0)


class OpenAI:
    """Chat completions of one model.

    Args:
        where: Path of the judge in the configuration, for messages.

    Attributes:
        model: Name of the model.
    """

    def __init__(self, options: Options, client: AsyncClient, clock: Callable[[], float], where: str) -> None:
        self.model = options.model
        self._where = where
        self._options = options
        self._client = client
        self._clock = clock
        self._key = options.api_key.get_secret_value() if options.api_key else ""
        self._dialect = Dialect()
        self._dialect_is_known = False

    async def call(self, prompt: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """Make one call. Until one has succeeded, a call that the server rejects is made again in a simpler dialect.

        Raises:
            CallError: There is no reply.
        """
        dialect: Dialect | None = self._dialect
        first_error: CallError | None = None
        while dialect is not None:
            body = request_body(
                prompt, self.model, max_tokens=max_tokens, temperature=self._options.temperature, dialect=dialect
            )
            response = await self._post(body, prompt.user, timeout)
            if response.is_success:
                self._dialect, self._dialect_is_known = dialect, True
                return self._completion(response)
            error = self._error(response, prompt.user)
            if (
                self._dialect_is_known
                or response.status_code not in _REJECTS_DIALECT
                or error.reason is CallFailure.BUDGET_PROVIDER
            ):
                raise first_error or error
            first_error = first_error or error
            dialect = dialect.fallback()
        raise first_error or CallError(CallFailure.PROTOCOL, "no dialect")

    async def _post(self, body: Mapping[str, object], page: str, timeout: float) -> Response:  # noqa: ASYNC109 - as above
        import httpx  # noqa: PLC0415 - see `build`

        try:
            return await self._client.post("chat/completions", content=orjson.dumps(body), timeout=timeout)
        except httpx.HTTPError as error:
            not_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
            timed_out = isinstance(error, httpx.TimeoutException) and not not_sent
            message = sanitize_message(f"{type(error).__name__}: {error}", page=page, key=self._key)
            reason = CallFailure.TIMEOUT if timed_out else CallFailure.UNREACHABLE
            raise CallError(reason, message, usage=NO_USAGE if not_sent else None) from None

    def _completion(self, response: Response) -> Completion:
        return replace(parse_chat(parse_json(response.content)), limits=self._limits(response))

    def _error(self, response: Response, page: str) -> CallError:
        try:
            body = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            body = None
        error = error_of_response(
            response.status_code,
            response.headers,
            body,
            now=self._clock(),
            page=page,
            key=self._key,
            limits=self._limits(response),
        )
        return with_setting_advice(error, _SETTINGS, self._where)

    def _limits(self, response: Response) -> tuple[RateLimit, ...]:
        return parse_rate_limits(response.headers.items(), self._clock())

    async def probe(self) -> str:
        """Check that the server has the model, and how it constrains replies, with one small call.

        Raises:
            CallError: The provider cannot be used; the message says why.
        """
        names = await self._models()
        if names and self.model not in names:
            shown = ", ".join(sorted(names)[:_MAX_SHOWN_MODELS])
            raise CallError(
                CallFailure.MISCONFIGURED, f"{self._options.base_url} has no model {self.model!r}; it has {shown}"
            )
        await self.call(
            PROBE, max_tokens=PROBE.max_tokens + self._options.thinking_budget, timeout=self._options.timeout_seconds
        )
        return f"{self.model} answers at {self._options.base_url}; {self._dialect.description}"

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
            raise self._error(response, "")
        try:
            rows = parse_json(response.content).get("data") if response.is_success else None
        except CallError:
            rows = None
        names = [row.get("id") for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        return {name for name in names if isinstance(name, str)}

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()


def build(
    options: Options, *, name: str, context: JudgeContext, clock: Clock | None = None, rng: random.Random | None = None
) -> LLMJudge:
    """Build the judge, with a client of its own.

    Raises:
        ConfigError: `base_url` is not a URL, or the price of the model is unknown.
    """
    import httpx  # noqa: PLC0415 - slow to import, and only this kind needs it

    key = options.api_key.get_secret_value() if options.api_key else ""
    try:
        httpx.URL(options.base_url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"judges.{name}.base_url: {options.base_url!r} is not a URL: {error}") from None
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
