"""Kind `openai`: an LLM judge behind any OpenAI-compatible chat endpoint (vLLM, Ollama, LM Studio, gateways).

Needs the extra `openai`, which is httpx alone. Servers differ in what they understand; what one does is found out by
the first calls and remembered: whether it binds a reply to a JSON schema, to any JSON object, or to nothing, and by
which name it knows the most tokens of a reply.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import Field

from ragwatch.core.verdict import FREE
from ragwatch.errors import ConfigError
from ragwatch.judges.llm.calls.chat import Dialect, body_of, chat
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, discreet, of_response
from ragwatch.judges.llm.calls.limits import RateLimit, limits_of
from ragwatch.judges.llm.calls.messages import json_of
from ragwatch.judges.llm.calls.options import CallOptions, Url
from ragwatch.judges.llm.calls.provider import PROBE, Completion
from ragwatch.judges.llm.calls.scheduler import Clock
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.prompt.reading import Prompt
from ragwatch.ports import JudgeContext

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

_NOT_UNDERSTOOD = frozenset({400, 415, 422, 501})
_SHOWN_MODELS = 5


class Options(CallOptions):
    """Settings of a model behind an OpenAI-compatible endpoint.

    Attributes:
        temperature: Sent where it is given; many models take none.
    """

    base_url: Url = "https://api.openai.com/v1"
    temperature: float | None = Field(None, ge=0.0, le=2.0)


class OpenAI:
    """Chat completions of one model.

    Attributes:
        model: Its name.
    """

    def __init__(self, options: Options, client: AsyncClient, clock: Callable[[], float]) -> None:
        self.model = options.model
        self._options = options
        self._client = client
        self._clock = clock
        self._key = options.api_key.get_secret_value() if options.api_key else ""
        self._dialect = Dialect()
        self._proven = False

    async def call(self, ask: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """One call; until one was answered, also in plainer dialects where the server does not understand us.

        Raises:
            CallFailed: There is no reply.
        """
        dialect: Dialect | None = self._dialect
        first: CallError | None = None
        while dialect is not None:
            body = body_of(ask, self.model, max_tokens, self._options.temperature, dialect)
            response = await self._post(body, ask.user, timeout)
            if response.is_success:
                self._dialect, self._proven = dialect, True
                return self._said(response)
            failed = self._refused(response, ask.user)
            if (
                self._proven
                or response.status_code not in _NOT_UNDERSTOOD
                or failed.reason is CallFailure.BUDGET_PROVIDER
            ):
                raise first or failed
            first = first or failed
            dialect = dialect.plainer()
        raise first or CallError(CallFailure.PROTOCOL, "no dialect")

    async def _post(self, body: Mapping[str, Any], page: str, timeout: float) -> Response:  # noqa: ASYNC109 - as above
        import httpx  # noqa: PLC0415 - an extra, see `build`

        try:
            return await self._client.post("chat/completions", content=orjson.dumps(body), timeout=timeout)
        except httpx.HTTPError as error:
            unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
            timed_out = isinstance(error, httpx.TimeoutException) and not unsent
            told = discreet(f"{type(error).__name__}: {error}", page=page, key=self._key)
            reason = CallFailure.TIMEOUT if timed_out else CallFailure.UNREACHABLE
            raise CallError(reason, told, usage=FREE if unsent else None) from None

    def _said(self, response: Response) -> Completion:
        said = chat(json_of(response.content))
        return Completion(said.text, said.usage, said.stop, said.detail, self._limits(response))

    def _refused(self, response: Response, page: str) -> CallError:
        try:
            body = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            body = None
        return of_response(
            response.status_code,
            response.headers,
            body,
            now=self._clock(),
            page=page,
            key=self._key,
            limits=self._limits(response),
        )

    def _limits(self, response: Response) -> tuple[RateLimit, ...]:
        return limits_of(response.headers.items(), self._clock())

    async def probe(self) -> str:
        """Whether the server has the model, and how far it can be bound to a schema; one small call.

        Raises:
            CallFailed: It cannot be used; the message says why.
        """
        names = await self._models()
        if names and self.model not in names:
            shown = ", ".join(sorted(names)[:_SHOWN_MODELS])
            raise CallError(
                CallFailure.MISCONFIGURED, f"{self._options.base_url} has no model {self.model!r}; it has {shown}"
            )
        await self.call(
            PROBE, max_tokens=PROBE.max_tokens + self._options.thinking_tokens, timeout=self._options.timeout_seconds
        )
        return f"{self.model} answers at {self._options.base_url}; {self._dialect.told}"

    async def _models(self) -> set[str]:
        """Names of the server's models; empty where it lists none, for not every gateway does."""
        import httpx  # noqa: PLC0415 - an extra, see `build`

        try:
            response = await self._client.get("models")
        except httpx.HTTPError as error:
            told = discreet(f"{type(error).__name__}: {error}", key=self._key)
            raise CallError(
                CallFailure.UNREACHABLE, f"nobody answers at {self._options.base_url} ({told}); is base_url right?"
            ) from None
        if response.status_code in {401, 403}:
            raise self._refused(response, "")
        try:
            rows = json_of(response.content).get("data") if response.is_success else None
        except CallError:
            rows = None
        found = [row.get("id") for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        return {name for name in found if isinstance(name, str)}

    async def close(self) -> None:
        """Release the client."""
        await self._client.aclose()


def build(
    options: Options, *, name: str, context: JudgeContext, clock: Clock | None = None, rng: random.Random | None = None
) -> LLMJudge:
    """The judge, with a client of its own that stays open.

    Raises:
        ConfigError: The extra is missing, or nobody knows what the model costs.
    """
    try:
        import httpx  # noqa: PLC0415 - an extra: only who wants this kind needs it
    except ImportError as error:
        raise ConfigError(
            f"judges.{name}.kind: openai needs the package httpx; install ragwatch-exporter[openai]"
        ) from error
    key = options.api_key.get_secret_value() if options.api_key else ""
    try:
        httpx.URL(options.base_url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"judges.{name}.base_url: {options.base_url!r} is not a URL: {error}") from None
    client = httpx.AsyncClient(
        base_url=options.base_url.rstrip("/") + "/",
        headers={"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {}),
        timeout=options.timeout_seconds,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=options.concurrency),
    )
    return LLMJudge(name, "openai", OpenAI(options, client, context.clock), options, context, clock=clock, rng=rng)
