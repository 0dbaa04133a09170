"""Rights by route: who is asked, who passes, what is refused with which status; what passwords cost."""

import asyncio
import base64
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import bcrypt
import httpx
import pytest
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from support import asked
from support.snapshots import small

from ragwatch.web import EVERYTHING, Access, RateLimit, RequestPolicy, Right
from ragwatch.web.access import INGEST_PATHS
from ragwatch.web.authentication import (
    CERTIFICATE,
    MAX_REMEMBERED,
    USER,
    Authentication,
    PasswordChecker,
    RequestRate,
    check_password,
    cost_of,
)

METRICS, PAGES, WRITE, INGEST = Right
PASSWORD = "correct horse"  # noqa: S105 - of a test
USERS = {name: bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)) for name in ("prometheus", "anna", "new")}
ACCESS = Access(
    users=USERS,
    tokens=asked.by_token(ci={WRITE}).tokens,
    grants={"prometheus": frozenset({METRICS}), "anna": frozenset({METRICS, PAGES, WRITE})},
    unlisted=frozenset({METRICS}),
    anonymous=frozenset(),
)
CERTIFICATES = Access(certificates=True, grants={"prom": frozenset({METRICS})}, anonymous=frozenset())


def basic(user: str, password: str = PASSWORD) -> dict[str, str]:
    """The header of a user."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


async def reload(_: Mapping[str, str]) -> str:
    """An action."""
    return "done"


def asking(access: Access, refused: list[str] | None = None) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """A client of the application."""
    policy = RequestPolicy(access=lambda: access, refused=[].append if refused is None else refused.append)
    return asked.asking(asked.application(small(), actions={"/-/reload": reload}, policy=policy))


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/metrics", {}, 401),
        ("GET", "/metrics", basic("prometheus"), 200),
        ("GET", "/metrics", basic("new"), 200),
        ("GET", "/metrics", basic("prometheus", "wrong"), 401),
        ("GET", "/metrics", basic("nobody"), 401),
        ("GET", "/metrics", asked.bearer("ci"), 403),
        ("GET", "/", {}, 401),
        ("GET", "/", basic("prometheus"), 403),
        ("GET", "/", basic("new"), 403),
        ("GET", "/", basic("anna"), 200),
        ("GET", "/api/v1/samples", basic("prometheus"), 403),
        ("GET", "/no/such/page", {}, 401),
        ("GET", "/no/such/page", basic("anna"), 404),
        ("HEAD", "/no/such/page", basic("prometheus"), 403),
        ("BREW", "/no/such/page", asked.bearer("ci"), 404),
        ("BREW", "/no/such/page", basic("prometheus"), 403),
        ("POST", "/-/reload", {}, 401),
        ("POST", "/-/reload", basic("prometheus"), 403),
        ("POST", "/-/reload", basic("anna"), 200),
        ("POST", "/-/reload", {"Authorization": f"bearer {'ci':0>32}"}, 200),
        ("POST", "/-/reload", asked.bearer("c1"), 401),
        ("POST", "/-/reload", {"Authorization": "bearer "}, 401),
        ("POST", "/-/reload", {"Authorization": "Basic !!"}, 401),
        ("POST", "/-/reload", {"Authorization": "Basic " + base64.b64encode(b"anna").decode()}, 401),
        ("POST", "/-/reload", {"Authorization": "Basic " + base64.b64encode(b"\xff:a").decode()}, 401),
        ("POST", "/-/reload", {"Authorization": "Digest anna"}, 401),
        ("POST", "/v1/samples", {}, 401),
        ("POST", "/v1/samples", basic("anna"), 403),
        ("POST", "/v1/labels/tasks", asked.bearer("ci"), 403),
        ("GET", "/-/healthy", basic("anna", "wrong"), 200),
        ("GET", "/-/ready", {}, 200),
        ("GET", "/static/ragwatch.css", {}, 200),
    ],
)
async def test_x19_x20_rights_by_route(method: str, path: str, headers: dict[str, str], status: int) -> None:
    """401 without valid credentials, 403 with them and without the right, and health for everybody."""
    async with asking(ACCESS) as client:
        response = await client.request(method, path, headers=headers)
    assert response.status_code == status, response.text
    challenges = response.headers.get_list("www-authenticate")
    expected = ['Basic realm="ragwatch", charset="UTF-8"', 'Bearer realm="ragwatch"']
    assert challenges == (expected if status == 401 else [])


async def test_every_route_needs_a_right() -> None:
    """Nothing but health and style sheets is answered without credentials, whatever the method."""
    policy = RequestPolicy(access=lambda: ACCESS)
    others = {"labels": asked.Words, "forget": reload, "rejudge": reload}
    app = asked.application(small(), actions={"/-/reload": reload}, policy=policy, **others)
    routes = [route.path for route in app.routes if isinstance(route, Route)]
    assert [route.path for route in app.routes if isinstance(route, Mount)] == ["/static"]
    assert len(routes) >= 20
    assert {"/v1/forget", "/v1/rejudge", "/samples.csv", "/api/v1/openapi.json"} <= set(routes)
    async with asked.asking(app) as client:
        answered = {
            path
            for path in [*routes, *INGEST_PATHS]
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
            if (await client.request(method, path)).status_code != 401
        }
    assert answered == {"/-/healthy", "/-/ready"}


OPEN_METRICS = frozenset({METRICS})


@pytest.mark.parametrize(
    ("access", "path", "headers", "status", "words"),
    [
        (Access(), "/", {}, 200, ""),
        (Access(anonymous=OPEN_METRICS), "/metrics", {}, 200, ""),
        (Access(anonymous=OPEN_METRICS), "/", {}, 403, "Nobody has the right: pages"),
        (CERTIFICATES, "/metrics", {}, 403, "needs a client certificate with the right: metrics"),
        (Access(USERS, anonymous=OPEN_METRICS), "/metrics", {}, 200, ""),
        (Access(USERS, anonymous=EVERYTHING), "/", basic("anna", "wrong"), 401, ""),
        (Access(USERS, anonymous=EVERYTHING), "/", basic("anna"), 200, ""),
    ],
)
async def test_what_is_open_needs_no_credentials(
    access: Access, path: str, headers: dict[str, str], status: int, words: str
) -> None:
    """Without anybody who could be asked, 403 says what to configure; a challenge would be of no use.

    Who sends a wrong password learns that it is wrong.
    """
    async with asking(access) as client:
        response = await client.get(path, headers=headers)
    assert (response.status_code, "www-authenticate" in response.headers) == (status, status == 401)
    assert words in response.text


async def status_of(access: Access, scope: Mapping[str, Any]) -> tuple[int, str | None]:
    """Status of a request, and the name that the application sees."""
    seen: list[Any] = []

    async def app(inner: Scope, _: Receive, send: Send) -> None:
        seen.append(inner.get(USER))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            seen.append(message["status"])

    middleware: ASGIApp = Authentication(app, RequestPolicy(access=lambda: access))
    whole = {"type": "http", "method": "GET", "path": "/metrics", "headers": [], **scope}
    await middleware(whole, None, send)  # type: ignore[arg-type]  # nothing is received: 401 comes before the body
    return seen[-1], seen[0] if len(seen) > 1 else None


@pytest.mark.parametrize(
    ("certificate", "path", "expected"),
    [
        ({"subjectAltName": (("DNS", "prom"),)}, "/metrics", (200, "prom")),
        ({"subject": ((("commonName", "prom"),),)}, "/metrics", (200, "prom")),
        ({"subjectAltName": (("DNS", "prom"),)}, "/", (403, None)),
        ({"subjectAltName": (("DNS", "other"),)}, "/", (200, "other")),
        ({"subject": ()}, "/metrics", (403, None)),
        (None, "/metrics", (403, None)),
    ],
)
async def test_client_certificates_say_who_asks(
    certificate: Mapping[str, Any] | None, path: str, expected: tuple[int, str | None]
) -> None:
    """Names of a verified certificate have the rights of `web.users`; an unlisted name those of the default.

    Where there are users, a certificate alone does not say which of them asks.
    """
    assert await status_of(CERTIFICATES, {CERTIFICATE: certificate, "path": path}) == expected
    access = Access(USERS, certificates=True, anonymous=frozenset())
    assert await status_of(access, {CERTIFICATE: certificate, "path": path}) == (401, None)


async def test_x19_refusals_come_before_the_body_and_are_counted() -> None:
    """The application sees no refused request, and each refusal is reported once with its reason."""
    refused: list[str] = []
    async with asking(ACCESS, refused) as client:
        await client.get("/metrics")
        await client.get("/metrics", headers=basic("eve"))
        await client.get("/", headers=basic("new"))
        await client.get("/metrics", headers=basic("new"))
    assert refused == ["credentials", "credentials", "right"]
    assert await status_of(ACCESS, {"method": "POST", "path": "/v1/samples"}) == (401, None)


async def test_the_rate_limit_answers_429() -> None:
    """A burst is answered, one request more is not."""
    refused: list[str] = []
    async with asking(Access(rate=RateLimit(3600.0, 2)), refused) as client:
        assert [(await client.get("/-/healthy")).status_code for _ in range(3)] == [200, 200, 429]
    assert refused == ["rate"]


def test_the_rate_recovers() -> None:
    """One request per interval, never more than the burst at once; a changed limit begins with a full bucket."""
    now = [0.0]
    rate = RequestRate(lambda: now[0])
    limit = RateLimit(10.0, 2)
    assert [rate.allows(limit) for _ in range(3)] == [True, True, False]
    now[0] = 10.0
    assert [rate.allows(limit) for _ in range(2)] == [True, False]
    now[0] = 1000.0
    assert [rate.allows(limit) for _ in range(3)] == [True, True, False]
    assert rate.allows(RateLimit(10.0, 3))
    assert rate.allows(None)


async def test_a_flood_of_passwords_is_answered_503() -> None:
    """Beyond those that wait, a password is not checked; health and known users are answered meanwhile."""
    async with asking(ACCESS) as client:
        assert (await client.get("/metrics", headers=basic("prometheus"))).status_code == 200
        flood = [asyncio.create_task(client.get("/metrics", headers=basic("eve", str(number)))) for number in range(40)]
        await asyncio.sleep(0)
        assert (await client.get("/metrics", headers=basic("prometheus"))).status_code == 200
        responses = await asyncio.gather(*flood)
    refused = [response for response in responses if response.status_code == 503]
    assert (len(refused), {response.status_code for response in responses}) == (8, {401, 503})
    assert all(response.headers["retry-after"] == "5" for response in refused)


HASHES = {"anna": bcrypt.hashpw(b"right", bcrypt.gensalt(4)), "ben": bcrypt.hashpw(b"other", bcrypt.gensalt(6))}


class Work:
    """Counts the work of bcrypt, which doubles with the cost."""

    def __init__(self) -> None:
        self.done = 0
        self._check = bcrypt.checkpw

    def checkpw(self, password: bytes, hashed: bytes) -> bool:
        """Check, and count."""
        self.done += 2 ** cost_of(hashed)
        return self._check(password, hashed)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """The work of all checks of a test."""
    counted = Work()
    monkeypatch.setattr(bcrypt, "checkpw", counted.checkpw)
    return counted


@pytest.mark.parametrize(("user", "password"), [("anna", b"right"), ("anna", b"no"), ("ben", b"no"), ("eve", b"no")])
def test_x20_every_name_costs_the_same(work: Work, user: str, password: bytes) -> None:
    """A wrong name, a right one with a cheap hash and one with a dear hash are the same amount of bcrypt."""
    assert check_password(HASHES, user, password) is (user == "anna" and password == b"right")
    assert work.done == 2**6


@pytest.mark.slow
def test_x20_every_name_takes_the_same_time() -> None:
    """The median times of a wrong name and of a wrong password lie within 5 % of each other."""
    users = {"anna": bcrypt.hashpw(b"right", bcrypt.gensalt(8)), "ben": bcrypt.hashpw(b"right", bcrypt.gensalt(10))}
    times: dict[str, list[float]] = {"anna": [], "ben": [], "eve": []}
    for _ in range(15):
        for user, taken in times.items():
            start = time.thread_time()
            assert not check_password(users, user, b"wrong")
            taken.append(time.thread_time() - start)
    medians = [sorted(taken)[len(taken) // 2] for taken in times.values()]
    assert max(medians) < 1.05 * min(medians), medians


def test_hashes_are_those_of_other_tools() -> None:
    """Every version is read, as that of htpasswd ($2y$); 72 bytes count, as in Prometheus, and more are no error."""
    for version in (b"$2$", b"$2a$", b"$2b$", b"$2x$", b"$2y$"):
        assert check_password({"anna": version + HASHES["anna"][4:]}, "anna", b"right"), version
    users = {"anna": bcrypt.hashpw(b"a" * 72, bcrypt.gensalt(4))}
    assert check_password(users, "anna", b"a" * 90)
    assert not check_password(users, "anna", b"a" * 71)


async def test_right_passwords_are_remembered_and_wrong_ones_are_not(work: Work) -> None:
    """A scraper costs bcrypt once; a wrong password costs it each time; a changed hash is asked again."""
    checker = PasswordChecker()
    for _ in range(3):
        assert await checker.check(HASHES, "anna", b"right")
    assert work.done == 2**6
    for _ in range(2):
        assert not await checker.check(HASHES, "anna", b"wrong")
    assert work.done == 3 * 2**6
    assert not await checker.check({**HASHES, "anna": HASHES["ben"]}, "anna", b"right")
    assert not await checker.check({"ben": HASHES["ben"]}, "anna", b"right")


async def test_the_memory_is_bounded(work: Work) -> None:
    """Beyond the limit the password that was used longest ago is forgotten."""
    checker = PasswordChecker()
    users = {str(number): HASHES["anna"] for number in range(MAX_REMEMBERED + 1)}
    for user in users:
        assert await checker.check(users, user, b"right")
    done = work.done
    assert await checker.check(users, str(MAX_REMEMBERED), b"right")
    assert work.done == done
    assert await checker.check(users, "0", b"right")
    assert work.done > done
