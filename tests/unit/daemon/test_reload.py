"""Reload: what becomes of one that comes at a bad moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.errors import ConfigError


def a_daemon(folder: Path) -> Daemon:
    """One that follows a log which is not there."""
    path = folder / "ragwatch.yaml"
    sources = f"[{{kind: tail, name: app, path: '{folder}/*.jsonl'}}]"
    path.write_text(f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nsources: {sources}\n")
    return Daemon(load(path), path=path)


async def test_a_reload_after_the_loops_have_ended(tmp_path: Path) -> None:
    """While the last requests are answered, nobody is left to swap the rooms: it is refused, and holds nothing up."""
    daemon = a_daemon(tmp_path)
    started = asyncio.Event()
    running = asyncio.create_task(daemon.run(lambda _: started.set()))
    await started.wait()
    daemon.stop()
    await running
    with pytest.raises(ConfigError, match="stopping"):
        await asyncio.wait_for(daemon.reload(), 10.0)


async def test_a_reload_closes_the_breakers(tmp_path: Path) -> None:
    """The judges of the new rooms have not failed yet; a gauge left from the old ones would page until a restart."""
    daemon = a_daemon(tmp_path)
    started = asyncio.Event()
    running = asyncio.create_task(daemon.run(lambda _: started.set()))
    await started.wait()
    daemon.telemetry.breaker("embedded", is_open=True, why="the key is wrong", seconds=60.0)
    daemon.telemetry.rate_limit("embedded", "requests", 0.0)
    daemon.telemetry.judge_fell_back("embedded", "1", None)
    await asyncio.wait_for(daemon.reload(), 10.0)
    shown = daemon.rooms.exporter.text()
    daemon.stop()
    await running
    assert "ragwatch_judge_breaker_open{" not in shown
    assert "ragwatch_judge_rate_limit_remaining_ratio{" not in shown
    assert "ragwatch_judge_fallback{" in shown


async def test_a_reload_takes_the_name_that_people_use(tmp_path: Path) -> None:
    """Whoever is refused is told to set `web.external_url`; setting it and reloading must be enough."""
    daemon = a_daemon(tmp_path)
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(daemon.run(started.set_result))
    async with httpx.AsyncClient(base_url=await started, headers={"Host": "rag.example.org"}) as client:
        assert (await client.get("/-/healthy")).status_code == 403
        path = tmp_path / "ragwatch.yaml"
        path.write_text(path.read_text().replace("web: {", "web: {external_url: 'https://rag.example.org/watch', "))
        await asyncio.wait_for(daemon.reload(), 10.0)
        assert (await client.get("/-/healthy")).status_code == 200
    daemon.stop()
    await running


async def test_whatever_a_configuration_breaks_is_shown(tmp_path: Path) -> None:
    """Also what nobody foresaw: the old one stays, and the gauge says so."""
    daemon = a_daemon(tmp_path)
    endless = "[" * 5000
    probe = f"{{kind: http, url: 'http://a/', body: {{q: '{{{{ query }}}}'}}, contexts: '{endless}'}}"
    path = tmp_path / "ragwatch.yaml"
    items = "[{query: q, expected: [a]}]"
    path.write_text(f"{path.read_text()}canaries: [{{suite: docs, items: {items}, probe: {probe}}}]\n")
    before = daemon.rooms
    with pytest.raises((ConfigError, RecursionError)):
        await daemon.reload()
    assert daemon.telemetry.last_reload_ok is False
    assert daemon.rooms is before
    await before.close()
    daemon.store.close()
