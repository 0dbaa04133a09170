"""Asks clients who they are, and refuses what they may not do: 401 without credentials, 403 without the right."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ragwatch.web.access import NOTHING, Access, RateLimit, RequestPolicy, Right, Token, required_rights
from ragwatch.web.passwords import PasswordChecker, TooManyChecksError

USER = "ragwatch.user"
"""Key of the ASGI scope that holds the name of the user or token; absent for clients that did not say who they are."""
RIGHTS = "ragwatch.rights"
"""Key of the ASGI scope that holds the rights of the client, where a request needs any."""
CERTIFICATE = "ragwatch.certificate"
"""Key of the ASGI scope that holds the verified client certificate, as `SSLSocket.getpeercert` returns it."""
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class User:
    """Who sent a request: a name, and what it may do."""

    name: str
    rights: frozenset[Right]


class RequestRate:
    """Counts requests in a token bucket.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._limit: RateLimit | None = None
        self._left, self._at = 0.0, 0.0

    def allows(self, limit: RateLimit | None) -> bool:
        """Whether one more request may be answered now."""
        if limit is None:
            return True
        now = self._clock()
        if limit != self._limit:
            self._limit, self._left, self._at = limit, float(limit.burst), now
        self._left = min(float(limit.burst), self._left + (now - self._at) / limit.interval)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Authentication:
    """Middleware that lets requests pass whose client has the rights that they need.

    Args:
        app: The application.
        policy: Who may do what, and what is called at refusals.
    """

    def __init__(self, app: ASGIApp, policy: RequestPolicy) -> None:
        self._app = app
        self._policy = policy
        self._passwords = PasswordChecker()
        self._rate = RequestRate()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        access, needed = self._policy.access(), required_rights(scope["method"], scope["path"])
        refusal: Response | None = None
        if not self._rate.allows(access.rate):
            self._policy.refused("rate")
            refusal = _answer(429, "Too many requests; see rate_limit in web.config_file.")
        elif needed:
            refusal = await self._refusal(scope, needed, access)
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, scope: Scope, needed: frozenset[Right], access: Access) -> Response | None:
        given = Headers(scope=scope).get("authorization") if access.has_credentials else None
        try:
            user = await self._user(given, scope, access)
        except TooManyChecksError:
            self._policy.refused("rate")
            return _answer(
                503, "Too many passwords wait to be checked; retry later.", {"Retry-After": f"{RETRY_SECONDS}"}
            )
        if user is not None:
            scope[USER] = user.name
        elif given is not None:
            self._policy.refused("credentials")
            return _challenge(access, "The user, the password or the token is wrong.")
        scope[RIGHTS] = access.anonymous | (user.rights if user is not None else NOTHING)
        missing = needed - scope[RIGHTS]
        if not missing:
            return None
        self._policy.refused("right" if user is not None else "credentials")
        if user is None and (access.users or access.tokens):
            return _challenge(access, "This address needs a user with a password, or a token.")
        return _answer(403, _explanation(user, missing, access))

    async def _user(self, given: str | None, scope: Scope, access: Access) -> User | None:
        if given is None:
            names = certificate_names(scope.get(CERTIFICATE))
            if not access.certificates or access.users or not names:
                return None
            return User(names[0], access.rights_of(names))
        scheme, _, value = given.partition(" ")
        match scheme.lower():
            case "bearer":
                return _token_user(value.strip(), access.tokens)
            case "basic":
                return await self._password_user(value.strip(), access)
            case _:
                return None

    async def _password_user(self, encoded: str, access: Access) -> User | None:
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
            user = name.decode()
        except (binascii.Error, ValueError):
            return None
        if not colon or not access.users or not await self._passwords.check(access.users, user, password):
            return None
        return User(user, access.rights_of([user]))


def _token_user(value: str, tokens: Iterable[Token]) -> User | None:
    """The token that equals a value. Hashes of all are compared, in a time that does not depend on the value."""
    digest = hashlib.sha256(value.encode()).digest()
    matching = [token for token in tokens if hmac.compare_digest(token.digest, digest)]
    return User(matching[0].name, matching[0].rights) if matching else None


def certificate_names(certificate: Mapping[str, Any] | None) -> list[str]:
    """Alternative names of a certificate, then its common name.

    >>> certificate_names({"subjectAltName": (("DNS", "prom"),), "subject": ((("commonName", "scraper"),),)})
    ['prom', 'scraper']
    """
    if not certificate:
        return []
    subject = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return [*alternative_names(certificate), *subject]


def alternative_names(certificate: Mapping[str, Any]) -> list[str]:
    """Alternative names of a certificate: DNS names, addresses, e-mail addresses and URIs."""
    kinds = {"DNS", "IP Address", "email", "URI"}
    return [value for kind, value in certificate.get("subjectAltName", ()) if kind in kinds]


def _explanation(user: User | None, missing: frozenset[Right], access: Access) -> str:
    rights = ", ".join(sorted(missing))
    if user is not None:
        return f"{user.name} does not have the right: {rights}. See web.users and web.tokens."
    if access.certificates:
        return f"This address needs a client certificate with the right: {rights}."
    return f"Nobody has the right: {rights}. Add users (web.config_file) or web.tokens, or write it under web.open."


def _challenge(access: Access, text: str) -> Response:
    """Builds a 401 with every scheme that clients can use."""
    response = _answer(401, text)
    if access.users:
        response.headers.append("WWW-Authenticate", 'Basic realm="ragwatch", charset="UTF-8"')
    if access.tokens:
        response.headers.append("WWW-Authenticate", 'Bearer realm="ragwatch"')
    return response


def _answer(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers=headers)
