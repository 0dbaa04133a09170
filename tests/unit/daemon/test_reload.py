"""Reloads at bad moments: while the daemon starts or stops, several at once, and without a store that answers."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.callers import canned
from support.daemons import a_daemon, judged, log, running, until
from support.patience import DEADLINE
from support.postgres import Postgres, new_server
from support.stores import emptied

import ragwatch.daemon
from ragwatch.config import load
from ragwatch.daemon import Daemon, runtime
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Erasure


async def test_a_reload_puts_what_is_new_into_force(tmp_path: Path) -> None:
    """New judges have not failed yet: a gauge left from the old ones would page until a restart.

    The error for a rejected Host header says to set `web.external_url`; a reload is enough to apply it.
    """
    daemon = a_daemon(tmp_path)
    path, host = tmp_path / "ragwatch.yaml", {"Host": "rag.example.org"}
    async with running(daemon) as address, httpx.AsyncClient(base_url=address, headers=host) as client:
        assert (await client.get("/-/healthy")).status_code == 403
        daemon.telemetry.breaker("embedded", is_open=True, why="the key is wrong", seconds=60.0)
        daemon.telemetry.rate_limit("embedded", "requests", 0.0)
        path.write_text(path.read_text().replace("web: {", "web: {external_url: 'https://rag.example.org/watch', "))
        await asyncio.wait_for(daemon.reload(), DEADLINE)
        assert (await client.get("/-/healthy")).status_code == 200
        shown = daemon.runtime.exporter.text()
    assert "ragwatch_judge_breaker_open{" not in shown
    assert "ragwatch_judge_rate_limit_remaining_ratio{" not in shown


async def test_any_exception_of_a_reload_is_shown(tmp_path: Path) -> None:
    """After an unexpected exception too, the old configuration stays active, and the gauge shows the failure."""
    daemon = a_daemon(tmp_path)
    endless = "[" * 5000
    probe = f"{{kind: http, url: 'http://a/', body: {{q: '{{{{ query }}}}'}}, contexts: '{endless}'}}"
    path = tmp_path / "ragwatch.yaml"
    items = "[{query: q, expected: [a]}]"
    path.write_text(f"{path.read_text()}canaries: [{{suite: docs, items: {items}, probe: {probe}}}]\n")
    before = daemon.runtime
    with pytest.raises((ConfigError, RecursionError)):
        await daemon.reload()
    assert daemon.telemetry.last_reload_ok is False
    assert daemon.runtime is before
    await before.close()
    daemon.store.close()


def slow_builds(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let runtimes be built slowly. Returns what is set while one is, and what it waits for at its end."""
    building, loaded = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Runtime:
        built = build(*arguments)
        building.set()
        assert loaded.wait(DEADLINE)
        return built

    monkeypatch.setattr(ragwatch.daemon, "build", slow)
    return building, loaded


async def test_scrapes_go_on_while_a_runtime_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a model takes seconds: until then the old configuration is active, and requests are answered."""
    daemon = a_daemon(tmp_path)
    building, loaded = slow_builds(monkeypatch)
    async with running(daemon) as address, httpx.AsyncClient(base_url=address) as client:
        before = daemon.runtime
        reload = asyncio.create_task(client.post("/-/reload", timeout=DEADLINE))
        assert await asyncio.to_thread(building.wait, 10.0)
        assert (await client.get("/-/healthy")).status_code == 200
        assert "ragwatch_build_info" in (await client.get("/metrics")).text
        assert not reload.done()
        assert daemon.runtime is before
        loaded.set()
        assert (await reload).status_code == 200
        assert daemon.runtime is not before


async def test_reloads_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Concurrent reloads run one after the other, and the last runtime stays."""
    daemon = a_daemon(tmp_path)
    at_work, built = threading.Lock(), []

    def alone(*arguments: Any) -> Runtime:
        assert at_work.acquire(blocking=False)
        built.append(build(*arguments))
        at_work.release()
        return built[-1]

    monkeypatch.setattr(ragwatch.daemon, "build", alone)
    async with running(daemon):
        await asyncio.wait_for(asyncio.gather(*(daemon.reload() for _ in range(3))), DEADLINE)
        assert len(built) == 3
        assert daemon.runtime is built[-1]


async def test_the_daemon_stops_while_a_runtime_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that is built too late is closed, and the reload fails."""
    daemon = a_daemon(tmp_path)
    building, loaded = slow_builds(monkeypatch)
    async with running(daemon):
        before = daemon.runtime
        reload = asyncio.create_task(daemon.reload())
        assert await asyncio.to_thread(building.wait, 10.0)
    loaded.set()
    with pytest.raises(ConfigError, match="stopping"):
        await asyncio.wait_for(reload, DEADLINE)
    assert daemon.runtime is before


def judged_by(folder: Path, judge: str) -> None:
    """Write another judge into the configuration."""
    path = folder / "ragwatch.yaml"
    path.write_text(re.sub(r"judges: .*\n|\Z", f"judges: [{judge}]\n", path.read_text(), count=1))


FELL_BACK = 'ragwatch_judge_fallback{judge="embedded"} 1'


async def test_the_fallback_shown_is_of_the_judge_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge without its model is shown from its start until another reads, and one that was refused never."""
    without_model = f"{{name: embedded, kind: local, weights: '{tmp_path}/nowhere'}}"
    a_daemon(tmp_path).store.close()
    judged_by(tmp_path, without_model)
    daemon = Daemon(load(tmp_path / "ragwatch.yaml"), path=tmp_path / "ragwatch.yaml")

    def refuse(*_: object) -> None:
        raise ConfigError("drift: refused")

    async with running(daemon):
        assert FELL_BACK in daemon.runtime.exporter.text()
        judged_by(tmp_path, "{name: embedded, kind: lexical}")
        await daemon.reload()
        assert "ragwatch_judge_fallback{" not in daemon.runtime.exporter.text()
        judged_by(tmp_path, without_model)
        with monkeypatch.context() as broken:
            broken.setattr(runtime, "build_watchers", refuse)
            with pytest.raises(ConfigError, match="drift: refused"):
                await daemon.reload()
        assert "ragwatch_judge_fallback{" not in daemon.runtime.exporter.text()
        await daemon.reload()
        assert FELL_BACK in daemon.runtime.exporter.text()


@pytest.fixture(scope="module")
def one_server() -> Iterator[Postgres]:
    """A server of the tests of this module."""
    found = new_server()
    yield found
    found.delete()


@pytest.fixture
def server(one_server: Postgres) -> Postgres:
    """The server, empty; each test stops and starts it."""
    one_server.stop("fast")
    one_server.start()
    emptied(one_server.url, "ragwatch")
    return one_server


ANNA = Erasure(frozenset({"request-anna"}))


class Reading:
    """A call of a judge that takes as long as the test wants."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.sent: list[Any] = []

    def reply(self, _: object) -> object:
        """Wait for the end."""
        assert self.end.wait(DEADLINE)
        return {}


@asynccontextmanager
async def reading_daemon(folder: Path, server: Postgres) -> AsyncIterator[tuple[Daemon, Reading]]:
    """A daemon whose judge is reading two answers."""
    reading = Reading()
    with canned((400, {}, reading.reply)) as (address, reading.sent):
        judge = (
            f"{{name: big, kind: openai, model: m, base_url: '{address}/v1', api_key: k, allow_unknown_price: true}}"
        )
        daemon = a_daemon(folder, f"judges: [{judge}]\nstore: {{kind: postgres, url: '{server.url}'}}\n")
        async with running(daemon):
            await until(lambda: len(reading.sent) == 2)
            yield daemon, reading
            reading.end.set()


async def lose_store(daemon: Daemon, reading: Reading, server: Postgres) -> None:
    """Stop the server once the loops have been told to stop, and wait until the next runtime cannot be loaded."""
    await until(lambda: daemon._next is not None)
    await asyncio.to_thread(server.stop, "fast")
    reading.end.set()
    await until(lambda: any(problem.startswith("reload: store: ") for problem in daemon.ready()))


@pytest.mark.servers
@pytest.mark.costly
async def test_a_reload_without_a_store_is_refused(tmp_path: Path, server: Postgres) -> None:
    """It is answered at once, and the loops of the running configuration go on."""
    async with reading_daemon(tmp_path, server) as (daemon, reading):
        before = daemon.runtime
        await asyncio.to_thread(server.stop, "fast")
        with pytest.raises(StoreError, match="start PostgreSQL"):
            await daemon.reload()
        with pytest.raises(StoreError, match="start PostgreSQL"):
            await daemon.forget(ANNA, dry_run=False)
        assert (daemon.runtime is before, daemon.telemetry.last_reload_ok) == (True, False)
        await asyncio.to_thread(server.start)
        reading.end.set()
        await until(lambda: len(judged(daemon)) == 2)
        await daemon.reload()
        assert daemon.telemetry.last_reload_ok is True


@pytest.mark.servers
@pytest.mark.costly
async def test_a_store_that_is_away_while_the_runtime_is_replaced(tmp_path: Path, server: Postgres) -> None:
    """The reload ends when the store is back, and the loops of the new configuration run."""
    async with reading_daemon(tmp_path, server) as (daemon, reading):
        before = daemon.runtime
        reload = asyncio.create_task(daemon.reload())
        await lose_store(daemon, reading, server)
        assert (reload.done(), daemon.runtime is before) == (False, True)
        await asyncio.to_thread(server.start)
        await asyncio.wait_for(reload, DEADLINE)
        assert daemon.runtime is not before
        log(tmp_path, "carl")
        await until(lambda: "request-carl" in judged(daemon))
        assert daemon.ready() == ()


@pytest.mark.servers
@pytest.mark.costly
async def test_an_erasure_whose_store_goes_away(tmp_path: Path, server: Postgres) -> None:
    """The error is told when the store is back, the loops go on, and the person can be erased then."""
    async with reading_daemon(tmp_path, server) as (daemon, reading):
        erasing = asyncio.create_task(daemon.forget(ANNA, dry_run=False))
        await lose_store(daemon, reading, server)
        await asyncio.to_thread(server.start)
        with pytest.raises(StoreError, match="start PostgreSQL"):
            await asyncio.wait_for(erasing, DEADLINE)
        log(tmp_path, "carl")
        await until(lambda: "request-carl" in judged(daemon))
        assert len((await daemon.forget(ANNA, dry_run=False)).keys) == 1


@pytest.mark.servers
@pytest.mark.costly
async def test_a_stop_does_not_wait_for_the_store(tmp_path: Path, server: Postgres) -> None:
    """A daemon whose reload waits for the store ends when it is told to, and the reload says so."""
    async with reading_daemon(tmp_path, server) as (daemon, reading):
        reload = asyncio.create_task(daemon.reload())
        await lose_store(daemon, reading, server)
    with pytest.raises(ConfigError, match="ragwatch is stopping"):
        await asyncio.wait_for(reload, DEADLINE)
