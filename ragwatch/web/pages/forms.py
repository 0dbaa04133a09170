"""Checks that forms were served by this process to the browser that sends them (cross-site request forgery).

A browser gets a random cookie (SameSite=Strict) with its first page; a form holds a keyed hash of the cookie and of the
user. Other sites can neither read the page nor send the cookie. Programs send no forms: they need no token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwatch.web.access import SAFE_METHODS, Right
from ragwatch.web.authentication import RIGHTS, USER

COOKIE, FIELD = "ragwatch_form", "form_token"
FORM_TOKEN = "ragwatch.form_token"  # noqa: S105 - a key of the ASGI scope
MAX_FORM_BYTES = 16 << 10
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_BROWSER_HEADERS = ("origin", "referer", "sec-fetch-site", "cookie")
_COOKIE = re.compile(r"[A-Za-z0-9_-]{32}")


class FormGuard:
    """Middleware that refuses forms without a valid token, and gives pages theirs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._secret = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        given = Request(scope).cookies.get(COOKIE, "")
        cookie = given if _COOKIE.fullmatch(given) else secrets.token_urlsafe(24)
        token = hmac.digest(self._secret, f"{cookie}\0{scope.get(USER, '')}".encode(), hashlib.sha256).hex()
        if Right.WRITE in scope.get(RIGHTS, ()):
            scope[FORM_TOKEN] = token
        if scope["method"] not in SAFE_METHODS and _is_form(Headers(scope=scope)):
            body = await _read(receive)
            sent = parse_qs((body or b"").decode("latin-1")).get(FIELD, [""])[0]
            if cookie != given or not hmac.compare_digest(sent.encode(), token.encode()):
                await _REFUSED(scope, receive, send)
                return
            receive = replay(body or b"", receive)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and cookie != given and FORM_TOKEN in scope:
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    secure = "; Secure" if scope.get("scheme") == "https" else ""
                    headers.append("Set-Cookie", f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}")
            await send(message)

        await self._app(scope, receive, send_with_cookie)


_REFUSED = PlainTextResponse("The form is not valid any more. Reload the page, and send it again.\n", 403)


def _is_form(headers: Headers) -> bool:
    """Whether a browser sends a form: the only kind of request with a body that other sites can cause."""
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return content_type in _FORM_TYPES and any(name in headers for name in _BROWSER_HEADERS)


async def _read(receive: Receive) -> bytes | None:
    """Body of a request; None if it is too long or the client has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_FORM_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def replay(body: bytes, receive: Receive) -> Receive:
    """Returns a `receive` that returns the body of a request first, which has been read already."""
    waiting = [body]

    async def receive_again() -> Message:
        return {"type": "http.request", "body": waiting.pop()} if waiting else await receive()

    return receive_again
