"""Defines rights, who has them, and which of them a request needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEALTH_PATHS = frozenset({"/-/healthy", "/-/ready"})
INGEST_PATHS = frozenset({"/v1/samples", "/v1/traces", "/v1/logs", "/v1/feedback"})
TASKS_PATH = "/v1/labels/tasks"
LABEL_PATH = "/label"
MCP_PATH = "/mcp"
STATIC = "/static/"


class Right(StrEnum):
    """What a client may do."""

    METRICS = "metrics"  # read the series
    PAGES = "pages"  # read texts: pages and API
    WRITE = "write"  # reload, run canaries, acknowledge, label, report events
    INGEST = "ingest"  # send samples


NOTHING: frozenset[Right] = frozenset()
EVERYTHING = frozenset(Right)
_REQUIRED = {right: frozenset({right}) for right in Right}


def required_rights(method: str, path: str) -> frozenset[Right]:
    """Returns the rights that a request needs; a path that is not known needs `pages` or `write`.

    >>> sorted(required_rights("GET", "/samples")), sorted(required_rights("DELETE", "/samples"))
    ([<Right.PAGES: 'pages'>], [<Right.WRITE: 'write'>])
    """
    if path in HEALTH_PATHS or path.startswith(STATIC):
        return NOTHING
    if path == "/metrics":
        return _REQUIRED[Right.METRICS]
    if path in INGEST_PATHS:
        return _REQUIRED[Right.INGEST]
    if path == MCP_PATH:  # a POST whose tools only read
        return _REQUIRED[Right.PAGES]
    if path == TASKS_PATH:  # a POST that returns texts
        return _REQUIRED[Right.PAGES] | _REQUIRED[Right.WRITE]
    return _REQUIRED[Right.PAGES if method in SAFE_METHODS else Right.WRITE]


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token: its name in logs, the SHA-256 of the token, its rights."""

    name: str
    digest: bytes = field(repr=False)
    rights: frozenset[Right]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket over all requests: one more request per interval, and so many at once."""

    interval: float
    burst: int


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what. Without users, tokens and certificates nobody is asked who they are.

    Attributes:
        users: bcrypt hashes of the passwords, by user name.
        tokens: Bearer tokens.
        certificates: Whether a verified client certificate says who the client is, where there are no users.
        grants: Rights by user name, or by name in a client certificate.
        unlisted: Rights of users without a grant.
        anonymous: Rights of clients that do not say who they are.
        headers: Response headers that replace ours.
        rate: Limit of all requests; None for no limit.
    """

    users: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    tokens: tuple[Token, ...] = ()
    certificates: bool = False
    grants: Mapping[str, frozenset[Right]] = field(default_factory=lambda: MappingProxyType({}))
    unlisted: frozenset[Right] = EVERYTHING
    anonymous: frozenset[Right] = EVERYTHING
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    rate: RateLimit | None = None

    @property
    def has_credentials(self) -> bool:
        """Whether clients can say who they are."""
        return bool(self.users or self.tokens or self.certificates)

    def rights_of(self, names: Iterable[str]) -> frozenset[Right]:
        """Returns the rights of a user, or of all names in a client certificate together."""
        granted = [self.grants[name] for name in names if name in self.grants]
        return frozenset().union(*granted) if granted else self.unlisted


OPEN = Access()
"""Everybody may do everything: for addresses that only this machine reaches."""


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Which requests are answered. All are functions, because a reload changes what they return.

    Attributes:
        hosts: Returns the allowed names in the Host header (see `allowed_hosts`), None for any.
        external: Returns the external URL, None for the address of the request.
        access: Returns who may do what.
        refused: Called with the reason of each refusal: `credentials`, `right`, `rate` or `labels`.
        mcp: Returns whether assistants are answered at `/mcp`.
    """

    hosts: Callable[[], frozenset[str] | None] = lambda: None
    external: Callable[[], str | None] = lambda: None
    access: Callable[[], Access] = lambda: OPEN
    refused: Callable[[str], None] = lambda _: None
    mcp: Callable[[], bool] = lambda: False
