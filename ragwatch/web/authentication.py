"""Decides who a client is and whether it may do what it asks for: 401 without credentials, 403 without the right."""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypedDict

import bcrypt
from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ragwatch.web.access import NOTHING, Access, RateLimit, RequestPolicy, Right, Token, required_rights

USER = "ragwatch.user"
"""Key of the ASGI scope that holds the name of the user or token; absent for clients that did not say who they are."""
RIGHTS = "ragwatch.rights"
"""Key of the ASGI scope that holds the rights of the client, where a request needs any."""
CERTIFICATE = "ragwatch.certificate"
"""Key of the ASGI scope that holds the verified client certificate, as `SSLSocket.getpeercert` returns it."""
RETRY_SECONDS = 5
MAX_REMEMBERED = 100  # right passwords
MAX_WAITING = 32  # passwords that are checked one after the other
MAX_BYTES = 72  # bcrypt reads no more; the tools that make hashes cut there as well
_DUMMY = "$2b${cost:02d}$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
_BASIC, _BEARER = 'Basic realm="ragwatch", charset="UTF-8"', 'Bearer realm="ragwatch"'


@dataclass(frozen=True, slots=True)
class User:
    """Who sent a request: a name, and what it may do."""

    name: str
    rights: frozenset[Right]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int  # HTTP status: 401, 403, 429 or 503
    text: str  # for people
    challenges: tuple[str, ...] = ()  # ways in which the client may say who it is
    retry_seconds: int | None = None  # after how many seconds it may try again; None if that is of no use


@dataclass(frozen=True, slots=True)
class Decision:
    """Who sent a request, its rights, and why it is refused; None if it is not."""

    user: User | None = None
    rights: frozenset[Right] = NOTHING
    refusal: Refusal | None = None


class RequestRate:
    """Counts requests in a token bucket."""

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


class Authenticator:
    """Decides about the requests that arrive at one address."""

    def __init__(self, access: Callable[[], Access], refused: Callable[[str], None]) -> None:
        self._access = access
        self._refused = refused
        self._passwords = PasswordChecker()
        self._rate = RequestRate()

    async def decide(self, needed: frozenset[Right], given: str | None, names: Sequence[str]) -> Decision:
        """Decides about one request: `given` is the header `Authorization`, `names` are those of the certificate."""
        access = self._access()
        if not self._rate.allows(access.rate):
            self._refused("rate")
            return Decision(refusal=Refusal(429, "Too many requests; see rate_limit in web.config_file."))
        if not needed:
            return Decision()
        given = given if access.has_credentials else None
        try:
            user = await self._user(given, names, access)
        except TooManyChecksError:
            self._refused("rate")
            text = "Too many passwords wait to be checked; retry later."
            return Decision(refusal=Refusal(503, text, retry_seconds=RETRY_SECONDS))
        if user is None and given is not None:
            self._refused("credentials")
            return Decision(refusal=_challenge(access, "The user, the password or the token is wrong."))
        rights = access.anonymous | (user.rights if user is not None else NOTHING)
        return Decision(user, rights, self._missing(needed - rights, user, access))

    def _missing(self, missing: frozenset[Right], user: User | None, access: Access) -> Refusal | None:
        if not missing:
            return None
        self._refused("right" if user is not None else "credentials")
        if user is None and (access.users or access.tokens):
            return _challenge(access, "This address needs a user with a password, or a token.")
        rights = ", ".join(sorted(missing))
        text = f"Nobody has the right: {rights}. Add users (web.config_file) or web.tokens, or write it under web.open."
        if user is not None:
            text = f"{user.name} does not have the right: {rights}. See web.users and web.tokens."
        elif access.certificates:
            text = f"This address needs a client certificate with the right: {rights}."
        return Refusal(403, text)

    async def _user(self, given: str | None, names: Sequence[str], access: Access) -> User | None:
        if given is None:
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


class Certificate(TypedDict, total=False):
    """The part of a verified certificate, as `ssl` decodes it, that names its owner."""

    subject: tuple[tuple[tuple[str, str], ...], ...]
    subjectAltName: tuple[tuple[str, str], ...]


def certificate_names(certificate: Certificate | None) -> list[str]:
    """Alternative names of a certificate, then its common name.

    >>> certificate_names({"subjectAltName": (("DNS", "prom"),), "subject": ((("commonName", "scraper"),),)})
    ['prom', 'scraper']
    """
    if not certificate:
        return []
    subject = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return [*alternative_names(certificate), *subject]


def alternative_names(certificate: Certificate) -> list[str]:
    """Alternative names of a certificate: DNS names, addresses, e-mail addresses and URIs."""
    kinds = {"DNS", "IP Address", "email", "URI"}
    return [value for kind, value in certificate.get("subjectAltName", ()) if kind in kinds]


def _challenge(access: Access, text: str) -> Refusal:
    """Builds a refusal with every scheme that clients can use."""
    schemes = (_BASIC if access.users else "", _BEARER if access.tokens else "")
    return Refusal(401, text, tuple(filter(None, schemes)))


class Authentication:
    """Middleware that lets requests pass whose client has the rights that they need."""

    def __init__(self, app: ASGIApp, policy: RequestPolicy) -> None:
        self._app = app
        self._authenticator = Authenticator(policy.access, policy.refused)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        needed = required_rights(scope["method"], scope["path"])
        given = Headers(scope=scope).get("authorization")
        decision = await self._authenticator.decide(needed, given, certificate_names(scope.get(CERTIFICATE)))
        if decision.user is not None:
            scope[USER] = decision.user.name
        if needed:
            scope[RIGHTS] = decision.rights
        await (self._app if decision.refusal is None else _response(decision.refusal))(scope, receive, send)


def _response(refusal: Refusal) -> Response:
    response = PlainTextResponse(f"{refusal.text}\n", status_code=refusal.status)
    for challenge in refusal.challenges:
        response.headers.append("WWW-Authenticate", challenge)
    if refusal.retry_seconds is not None:
        response.headers["Retry-After"] = f"{refusal.retry_seconds}"
    return response


class TooManyChecksError(Exception):
    """Too many passwords wait to be checked."""


class PasswordChecker:
    """Checks passwords against bcrypt hashes, in a thread, one at a time. Must be used in one event loop only.

    Passwords that were right are remembered, as their keyed hash: a scraper with its password does not wait for others,
    and costs no bcrypt.
    """

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None  # needs a running event loop
        self._waiting = 0
        self._secret = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, None] = OrderedDict()

    async def check(self, users: Mapping[str, bytes], user: str, password: bytes) -> bool:
        """Whether the password is that of the user. Raises TooManyChecksError: too many wait to be checked."""
        parts = (user.encode(), users.get(user, b""), password)
        key = hmac.digest(self._secret, b"".join(len(part).to_bytes(4) + part for part in parts), hashlib.sha256)
        if user in users and key in self._remembered:
            self._remembered.move_to_end(key)
            return True
        if self._waiting >= MAX_WAITING:
            raise TooManyChecksError
        self._limiter = self._limiter or CapacityLimiter(1)
        self._waiting += 1
        try:
            right = await to_thread.run_sync(check_password, users, user, password, limiter=self._limiter)
        finally:
            self._waiting -= 1
        if right:
            self._remembered[key] = None
            if len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return right


def check_password(users: Mapping[str, bytes], user: str, password: bytes) -> bool:
    """Whether the password is that of the user; takes the same time for all users and for names that do not exist.

    So the time of a response does not say which names exist. Work doubles with the cost: a hash of cost c, and a dummy
    of each cost from c up to the highest one below the limit, are together as much work as one hash at the limit.
    """
    limit = max(cost_of(hashed) for hashed in users.values())
    known = users.get(user)
    hashed = known if known is not None else _dummy(limit)
    right = _matches(password, hashed)
    for cost in range(cost_of(hashed), limit):
        _matches(password, _dummy(cost))
    return right and known is not None


def cost_of(hashed: bytes) -> int:
    """Cost of a bcrypt hash.

    >>> cost_of(b"$2y$10$abc")
    10
    """
    return int(hashed.split(b"$")[2])


def _dummy(cost: int) -> bytes:
    return _DUMMY.format(cost=cost).encode()


def _matches(password: bytes, hashed: bytes) -> bool:
    """Run bcrypt once. All versions ($2, $2a, $2b, $2x, $2y) are computed as $2b, as in Go."""
    _, _, rest = hashed.lstrip(b"$").partition(b"$")
    return bcrypt.checkpw(password[:MAX_BYTES], b"$2b$" + rest)
