"""A daemon that follows a log, for tests that run it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.ports import Query
from support.patience import DEADLINE


def a_daemon(folder: Path, more: str = "") -> Daemon:
    """A daemon that follows a log with answers of anna and bob."""
    path = folder / "ragwatch.yaml"
    source = f"{{kind: tail, name: app, path: '{folder}/*.jsonl', start: beginning}}"
    path.write_text(
        f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nsources: [{source}]\nsampling: {{probability: 1.0}}\n"
        + more
    )
    log(folder, "anna", "bob")
    return Daemon(load(path), path=path)


def log(folder: Path, *names: str) -> None:
    """One more answer of each person."""
    with (folder / "rag.jsonl").open("a") as file:
        for name in names:
            row = {"id": f"request-{name}", "question": f"Where is the parcel of MARK-{name}?", "contexts": ["x"]}
            file.write(json.dumps(row | {"answer": f"MARK-{name}, it is lost.", "metadata": {"user": name}}) + "\n")


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def judged(daemon: Daemon) -> set[str | None]:
    """Ids of the stored verdicts."""
    return {row.verdict.id for row in daemon.store.find(Query())}


@asynccontextmanager
async def running(daemon: Daemon) -> AsyncIterator[str]:
    """The address of a daemon that serves."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    work = asyncio.create_task(daemon.run(started.set_result))
    yield await started
    daemon.stop()
    await work
