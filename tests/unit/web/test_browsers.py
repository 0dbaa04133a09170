"""What browsers and proxies could be made to do: read a rebound name, change by a link or a form, smuggle a request."""

import asyncio
import re
import socket
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from support import asked
from support.patience import DEADLINE
from support.snapshots import small

from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import Access, RequestPolicy, Right, allowed_hosts
from ragwatch.web.server.guard import HEADERS, MAX_FORM_BYTES, RequestGuard


def application(acted: list[str], **parts: Any) -> Starlette:
    """The whole application; actions are recorded."""

    async def act(_: Mapping[str, str]) -> str:
        acted.append("acted")
        return "done"

    paths = ("/-/reload", "/-/canaries/run", "/-/drift/acknowledge", "/-/events")
    return asked.application(small(), **{"actions": dict.fromkeys(paths, act), "labels": asked.Words, **parts})


def dump(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything that a state holds, by table; an index of words is held by tables of its own."""
    (path,) = folder.glob("*.db")
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in tables.fetchall()}  # noqa: S608 - of the schema


async def test_x21_no_get_changes_anything(tmp_path: Path) -> None:
    """GET, HEAD and OPTIONS on every route, with every parameter of the actions: no action, no label, no write."""
    acted: list[str] = []
    words = asked.Words()
    store = SqliteStore(tmp_path)
    before = dump(tmp_path)
    assert "samples" in before
    app = application(acted, labels=lambda: words, store=store)
    paths = [route.path.replace("{key}", "0" * 32) for route in app.routes if isinstance(route, Route)]
    assert "/-/drift/acknowledge" in paths
    query = "?renew=true&suite=docs&kind=release&annotator=a&count=3"
    async with asked.asking(app) as client:
        for path in paths:
            for method in ("GET", "HEAD", "OPTIONS"):
                for address in (path, path + query):
                    assert (await client.request(method, address)).status_code < 500
        assert dump(tmp_path) == before
        assert (acted, words.asked, words.kept, words.revoked) == ([], [], [], [])
        assert (await client.post("/-/reload")).status_code == 200
    assert acted == ["acted"]
    store.close()


@pytest.mark.parametrize("listen", ["127.0.0.1", "0.0.0.0", "::", "10.1.2.3", "rag.internal"])  # noqa: S104 - not bound
@pytest.mark.parametrize("external", [None, "https://rag.example.org/watch/"])
async def test_x21_a_rebound_name_reads_nothing(listen: str, external: str | None) -> None:
    """At every listen address, with and without an external URL, a foreign name is refused on every path.

    Rebinding needs a name: addresses are not refused.
    """
    foreign = ("evil.example", "evil.example:10477", "localhost.evil.example", "10.1.2.3.evil.example", "[::1")
    ours = ("localhost:10477", "LOCALHOST", "10.1.2.3:10477", "[::1]:10477", "rag.monitoring.svc:10477", "")
    policy = RequestPolicy(lambda: allowed_hosts(listen, external, ["rag.monitoring.svc"]))
    async with asked.asking(application([], policy=policy)) as client:

        async def status(path: str, host: str) -> int:
            return (await client.get(path, headers={"Host": host})).status_code

        for path in ("/", "/metrics", "/api/v1/samples", "/-/healthy"):
            for host in foreign:
                assert await status(path, host) == 403
            for host in ours:
                assert await status(path, host) == 200
        assert await status("/", "rag.example.org") == (403 if external is None else 200)


async def test_x13_pages_have_no_scripts_and_are_not_stored() -> None:
    """Every response has the strict policy; what may hold texts is not cached; nobody may frame or embed it."""
    broken = application([])
    broken.add_route("/broken", lambda _: 1 / 0)  # type: ignore[arg-type, return-value]  # broken on purpose
    async with asked.asking(broken) as client:
        for path in (
            *("/", "/metrics", "/drift", "/samples", "/api/v1/snapshot", "/api/v1/samples?limit=x", "/-/reload"),
            *("/nowhere", "/broken", "/static/ragwatch.css"),
        ):
            headers = (await client.get(path)).headers
            assert {name: headers[name] for name in HEADERS} == HEADERS, path
            assert "script" not in headers["content-security-policy"]
            assert headers["content-security-policy"].startswith("default-src 'none';")
            assert headers.get("cache-control") == (None if path.startswith("/static/") else "no-store")


async def test_headers_can_be_configured() -> None:
    """`http_server_config.headers` replaces ours and adds others; an empty one leaves ours."""
    configured = {
        "X-Frame-Options": "sameorigin",
        "Strict-Transport-Security": "max-age=1",
        "X-Content-Type-Options": "",
    }
    policy = RequestPolicy(access=lambda: Access(headers=configured))
    async with asked.asking(application([], policy=policy)) as client:
        headers = (await client.get("/")).headers
    assert headers.get_list("x-frame-options") == ["sameorigin"]
    assert (headers["strict-transport-security"], headers["x-content-type-options"]) == ("max-age=1", "nosniff")


async def raw(port: int, request: bytes) -> bytes:
    """What the real server answers to these bytes, until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), DEADLINE)
    writer.close()
    return answer


async def test_requests_with_two_lengths_are_refused() -> None:
    """A request whose end a proxy could see elsewhere is answered with an error, and the connection ends."""
    acted: list[str] = []
    async with asked.serving(application(acted)) as port:
        for headers in (
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            b"Content-Length: 5\r\nContent-Length: 6\r\n",
            b"Transfer-Encoding: chunked, identity\r\n",
        ):
            body = b"0\r\n\r\nPOST /-/reload HTTP/1.1\r\nHost: localhost\r\n\r\n"
            sent = b"POST /-/reload HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + body
            answer = await raw(port, sent)
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), headers
            assert answer.count(b"HTTP/1.1") == 1, headers
    assert acted == []


async def test_x17_paths_lead_nowhere() -> None:
    """Encoded and plain ways up are no samples and no files."""
    async with asked.serving(application([])) as port:
        for path in (
            *("/samples/..%2f..%2fetc%2fpasswd", "/api/v1/samples/../../../../etc/passwd", "/static/..%2fapp.py"),
            *("/api/v1/samples/%2e%2e%2fsnapshot", "/static/../templates/layout.html", "/static/%2e%2e/app.py"),
            *("/static//etc/passwd", "/static/"),
        ):
            request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert (await raw(port, request.encode())).startswith(b"HTTP/1.1 404"), path


HOSTNAME = socket.gethostname().lower()


@pytest.mark.parametrize(
    ("listen", "external", "expected"),
    [
        ("0.0.0.0", None, {"localhost", "127.0.0.1", "::1", HOSTNAME}),  # noqa: S104 - the case of the table
        ("::", None, {"localhost", "127.0.0.1", "::1", HOSTNAME}),
        ("127.0.0.1", None, {"localhost", "127.0.0.1", "::1"}),
        ("Rag.Internal", None, {"localhost", "127.0.0.1", "::1", "rag.internal"}),
        ("0.0.0.0", "http://rag:80", {"localhost", "127.0.0.1", "::1", "rag", HOSTNAME}),  # noqa: S104 - the same
        ("127.0.0.1", "no address", {"localhost", "127.0.0.1", "::1"}),
        ("127.0.0.1", "https://[", {"localhost", "127.0.0.1", "::1"}),
    ],
)
def test_allowed_names_follow_the_configuration(listen: str, external: str | None, expected: set[str]) -> None:
    """Loopback names, the name we listen on and the name people use; at every address also that of the machine."""
    assert allowed_hosts(listen, external) == expected


@pytest.mark.parametrize(
    ("origin", "scheme", "external", "wanted"),
    [
        ("http://localhost:10477", "http", None, False),
        ("https://localhost:10477", "https", None, False),
        ("https://localhost:10477", "http", None, True),
        ("ftp://localhost:10477", "http", None, True),
        ("http://localhost:10477", "https", None, True),
        ("http://localhost", "http", None, True),
        ("https://rag.example.org", "http", "https://rag.example.org/watch/", False),
        ("http://rag.example.org", "http", "https://rag.example.org/watch/", True),
        ("null", "http", None, True),
        ("http://[", "http", "http://[", True),
        ("//localhost:10477", "http", "", True),
    ],
)
async def test_an_origin_is_scheme_and_host(
    origin: str,
    scheme: str,
    external: str | None,
    wanted: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """A page of the same host over another scheme is another site, unless people use that address."""
    guard = RequestGuard(PlainTextResponse("done"), RequestPolicy(external=lambda: external))
    async with asked.asking(guard, f"{scheme}://localhost:10477") as client:
        reply = await client.post("/-/reload", headers={"Origin": origin})
    assert reply.status_code == (403 if wanted else 200)


ORIGIN = {"Origin": "http://localhost"}
ALARM = {
    (Gauge.DRIFT_ALARM, ("faithfulness", "a&b")): 1.0,
    (Gauge.TRAFFIC_DRIFT_EVIDENCE, ("empty_retrieval", "search")): 9.0,
    (Gauge.TRAFFIC_DRIFT_ALARM, ("empty_retrieval", "search")): 1.0,
    (Gauge.JUDGE_DRIFT_ALARM, ("embedded",)): 1.0,
}


@asynccontextmanager
async def browser(
    done: list[Mapping[str, str]], access: Access | None = None, base: str = "http://localhost"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies; acknowledged alarms are put into `done`."""

    async def acknowledge(parameters: Mapping[str, str]) -> str:
        done.append(parameters)
        return "acknowledged"

    policy = RequestPolicy(access=lambda: access or Access())
    actions = {"/-/drift/acknowledge": acknowledge}
    app = asked.application(replace(small(), gauges=ALARM), actions=actions, policy=policy)
    async with asked.asking(app, base) as client:
        yield client


def forms(page: str) -> list[tuple[str, str]]:
    """Address and token of each form of a page."""
    return re.findall(r'method="post" action="([^"]+)"><input type="hidden" name="form_token" value="(\w+)">', page)


def links(page: str) -> list[str]:
    """Addresses of the pages that ask whether to acknowledge an alarm."""
    return [f"/{address.replace('&amp;', '&')}" for address in re.findall(r'href="(acknowledge[?][^"]+)"', page)]


@pytest.mark.parametrize("path", ["/", "/drift"])
async def test_x21_a_button_of_our_page_works(path: str) -> None:
    """Each alarm has a page that asks; its form, with token and SameSite cookie, is accepted and names the alarm."""
    done: list[Mapping[str, str]] = []
    async with browser(done) as client:
        page = await client.get(path)
        cookie = page.headers["set-cookie"]
        assert re.fullmatch(r"ragwatch_form=[\w-]{32}; Path=/; HttpOnly; SameSite=Strict", cookie)
        for link in links(page.text):
            question = (await client.get(link)).text
            assert "Acknowledge the drift alarm?" in question
            ((address, token),) = forms(question)
            url = "/" + address.replace("&amp;", "&")
            headers = ORIGIN | {"Accept": "text/html,*/*"}
            reply = await client.post(url, data={"form_token": token}, headers=headers)
            assert (reply.status_code, "<p>acknowledged</p>" in reply.text) == (200, True)
            assert 'href="../../drift"' in reply.text
        again = await client.get(path)
        assert "set-cookie" not in again.headers
    done.sort(key=str)
    assert done == [
        {"judge": "embedded"},
        {"quantity": "empty_retrieval", "route": "search"},
        {"quantity": "faithfulness", "route": "a&b"},
    ]


async def test_the_page_that_asks_names_the_alarm_and_what_happens() -> None:
    """It says what ends and what starts again, offers a new baseline where there is one, and refuses other alarms."""
    done: list[Mapping[str, str]] = []
    async with browser(done) as client:
        page = (await client.get("/acknowledge?quantity=faithfulness&route=a%26b")).text
        assert "<b>faithfulness</b> on <b>a&amp;b</b> has drifted" in page
        assert "raised again" in page
        (renew,) = re.findall(r'formaction="([^"]+)"', page)
        ((_, token),) = forms(page)
        url = "/" + renew.replace("&amp;", "&")
        assert (await client.post(url, data={"form_token": token}, headers=ORIGIN)).text == "acknowledged\n"
        assert "formaction" not in (await client.get("/acknowledge?judge=embedded")).text
        for query in (
            "",
            "?quantity=faithfulness",
            "?judge=nobody",
            "?quantity=faithfulness&route=a%26b&judge=embedded",
        ):
            other = await client.get(f"/acknowledge{query}")
            assert ("No such alarm is active" in other.text, forms(other.text)) == (True, [])
    assert done == [{"quantity": "faithfulness", "route": "a&b", "renew": "true"}]


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"])
@pytest.mark.parametrize("header", ["origin", "cookie", "referer"])
async def test_x21_forms_without_our_token_change_nothing(content_type: str, header: str) -> None:
    """A form of another page, a token of another browser, and a cookie of the attacker's choice are refused."""
    done: list[Mapping[str, str]] = []
    values = {"origin": "http://localhost", "cookie": f"ragwatch_form={'a' * 32}", "referer": "http://evil.example/"}
    async with browser(done) as client:
        ((_, token),) = forms((await client.get("/acknowledge?judge=embedded")).text)
        client.cookies.clear()
        for body in (b"", b"form_token=", f"form_token={token}".encode(), b"form_token=%ff", b"a" * 20_000):
            headers = {"Content-Type": content_type, header: values[header]}
            for path in ("/-/drift/acknowledge", "/label"):
                status = 413 if len(body) > MAX_FORM_BYTES else 403
                assert (await client.post(path, content=body, headers=headers)).status_code == status
    assert done == []


async def test_x21_other_sites_are_refused_whatever_they_send() -> None:
    """A foreign origin, another scheme, another port, `null`, and a browser that says cross-site without an origin."""
    done: list[Mapping[str, str]] = []
    foreign = ["http://evil.example", "https://localhost", "http://localhost:8000", "null"]
    async with browser(done) as client:
        for headers in (*({"Origin": origin} for origin in foreign), {"Sec-Fetch-Site": "cross-site"}):
            assert (await client.post("/-/drift/acknowledge", headers=headers)).status_code == 403
        assert done == []
        assert (await client.post("/-/drift/acknowledge", headers={"Sec-Fetch-Site": "same-origin"})).is_success


async def test_programs_send_no_tokens() -> None:
    """Curl and `ragwatch acknowledge` send a form's content type without being a browser."""
    done: list[Mapping[str, str]] = []
    async with browser(done) as client:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await client.post("/-/drift/acknowledge?judge=a", headers=headers)).status_code == 200
    assert done == [{"judge": "a"}]


async def test_readers_get_no_buttons() -> None:
    """Without the right `write` there is no form, and no cookie."""
    async with browser([], Access(anonymous=frozenset({Right.PAGES}))) as client:
        for path in ("/", "/drift", "/acknowledge?judge=embedded"):
            page = await client.get(path)
            assert "set-cookie" not in page.headers
            assert (forms(page.text), links(page.text)) == ([], [])
        assert "needs the right <code>write</code>" in page.text


async def test_cookies_are_secure_over_tls() -> None:
    """Over TLS the cookie is never sent in the clear."""
    async with browser([], base="https://localhost") as client:
        assert (await client.get("/drift")).headers["set-cookie"].endswith("; Secure")
        assert "set-cookie" not in (await client.get("/api/v1/drift")).headers
