"""What browsers and proxies could be made to do: read through a rebound name, change by a link, smuggle a request."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from support.patience import DEADLINE
from support.snapshots import small

from ragwatch.board import Board
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import Access, RequestPolicy, Server, allowed_hosts, build_app
from ragwatch.web.guard import HEADERS


class Labels:
    """A label service that records what is stored and drawn."""

    def __init__(self) -> None:
        self.changed: list[str] = []

    def tasks(self, annotator: str, _: int) -> list[dict[str, Any]]:
        """Draw samples."""
        self.changed.append(annotator)
        return []

    def queue(self, _: str) -> dict[str, Any]:
        """Nothing was given to anybody."""
        return {"given": [], "open": [], "done": 0, "twice": 0, "last": None}

    def put(self, _: Any) -> dict[str, int]:
        """Store labels."""
        self.changed.append("put")
        return {}

    def labels(self, _: Any = None) -> list[dict[str, Any]]:
        """No labels."""
        return []

    def pruned_until(self) -> float | None:
        """Nothing was deleted."""
        return None


def application(
    acted: list[str], labels: Labels, policy: RequestPolicy | None = None, store: SqliteStore | None = None
) -> Starlette:
    """The whole application; actions are recorded."""

    async def act(_: Mapping[str, str]) -> str:
        acted.append("acted")
        return "done"

    board = Board()
    board.publish(small())
    paths = ("/-/reload", "/-/canaries/run", "/-/drift/acknowledge", "/-/events")
    return build_app(
        board=board,
        render=lambda *_: (b"x 1\n", "text/plain"),
        store=store,
        actions=dict.fromkeys(paths, act),
        labels=lambda: labels,
        policy=policy or RequestPolicy(),
    )


def dump(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything that a state holds, by table; an index of words is held by tables of its own."""
    (path,) = folder.glob("*.db")
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in tables.fetchall()}  # noqa: S608 - of the schema


async def test_x21_no_get_changes_anything(tmp_path: Path) -> None:
    """GET, HEAD and OPTIONS on every route, with every parameter of the actions: no action, no label, no write."""
    acted: list[str] = []
    labels = Labels()
    store = SqliteStore(tmp_path)
    before = dump(tmp_path)
    assert "samples" in before
    app = application(acted, labels, store=store)
    paths = [route.path.replace("{key}", "0" * 32) for route in app.routes if isinstance(route, Route)]
    assert "/-/drift/acknowledge" in paths
    query = "?renew=true&suite=docs&kind=release&annotator=a&count=3"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        for path in paths:
            for method in ("GET", "HEAD", "OPTIONS"):
                for address in (path, path + query):
                    assert (await client.request(method, address)).status_code < 500
        assert dump(tmp_path) == before
        assert (acted, labels.changed) == ([], [])
        assert (await client.post("/-/reload")).status_code == 200
    assert acted == ["acted"]
    store.close()


@pytest.mark.parametrize("listen", ["127.0.0.1", "0.0.0.0", "::", "10.1.2.3", "rag.internal"])  # noqa: S104 - not bound
@pytest.mark.parametrize("external", [None, "https://rag.example.org/watch/"])
async def test_x21_a_rebound_name_reads_nothing(listen: str, external: str | None) -> None:
    """At every listen address, with and without an external URL, a foreign name is refused on every path."""
    policy = RequestPolicy(lambda: allowed_hosts(listen, external, ["rag.monitoring.svc"]))
    app = application([], Labels(), policy)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:

        async def status(path: str, host: str) -> int:
            return (await client.get(path, headers={"Host": host})).status_code

        for path in ("/", "/metrics", "/api/v1/samples", "/-/healthy"):
            for host in ("evil.example", "evil.example:10477", "localhost.evil.example", "10.1.2.3.evil.example"):
                assert await status(path, host) == 403
            for host in ("localhost:10477", "10.1.2.3:10477", "[::1]:10477", "rag.monitoring.svc:10477"):
                assert await status(path, host) == 200
        assert await status("/", "rag.example.org") == (403 if external is None else 200)


async def test_x13_pages_have_no_scripts_and_are_not_stored() -> None:
    """Every response has the strict policy; what may hold texts is not cached; nobody may frame or embed it."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application([], Labels())), base_url="http://localhost"
    ) as client:
        for path in ("/", "/metrics", "/drift", "/api/v1/snapshot", "/nowhere", "/static/ragwatch.css"):
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
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application([], Labels(), policy)), base_url="http://localhost"
    ) as client:
        headers = (await client.get("/")).headers
    assert headers.get_list("x-frame-options") == ["sameorigin"]
    assert (headers["strict-transport-security"], headers["x-content-type-options"]) == ("max-age=1", "nosniff")


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[int]:
    """The real server; its port."""
    server = Server(app, "127.0.0.1", 0)
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(server.serve(started=port.set_result))
    try:
        yield await asyncio.wait_for(port, DEADLINE)
    finally:
        server.stop()
        await task


@pytest.mark.parametrize(
    "headers",
    [
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
    ],
)
async def test_requests_with_two_lengths_are_refused(headers: bytes) -> None:
    """A request whose end a proxy could see elsewhere is answered with an error, and the connection ends."""
    acted: list[str] = []
    async with serving(application(acted, Labels())) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b"0\r\n\r\nPOST /-/reload HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(b"POST /-/reload HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + body)
        answer = await asyncio.wait_for(reader.read(), DEADLINE)
        writer.close()
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert answer.count(b"HTTP/1.1") == 1
    assert acted == []


@pytest.mark.parametrize(
    "path",
    [
        "/samples/..%2f..%2fetc%2fpasswd",
        "/api/v1/samples/../../../../etc/passwd",
        "/api/v1/samples/%2e%2e%2fsnapshot",
        "/static/..%2fapp.py",
        "/static/../templates/layout.html",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
    ],
)
async def test_x17_paths_lead_nowhere(path: str) -> None:
    """Encoded and plain ways up are no samples and no files."""
    async with serving(application([], Labels())) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), DEADLINE)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 404")
