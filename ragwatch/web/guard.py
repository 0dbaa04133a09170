"""Sets security headers on every response and refuses forged requests.

Against DNS rebinding, a name in the Host header must be allowed; IP addresses are accepted, because rebinding needs a
name. Against cross-site request forgery, requests that change state must have our own origin.
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
NO_STORE = {"Cache-Control": "no-store"}  # pages contain texts of users; static files may be cached
_STATIC = "/static/"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def allowed_hosts(listen: str, external_url: str | None) -> frozenset[str] | None:
    """Allowed names in the Host header; None for any name, if the server listens on every address.

    >>> sorted(allowed_hosts("127.0.0.1", "https://rag.example.org/watch/"))
    ['127.0.0.1', '::1', 'localhost', 'rag.example.org']
    """
    if listen in _WILDCARDS and external_url is None:
        return None
    names = {*_LOOPBACK, listen.lower()} - set(_WILDCARDS)
    if external_url is not None:
        names.add(_name_of(external_url))
    return frozenset(names - {""})


def _name_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # an unclosed bracket
        return ""


class RequestGuard:
    """Middleware that refuses requests with a foreign Host or Origin header.

    Args:
        app: The application.
        hosts: Returns the allowed names in the Host header; None for any.
        external: Returns the external URL; None if there is none.
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
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS if scope["path"].startswith(_STATIC) else HEADERS | NO_STORE)
            await send(message)

        refusal = self._refusal(Headers(scope=scope), scope["method"], scope.get("scheme", "http"))
        app = self._app if refusal is None else PlainTextResponse(f"{refusal}\n", status_code=403)
        await app(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers, method: str, scheme: str) -> str | None:
        host, names = headers.get("host", ""), self._hosts()
        if names is not None and not _is_allowed(host, names):
            return "The Host header is not allowed. Set web.external_url to the address that users open."
        origin = headers.get("origin")
        allowed = {_origin(f"{scheme}://{host}"), _origin(self._external() or "")} - {None}
        if method not in _SAFE_METHODS and origin is not None and _origin(origin) not in allowed:
            return "Cross-site requests are not allowed."
        return None


def _origin(address: str) -> tuple[str, str] | None:
    """Scheme, and host with port, of a URL; None if it has none."""
    try:
        parts = urlsplit(address)
    except ValueError:  # an unclosed bracket
        return None
    return (parts.scheme, parts.netloc) if parts.scheme and parts.netloc else None


def _is_allowed(host: str, names: frozenset[str]) -> bool:
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
