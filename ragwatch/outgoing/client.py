"""Builds the clients for requests that ragwatch makes. Nothing else builds one.

A request goes to the very address that was checked, so that DNS cannot change its mind; through a proxy the host alone
is checked. Redirects are not followed: texts and keys must not reach another host. Replies are bounded as they arrive
and as they are unpacked.
"""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ragwatch.outgoing.guard import Guard
from ragwatch.outgoing.proxies import proxies

if TYPE_CHECKING:
    import httpx

# Types are those of httpx; `library` is httpx or the copy of it that an SDK brings, which has the same.
Verify = SSLContext | bool
# ruff: noqa: ANN401
MAX_REPLY_BYTES = 4 << 20
"""Most bytes of the reply of a judge, as sent and unpacked."""


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


def blocking_client(library: ModuleType, **options: object) -> httpx.Client:
    """Return a client for a thread that may wait; it uses no proxies, and its caller bounds what it reads."""
    guard = Guard(library)
    direct: httpx.BaseTransport = library.HTTPTransport(trust_env=False)

    class Transport(library.BaseTransport):  # type: ignore[misc, name-defined]  # of a library that is chosen late
        """Sends requests that a guard has checked."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            *others, last = guard.resolved_blocking(request)
            for address in others:
                try:
                    return direct.handle_request(guard.at(request, address))
                except library.ConnectError:
                    continue
            return direct.handle_request(guard.at(request, last))

        def close(self) -> None:
            direct.close()

    client: httpx.Client = library.Client(transport=Transport(), trust_env=False, follow_redirects=False, **options)
    return client


def _async_transport(library: ModuleType) -> Callable[[Guard, Verify, httpx.Limits], httpx.AsyncBaseTransport]:
    class Transport(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]  # of a library that is chosen late
        """Sends requests that a guard has checked."""

        def __init__(self, guard: Guard, verify: Verify, limits: httpx.Limits) -> None:
            self._guard, self._options = guard, {"verify": verify, "limits": limits, "trust_env": False}
            self._by_proxy: dict[str | None, httpx.AsyncBaseTransport] = {}

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            guard, proxy = self._guard, self._guard.proxy_of(request)
            transport = self._through(proxy)
            if proxy is not None:
                return guard.bounded(request, await transport.handle_async_request(request))
            *others, last = await guard.resolved(request)
            for address in others:
                try:
                    return guard.bounded(request, await transport.handle_async_request(guard.at(request, address)))
                except library.ConnectError:  # try the next one: localhost is ::1 and 127.0.0.1
                    continue
            return guard.bounded(request, await transport.handle_async_request(guard.at(request, last)))

        def _through(self, proxy: str | None) -> httpx.AsyncBaseTransport:
            if proxy not in self._by_proxy:
                self._by_proxy[proxy] = library.AsyncHTTPTransport(proxy=proxy, **self._options)
            return self._by_proxy[proxy]

        async def aclose(self) -> None:
            for transport in self._by_proxy.values():
                await transport.aclose()

    return Transport
