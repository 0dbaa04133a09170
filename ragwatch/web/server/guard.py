"""Sets security headers on every response and refuses forged requests.

Against DNS rebinding, a name in the Host header must be allowed, at every listen address; IP addresses are accepted,
because rebinding needs a name. Against cross-site request forgery, requests that change state must have our own origin
if a browser sends them, and forms a token: a browser gets a random cookie (SameSite=Strict) with its first page, a form
holds a keyed hash of the cookie and of the user. Other sites can neither read the page nor send the cookie. Programs
send no forms: they need no token. Against request smuggling, a request states its length in one way only.
"""

import hashlib
import hmac
import re
import secrets
import socket
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwatch.web.access import LABEL_PATH, SAFE_METHODS, STATIC, RequestPolicy, Right
from ragwatch.web.authentication import RIGHTS, USER
from ragwatch.web.json_values import TooLargeError, read_body

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with `Origin: null`
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SCRIPT_POLICY = HEADERS["Content-Security-Policy"].replace("style-src", "script-src 'self'; style-src")
"""The policy of the pages with a script, which is a static file."""
NO_STORE = {"Cache-Control": "no-store"}  # pages contain texts of users; static files may be cached
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
_SAME_SITE = ("same-origin", "none")  # values of Sec-Fetch-Site: our own pages, or no page at all
COOKIE, FIELD = "ragwatch_form", "form_token"
FORM_TOKEN = "ragwatch.form_token"  # noqa: S105 - a key of the ASGI scope
MAX_FORM_BYTES = 16 << 10
MAX_QUERY_BYTES, MAX_PARAMETERS = 16 << 10, 500
MAX_HEADER_BYTES, MAX_HEADERS = 64 << 10, 200
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_BROWSER_HEADERS = ("origin", "referer", "sec-fetch-site", "cookie")
_COOKIE = re.compile(r"[A-Za-z0-9_-]{32}")


def allowed_hosts(listen: str, external_url: str | None, names: Iterable[str] = ()) -> frozenset[str]:
    """Allowed names in the Host header: loopback, the listen address, this machine, and those that are configured.

    >>> sorted(allowed_hosts("127.0.0.1", "https://rag.example.org/watch/", ["rag"]))
    ['127.0.0.1', '::1', 'localhost', 'rag', 'rag.example.org']
    """
    allowed = {*_LOOPBACK, listen.lower(), *(name.lower() for name in names)} - set(_WILDCARDS)
    if listen in _WILDCARDS:
        allowed.add(socket.gethostname().lower())
    external = None if external_url is None else _parts(external_url)
    return frozenset((allowed | {external.hostname or "" if external else ""}) - {""})


def _parts(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:  # an unclosed bracket
        return None


class RequestGuard:
    """Middleware that refuses requests with a foreign Host or Origin header."""

    def __init__(self, app: ASGIApp, policy: RequestPolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(response_headers(scope["path"], self._policy.access().headers))
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(headers, scope["method"], scope.get("scheme", "http"))
        app = self._app if refusal is None else PlainTextResponse(f"{refusal}\n", status_code=403)
        if "transfer-encoding" in headers and "content-length" in headers:
            app = _TWO_LENGTHS
        await (_oversized(scope) or app)(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers, method: str, scheme: str) -> str | None:
        host, names = headers.get("host", ""), self._policy.hosts()
        if names is not None and not _is_allowed(host, names):
            return (
                "The Host header is not allowed. Set web.external_url to the address that users open, "
                "or add the name to web.hosts."
            )
        origin = headers.get("origin")
        allowed = {_origin(f"{scheme}://{host}"), _origin(self._policy.external() or "")} - {None}
        if method in SAFE_METHODS:
            return None
        is_foreign = origin is not None and _origin(origin) not in allowed
        if is_foreign or (origin is None and headers.get("sec-fetch-site", _SAME_SITE[0]) not in _SAME_SITE):
            return "Cross-site requests are not allowed."
        return None


_TWO_LENGTHS = PlainTextResponse(
    "A request has a Content-Length or a Transfer-Encoding, not both.\n", 400, headers={"Connection": "close"}
)


def _oversized(scope: Scope) -> PlainTextResponse | None:
    """The refusal of a request whose address or headers exceed a limit: reading many takes more than linear time."""
    query, headers = scope["query_string"], scope["headers"]
    if len(query) > MAX_QUERY_BYTES or query.count(b"&") >= MAX_PARAMETERS:
        text = f"The address has more than {MAX_PARAMETERS} parameters, or more than {MAX_QUERY_BYTES} bytes of them.\n"
        return PlainTextResponse(text, 414)
    if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        text = f"The request has more than {MAX_HEADERS} headers, or more than {MAX_HEADER_BYTES} bytes of them.\n"
        return PlainTextResponse(text, 431)
    return None


def response_headers(path: str, configured: Mapping[str, str]) -> dict[str, str]:
    """Headers of every response to a path; configured ones replace ours."""
    ours = HEADERS if path.startswith(STATIC) else HEADERS | NO_STORE
    if path == LABEL_PATH:
        ours = ours | {"Content-Security-Policy": SCRIPT_POLICY}
    return {**ours, **{name: value for name, value in configured.items() if value}}


def _origin(address: str) -> tuple[str, str] | None:
    """Scheme, and host with port, of a URL; None if it has none."""
    parts = _parts(address)
    return (parts.scheme, parts.netloc) if parts and parts.scheme and parts.netloc else None


def _is_allowed(host: str, names: frozenset[str]) -> bool:
    parts = _parts(f"//{host}")
    if parts is None:
        return False
    name = parts.hostname or ""
    if name in names or not name:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class FormGuard:
    """Middleware that refuses forms that this process has not served to the browser, and gives pages their token."""

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
            try:
                body = await read_body(Request(scope, receive), MAX_FORM_BYTES)
            except TooLargeError as error:  # nothing outside turns these into responses
                await PlainTextResponse(f"{error}\n", 413)(scope, receive, send)
                return
            except HTTPException as error:
                await PlainTextResponse(error.detail, error.status_code, error.headers)(scope, receive, send)
                return
            sent = parse_qs(body.decode("latin-1")).get(FIELD, [""])[0]
            if cookie != given or not hmac.compare_digest(sent.encode(), token.encode()):
                await _REFUSED(scope, receive, send)
                return
            receive = replay(body, receive)

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


def replay(body: bytes, receive: Receive) -> Receive:
    """Returns a `receive` that returns the body of a request first, which has been read already."""
    waiting = [body]

    async def receive_again() -> Message:
        return {"type": "http.request", "body": waiting.pop()} if waiting else await receive()

    return receive_again
