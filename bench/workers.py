"""Speed of the stores: admissions, and verdicts by 1, 2 and 4 workers on one PostgreSQL, beside one SQLite process.

The lexical judge reads every draw. PostgreSQL flushes to disk as it does by default. Needs Debian's `postgresql`.
CPU time and transactions per verdict are told as well: they hardly depend on what else the machine does.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from typing import Any

from ragwatch.core.sample import Draw
from ragwatch.core.verdict import Reading, Verdict, judged
from ragwatch.judges import KINDS as JUDGES
from ragwatch.ports import Judge, Store
from ragwatch.stores import KINDS

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))
from support.kit import a_draw, a_judge_context, an_admission  # noqa: E402 - it is among the tests
from support.postgres import Postgres, new_server  # noqa: E402 - it is among the tests

DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
BATCH, LEASED = 500, 64
TEXT = " ".join(f"Cats purr when they are calm, and number {index} of them sleeps all day long." for index in range(24))
Settings = tuple[str, dict[str, Any]]  # kind and options of a store
DISK = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
}


def draws(offset: int = 0) -> list[Draw]:
    """Answers of 1.8 KB on contexts of the same size."""
    return [a_draw(f"r{offset + index}", contexts=(TEXT, "Dogs bark."), answer=TEXT[:400]) for index in range(DRAWS)]


def opened(kind: str, settings: dict[str, Any], state: str) -> Store:
    """A store."""
    return KINDS[kind].build(KINDS[kind].Options.model_validate(settings), Path(state))


def admit(store: Store, items: Sequence[Draw]) -> float:
    """Draws stored per second."""
    started = time.perf_counter()
    for start in range(0, len(items), BATCH):
        store.admit(an_admission(*items[start : start + BATCH]))
    return len(items) / (time.perf_counter() - started)


def work(settings: Settings, state: str, ready: Semaphore, go: Event, used: Synchronized[float]) -> None:
    """Read and settle until nothing is left. Adds the CPU seconds to a shared number."""
    judge = JUDGES["lexical"].build(JUDGES["lexical"].Options(), name="embedded", context=a_judge_context())
    store = opened(*settings, state)
    ready.release()
    go.wait()
    before = time.process_time()
    while leased := store.lease("embedded", LEASED, now=time.time(), seconds=300.0):
        store.settle(asyncio.run(read(judge, leased)))
    with used.get_lock():
        used.value += time.process_time() - before
    store.close()


async def read(judge: Judge, leased: Sequence[Draw]) -> list[Verdict]:
    """Verdicts of the judge."""
    verdicts = []
    for draw in leased:
        evidence, usage = await judge.read(draw.sample)
        verdicts.append(judged(draw, Reading("embedded", judge.kind, judge.version, usage=usage), evidence))
    return verdicts


def judge_all(kind: str, settings: dict[str, Any], states: Sequence[str]) -> tuple[float, float]:
    """Seconds until workers, one for each state directory, have read everything; and CPU seconds of them all."""
    context = multiprocessing.get_context("spawn")
    ready, go, used = context.Semaphore(0), context.Event(), context.Value("d", 0.0)
    workers = [context.Process(target=work, args=((kind, settings), state, ready, go, used)) for state in states]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    started = time.perf_counter()
    go.set()
    for worker in workers:
        worker.join()
    return time.perf_counter() - started, used.value


class Costs:
    """CPU seconds of the server, and its transactions, since this was made."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._start = self._now()

    def _now(self) -> tuple[float, float]:
        pid = (self._server.folder / "data" / "postmaster.pid").read_text().split()[0]
        commits = self._server.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")
        return _tree_seconds(int(pid)), float(commits)

    def per(self, verdicts: int, workers: float) -> str:
        """The costs of one verdict; `workers` are the CPU seconds of the workers."""
        server, commits = (now - start for now, start in zip(self._now(), self._start, strict=True))
        return (
            f"CPU {1e3 * workers / verdicts:.2f} ms in workers, {1e3 * server / verdicts:.2f} ms in the server;"
            f" {commits / verdicts:.2f} transactions"
        )


def _tree_seconds(pid: int) -> float:
    """CPU seconds of a process and its children, ended ones too."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(folder.name) == pid:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        state = f"{folder}/sqlite"
        store = opened("sqlite", {}, state)
        rate = admit(store, draws())
        store.close()
        one, used = judge_all("sqlite", {}, [state])
        print(f"sqlite     admitted {rate:8.0f}/s  judged {DRAWS / one:7.0f}/s by 1 worker")
        print(f"           CPU {1e3 * used / DRAWS:.2f} ms in the worker")
        server = new_server(**DISK)
        try:
            settings = {"url": server.url}
            first: float | None = None
            for workers in (1, 2, 4):
                states = [f"{folder}/state{index}" for index in range(workers)]
                store = opened("postgres", settings, f"{folder}/admitting")
                rate = admit(store, draws(workers * DRAWS))
                store.close()
                costs = Costs(server)
                seconds, used = judge_all("postgres", settings, states)
                first = first or seconds
                ratio = f"{first / seconds:.2f} times one worker, {one / seconds:.2f} times sqlite"
                print(f"postgres   admitted {rate:8.0f}/s  judged {DRAWS / seconds:7.0f}/s by {workers}: {ratio}")
                print(f"           {costs.per(DRAWS, used)}")
        finally:
            server.delete()


if __name__ == "__main__":
    main()
