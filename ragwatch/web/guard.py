"""Guard: what every answer carries, and which requests are not answered at all.

Against DNS rebinding, a name in the Host header must be one of ours; addresses are let through, because rebinding
needs a name. Against forged requests of other sites, what changes state must come from our own origin.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
UNKEPT = {"Cache-Control": "no-store"}  # texts of users must not stay in caches; what is in static/ may
_STATIC = "/static/"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ANY = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not bound
_HARMLESS = ("GET", "HEAD", "OPTIONS")


def allowed_hosts(listen: str, external_url: str | None) -> frozenset[str] | None:
    """Names under which we may be asked; None for any name, when we listen on every address.

    >>> sorted(allowed_hosts("127.0.0.1", "https://rag.example.org/watch/"))
    ['127.0.0.1', '::1', 'localhost', 'rag.example.org']
    """
    if listen in _ANY and external_url is None:
        return None
    names = {*_LOOPBACK, listen.lower()} - set(_ANY)
    if external_url is not None:
        names.add(_name_of(external_url))
    return frozenset(names - {""})


def _name_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # a bracket that is never closed
        return ""


class RequestGuard:
    """Middleware around the whole application.

    Args:
        app: What is guarded.
        hosts: Allowed names in the Host header at present; None for any.
        external: Address that people use at present, where it is not that of the request; None for none.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Callable[[], frozenset[str] | None],
        external: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._external = external

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. For the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS if scope["path"].startswith(_STATIC) else HEADERS | UNKEPT)
            await send(message)

        refused = self._refuses(Headers(scope=scope), scope["method"], scope.get("scheme", "http"))
        app = self._app if refused is None else PlainTextResponse(f"{refused}\n", status_code=403)
        await app(scope, receive, send_guarded)

    def _refuses(self, headers: Headers, method: str, scheme: str) -> str | None:
        host, names = headers.get("host", ""), self._hosts()
        if names is not None and not _is_ours(host, names):
            return "This name is not ours. Set web.external_url to the address that people use."
        origin = headers.get("origin")
        ours = {_origin(f"{scheme}://{host}"), _origin(self._external() or "")} - {None}
        if method not in _HARMLESS and origin is not None and _origin(origin) not in ours:
            return "This request comes from another site."
        return None


def _origin(address: str) -> tuple[str, str] | None:
    """Scheme, and host with port, of an address; None where it has none."""
    try:
        found = urlsplit(address)
    except ValueError:  # a bracket that is never closed
        return None
    return (found.scheme, found.netloc) if found.scheme and found.netloc else None


def _is_ours(host: str, names: frozenset[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in names or not name:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
