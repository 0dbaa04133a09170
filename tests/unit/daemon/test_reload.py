"""Reloads at bad moments: while the daemon starts or stops, with broken configurations, several at once."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.patience import DEADLINE

import ragwatch.daemon
from ragwatch.config import load
from ragwatch.daemon import Daemon, runtime
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.errors import ConfigError


def a_daemon(folder: Path) -> Daemon:
    """Build a daemon that follows a log that does not exist."""
    path = folder / "ragwatch.yaml"
    sources = f"[{{kind: tail, name: app, path: '{folder}/*.jsonl'}}]"
    path.write_text(f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nsources: {sources}\n")
    return Daemon(load(path), path=path)


@asynccontextmanager
async def running(daemon: Daemon) -> AsyncIterator[str]:
    """The address of a daemon that serves."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    work = asyncio.create_task(daemon.run(started.set_result))
    yield await started
    daemon.stop()
    await work


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
