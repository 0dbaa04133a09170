"""Reloads and erasures while the store cannot be reached: the daemon stays, and goes on when the store is back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.callers import canned
from support.patience import DEADLINE
from support.postgres import Postgres, new_server
from unit.daemon.test_forget import a_daemon, judged, log, until
from unit.daemon.test_reload import running

from ragwatch.daemon import Daemon
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Erasure

pytestmark = [pytest.mark.servers, pytest.mark.costly]


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server that tests stop and start."""
    found = new_server()
    yield found
    found.delete()


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


async def test_a_stop_does_not_wait_for_the_store(tmp_path: Path, server: Postgres) -> None:
    """A daemon whose reload waits for the store ends when it is told to, and the reload says so."""
    async with reading_daemon(tmp_path, server) as (daemon, reading):
        reload = asyncio.create_task(daemon.reload())
        await lose_store(daemon, reading, server)
    with pytest.raises(ConfigError, match="ragwatch is stopping"):
        await asyncio.wait_for(reload, DEADLINE)
