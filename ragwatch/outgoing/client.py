"""Builds the clients for requests that ragwatch makes. Nothing else builds one.

A request goes to the very address that was checked, so that DNS cannot change its mind; through a proxy the host alone
is checked. Redirects are not followed: texts and keys must not reach another host. Replies are bounded as they arrive
and as they are unpacked; the timeout of a request is for the whole of a bounded reply, however small its parts.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from ssl import SSLContext
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ragwatch.outgoing.addresses import forbidden, is_address, resolve
from ragwatch.outgoing.proxies import NO_PROXIES, Proxies, proxies

if TYPE_CHECKING:
    import httpx

    Through = Callable[[str | None], httpx.AsyncBaseTransport]

# Types are those of httpx; `library` is httpx or the copy of it that an SDK brings, which has the same.
Verify = SSLContext | bool
# ruff: noqa: ANN401
MAX_REPLY_BYTES = 4 << 20
"""Most bytes of the reply of a judge, as sent and unpacked."""
_PORTS = {"http": 80, "https": 443}
_PIECE = 64 << 10  # bytes that are unpacked at once
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class ForbiddenAddressError(Exception):
    """The cause of a connection error: the address may not be asked."""


class TooLargeError(Exception):
    """The cause of a read error: the reply has more bytes than its limit."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks the requests of one client."""

    library: ModuleType
    environment: Proxies = NO_PROXIES
    max_bytes: int | None = None  # most bytes of a reply, as sent and unpacked; None where whoever reads it bounds it
    unbounded_suffix: str | None = None  # end of the paths whose replies are streams, which whoever reads them bounds

    def proxy_of(self, request: httpx.Request) -> str | None:
        """The proxy of a request, whose host is checked: a proxy resolves names itself."""
        host, port = _place(request)
        proxy = self.environment.proxy_of(request.url.scheme, host, port)
        if proxy is not None and forbidden(host):
            raise self._forbidden(host, request) from ForbiddenAddressError()
        return proxy

    async def resolved(self, request: httpx.Request) -> list[str]:
        """The addresses of the host of a request, once they are checked."""
        host, port = _place(request)
        if is_address(host):
            return self._checked([host], host, request)
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            async with asyncio.timeout(seconds):
                return self._checked(await asyncio.to_thread(resolve, host, port), host, request)
        except TimeoutError:
            raise self.library.ConnectTimeout(f"{host} was not resolved in time", request=request) from None
        except OSError as error:
            raise self.library.ConnectError(f"{host} cannot be resolved: {error}", request=request) from error

    def at(self, request: httpx.Request, address: str) -> httpx.Request:
        """A request for the host at one of its addresses: the header Host and the name in TLS stay the host's."""
        host = request.url.raw_host.decode("ascii")
        if host == address:
            return request
        checked: httpx.Request = self.library.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={"sni_hostname": host, **request.extensions},
        )
        return checked

    async def reply(self, request: httpx.Request, through: Through) -> httpx.Response:
        """Send a request. The timeout of a bounded reply is for the whole of it; others have those of the library."""
        seconds = request.extensions.get("timeout", {}).get("read") if self._bounds(request) else None
        try:
            async with asyncio.timeout(seconds) as timeout:
                response = await self._response(request, through)
        except TimeoutError:
            raise self.late(request) from None
        return self.bounded(request, response, timeout.when())

    async def _response(self, request: httpx.Request, through: Through) -> httpx.Response:
        proxy = self.proxy_of(request)
        transport = through(proxy)
        if proxy is not None:
            return await transport.handle_async_request(request)
        *others, last = await self.resolved(request)
        for address in others:
            try:
                return await transport.handle_async_request(self.at(request, address))
            except self.library.ConnectError:  # try the next one: localhost is ::1 and 127.0.0.1
                continue
        return await transport.handle_async_request(self.at(request, last))

    def late(self, request: httpx.Request) -> Exception:
        """The error for a reply that did not arrive in that time."""
        error: Exception = self.library.ReadTimeout("no whole reply in time", request=request)
        return error

    def _bounds(self, request: httpx.Request) -> bool:
        suffix = self.unbounded_suffix
        return self.max_bytes is not None and (suffix is None or not request.url.path.endswith(suffix))

    def bounded(self, request: httpx.Request, response: httpx.Response, deadline: float | None) -> httpx.Response:
        """A response whose body is bounded while it is read."""
        if not self._bounds(request):
            return response
        unpack = _unpacker(response.headers, self.library)
        left_out = {b"content-encoding"} if unpack is None else {b"content-encoding", b"content-length"}
        bounded: httpx.Response = self.library.Response(
            response.status_code,
            headers=[(name, value) for name, value in response.headers.raw if name.lower() not in left_out],
            stream=_stream(self.library)(response.stream, unpack, self, request, deadline),
            extensions=response.extensions,
        )
        return bounded

    def _checked(self, addresses: list[str], host: str, request: httpx.Request) -> list[str]:
        if forbidden(host) or any(map(forbidden, addresses)):
            raise self._forbidden(host, request) from ForbiddenAddressError()
        return addresses

    def _forbidden(self, host: str, request: httpx.Request) -> Exception:
        message = f"{host} is at the address of a metadata service, or link-local"
        error: Exception = self.library.ConnectError(message, request=request)
        return error


Unpack = Callable[[bytes], Iterator[bytes]]


@cache
def _stream(library: ModuleType) -> Callable[..., httpx.AsyncByteStream]:
    """The class of bounded bodies."""

    class Bounded(library.AsyncByteStream):  # type: ignore[misc, name-defined]  # of a library that is chosen late
        """The body of a response, which ends with an error at the limit."""

        def __init__(
            self,
            stream: httpx.AsyncByteStream,
            unpack: Unpack | None,
            guard: Guard,
            request: httpx.Request,
            deadline: float | None,
        ) -> None:
            self._stream, self._unpack, self._request = stream, unpack, request
            self._guard, self._limit, self._deadline = guard, guard.max_bytes or 0, deadline

        async def __aiter__(self) -> AsyncIterator[bytes]:
            sent = unpacked = 0
            chunks = aiter(self._stream)
            while (chunk := await self._next(chunks)) is not None:
                sent += len(chunk)  # counted as well: compressed bytes without end need not unpack to anything
                self._check(sent)
                for piece in (chunk,) if self._unpack is None else self._unpack(chunk):
                    unpacked += len(piece)
                    self._check(unpacked)
                    yield piece

        async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
            try:
                async with asyncio.timeout_at(self._deadline):
                    return await anext(chunks, None)
            except TimeoutError:
                raise self._guard.late(self._request) from None

        def _check(self, size: int) -> None:
            if size > self._limit:
                message = f"a reply of more than {self._limit} bytes"
                raise library.ReadError(message, request=self._request) from TooLargeError()

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded


def _unpacker(headers: Mapping[str, str], library: ModuleType) -> Unpack | None:
    """A function that unpacks chunks in small pieces; None for a body that is not compressed."""
    name = headers.get("content-encoding", "identity").strip().lower()
    if name in ("", "identity"):
        return None
    unpacker = zlib.decompressobj(_WINDOWS[name]) if name in _WINDOWS else None

    def unpack(chunk: bytes) -> Iterator[bytes]:
        if unpacker is None:
            raise library.DecodingError(f"a reply is compressed with {name[:20]!r}, which was not asked for")
        try:
            while chunk and not unpacker.eof:  # what follows the end is no part of the body
                yield unpacker.decompress(chunk, _PIECE)
                chunk = unpacker.unconsumed_tail
        except zlib.error as error:
            raise library.DecodingError(f"a reply is not valid {name}: {error}") from None

    return unpack


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a reply asks to wait: `retry-after-ms`, or `retry-after` (seconds, or a date); None without them.

    >>> retry_after({"retry-after-ms": "1500"}, 0.0), retry_after({"retry-after": "nan"}, 0.0)
    (1.5, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - now
            except (ValueError, OverflowError):  # no date, or one whose numbers are too large for one
                continue
        if math.isfinite(seconds) and seconds >= 0.0:
            return seconds
    return None


def _place(request: httpx.Request) -> tuple[str, int]:
    host = request.url.raw_host.decode("ascii").strip("[]")
    return host, request.url.port or _PORTS[request.url.scheme]


def async_client(
    library: ModuleType,
    *,
    verify: Verify = True,
    guard: Guard | None = None,
    limits: httpx.Limits | None = None,
    **options: Any,
) -> httpx.AsyncClient:
    """Return an asynchronous client of `httpx`, or of the copy of it that an SDK brings.

    `guard` checks requests, by default their addresses alone; `options` are further ones of the library.
    """
    transport = _async_transport(library)(guard or Guard(library), verify, limits or library.Limits())
    client: httpx.AsyncClient = library.AsyncClient(
        transport=transport, trust_env=False, follow_redirects=False, **options
    )
    return client


def judge_client(library: ModuleType, *, unbounded_suffix: str | None = None, **options: Any) -> Any:
    """Return an asynchronous client for an LLM: it uses the proxies of the environment, and bounds replies."""
    return async_client(library, guard=Guard(library, proxies(), MAX_REPLY_BYTES, unbounded_suffix), **options)


def _async_transport(library: ModuleType) -> Callable[[Guard, Verify, httpx.Limits], httpx.AsyncBaseTransport]:
    class Transport(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]  # of a library that is chosen late
        """Sends requests that a guard has checked."""

        def __init__(self, guard: Guard, verify: Verify, limits: httpx.Limits) -> None:
            self._guard, self._options = guard, {"verify": verify, "limits": limits, "trust_env": False}
            self._by_proxy: dict[str | None, httpx.AsyncBaseTransport] = {}

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return await self._guard.reply(request, self._through)

        def _through(self, proxy: str | None) -> httpx.AsyncBaseTransport:
            if proxy not in self._by_proxy:
                self._by_proxy[proxy] = library.AsyncHTTPTransport(proxy=proxy, **self._options)
            return self._by_proxy[proxy]

        async def aclose(self) -> None:
            for transport in self._by_proxy.values():
                await transport.aclose()

    return Transport
