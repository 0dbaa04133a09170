"""Defines rights, who has them, and which of them a request needs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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


def required_rights(method: str, path: str) -> frozenset[Right]:
    """Returns the rights that a request needs; a path that is not known needs `pages` or `write`.

    >>> sorted(required_rights("GET", "/samples")), sorted(required_rights("DELETE", "/samples"))
    ([<Right.PAGES: 'pages'>], [<Right.WRITE: 'write'>])
    """
    if path in HEALTH_PATHS or path.startswith(STATIC):
        return NOTHING
    if path == "/metrics":
        return frozenset({Right.METRICS})
    if path in INGEST_PATHS:
        return frozenset({Right.INGEST})
    if path == MCP_PATH:  # a POST whose tools only read
        return frozenset({Right.PAGES})
    if path == TASKS_PATH:  # a POST that returns texts
        return frozenset({Right.PAGES, Right.WRITE})
    return frozenset({Right.PAGES if method in SAFE_METHODS else Right.WRITE})


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
    """Who may do what. Without users, tokens and certificates nobody is asked who they are."""

    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # bcrypt hashes of the passwords, by name
    tokens: tuple[Token, ...] = ()
    certificates: bool = False  # whether a verified one says who the client is, where there are no users
    grants: Mapping[str, frozenset[Right]] = field(default_factory=dict)  # by user, or name in a client certificate
    unlisted: frozenset[Right] = EVERYTHING  # of users without a grant
    anonymous: frozenset[Right] = EVERYTHING  # of clients that do not say who they are
    headers: Mapping[str, str] = field(default_factory=dict)  # of responses; they replace ours
    rate: RateLimit | None = None  # of all requests; None for no limit

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
    """Which requests are answered. All are functions, because a reload changes what they return."""

    hosts: Callable[[], frozenset[str] | None] = lambda: None  # names in the Host header: `allowed_hosts`; None for any
    external: Callable[[], str | None] = lambda: None  # the external URL; None for the address of the request
    access: Callable[[], Access] = lambda: OPEN  # who may do what
    refused: Callable[[str], None] = lambda _: None  # hears of refusals: `credentials`, `right`, `rate` or `labels`
    mcp: Callable[[], bool] = lambda: False  # whether assistants are answered at `/mcp`
