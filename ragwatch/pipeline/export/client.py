"""HTTP client of the export: sends one request, and says what became of it."""

from __future__ import annotations

import asyncio
import gzip
import math
import ssl
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from ragwatch import __version__
from ragwatch.errors import ConfigError
from ragwatch.outgoing.client import async_client
from ragwatch.pipeline.export.evaluation import ExportTarget, Signal
from ragwatch.ports import Clock

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

MAX_REPLY_BYTES = 1 << 16
MAX_MESSAGE_CHARS = 200
_SERVER_ERRORS = 500
_TOO_LARGE, _TOO_MANY, _TIMED_OUT = 413, 429, 408
_NOT_ALLOWED = frozenset({401, 403})


class Failure(StrEnum):
    """Why a request failed. The values are label values.

    REFUSED: what it holds is dropped; TOO_LARGE: it is sent in smaller parts. The others are repeated: UNAUTHORIZED
    until the credentials are corrected, so that no score is lost by then.
    """

    CONNECTION = "connection"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    UNAUTHORIZED = "unauthorized"
    TOO_LARGE = "too_large"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a request.

    Attributes:
        failure: Why it failed; None if it was accepted.
        body: Body of an accepted one.
        why: What happened, as text for people.
        wait: Seconds that the endpoint asks to wait (Retry-After); None if it does not.
    """

    failure: Failure | None = None
    body: bytes = b""
    why: str = ""
    wait: float | None = None


class OtlpClient:
    """Sends protobuf over HTTP to one endpoint. Redirects are not followed, because the headers hold secrets.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """

    def __init__(self, target: ExportTarget, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._client = _client(target)

    async def send(self, signal: Signal, body: bytes) -> Reply:
        """Send a request, compressed."""
        import httpx  # noqa: PLC0415 - see `_client`

        compressed = await asyncio.to_thread(gzip.compress, body, 1)
        try:
            async with asyncio.timeout(self._target.timeout_seconds):
                async with self._client.stream(
                    "POST", f"{self._target.endpoint}{signal.path}", content=compressed
                ) as response:
                    return self._reply_of(response, await _read(response))
        except TimeoutError:
            return Reply(Failure.TIMEOUT, why=f"no reply within {self._target.timeout_seconds:g} s")
        except (httpx.HTTPError, OSError) as error:
            why = " ".join(str(error).split())[:MAX_MESSAGE_CHARS]
            return Reply(Failure.CONNECTION, why=f"{type(error).__name__}: {why}")

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    def _reply_of(self, response: Response, body: bytes) -> Reply:
        status = response.status_code
        if response.is_success:
            return Reply(body=body)
        why = f"HTTP {status}"
        if status == _TOO_MANY:
            failure = Failure.RATE_LIMITED
        elif status >= _SERVER_ERRORS or status == _TIMED_OUT:
            failure = Failure.UNAVAILABLE
        elif status in _NOT_ALLOWED:
            failure = Failure.UNAUTHORIZED
        else:
            failure = Failure.TOO_LARGE if status == _TOO_LARGE else Failure.REFUSED
        return Reply(failure, why=why, wait=_retry_after(response.headers.get("retry-after", ""), self._clock()))


def _retry_after(text: str, now: float) -> float | None:
    """Seconds of the header Retry-After, a number or a date; None without a valid one."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


async def _read(response: Response) -> bytes:
    """The body of a reply, as far as it is needed."""
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            return b""
    return bytes(content)


def _client(target: ExportTarget) -> AsyncClient:
    import httpx  # noqa: PLC0415 - slow to import, and only the export needs it

    headers = {
        "User-Agent": f"ragwatch/{__version__}",
        **target.headers,
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
        "Accept-Encoding": "identity",  # so that a reply cannot grow beyond its limit
    }
    client: AsyncClient = async_client(
        httpx,
        headers=headers,
        verify=_tls(target),
        timeout=None,
    )
    return client


def _tls(target: ExportTarget) -> ssl.SSLContext | bool:
    if not target.endpoint.startswith("https:"):
        return False
    try:
        return ssl.create_default_context(cafile=target.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"export.otlp.ca_file: {target.ca_file} cannot be read; give a file of PEM certificates"
        ) from error
