"""Speed of the stores: admissions, and verdicts by 1, 2 and 4 workers on one PostgreSQL, beside one SQLite process.

    python bench/workers.py [DRAWS] [--admissions]

The lexical judge reads every draw. PostgreSQL flushes to disk as it does by default. Needs Debian's `postgresql`.
CPU time and transactions are told as well: they depend less on what else the machine does. `--admissions` leaves the
judging out, which takes most of the time.
"""

import argparse
import asyncio
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from typing import Any, NamedTuple

from cpu import tree_seconds

from ragwatch.judges import KINDS as JUDGES
from ragwatch.model.sample import Draw
from ragwatch.ports import Judge, Store
from ragwatch.statistics.verdict import Reading, Verdict, judged
from ragwatch.stores import KINDS

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))
from support.kit import a_draw, a_judge_context, an_admission  # noqa: E402 - it is among the tests
from support.postgres import Postgres, new_server  # noqa: E402 - it is among the tests

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


def draws(count: int, offset: int = 0) -> list[Draw]:
    """Answers of now, of 0.4 KB on contexts of 1.8 KB."""
    now, contexts = time.time(), (TEXT, "Dogs bark.")
    return [a_draw(f"r{offset + index}", at=now, contexts=contexts, answer=TEXT[:400]) for index in range(count)]


def opened(kind: str, settings: dict[str, Any], state: str) -> Store:
    """A store."""
    return KINDS[kind].build(KINDS[kind].Options.model_validate(settings), Path(state))


class Admitted(NamedTuple):
    """What it took to store draws: seconds, the best batch, and CPU seconds of the process and of the server."""

    seconds: float
    best: float
    own: float
    server: float


def admit(store: Store, items: Sequence[Draw], server: Postgres | None = None) -> Admitted:
    """Store draws in batches."""
    batches = [an_admission(*items[start : start + BATCH]) for start in range(0, len(items), BATCH)]
    of_server = 0.0 if server is None else tree_seconds(int(server.postmaster()))
    started, own, best = time.perf_counter(), time.process_time(), math.inf
    for batch in batches:
        begun = time.perf_counter()
        store.admit(batch)
        best = min(best, (time.perf_counter() - begun) / len(batch.draws))
    seconds, own = time.perf_counter() - started, time.process_time() - own
    return Admitted(seconds, best, own, 0.0 if server is None else tree_seconds(int(server.postmaster())) - of_server)


def told(name: str, count: int, admitted: Admitted) -> str:
    """The figures of admissions."""
    seconds, best, own, server = admitted
    return (
        f"{name:10} admitted {count / seconds:6.0f}/s, the best batch {1.0 / best:6.0f}/s;"
        f" CPU {1e6 * own / count:4.0f} us in the worker, {1e6 * server / count:3.0f} us in the server,"
        f" together {count / (own + server):6.0f}/s"
    )


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
    verdicts: list[Verdict] = []
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
        commits = self._server.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")
        return tree_seconds(int(self._server.postmaster())), float(commits)

    def per(self, verdicts: int, workers: float) -> str:
        """The costs of one verdict; `workers` are the CPU seconds of the workers."""
        server, commits = (now - start for now, start in zip(self._now(), self._start, strict=True))
        return (
            f"CPU {1e3 * workers / verdicts:.2f} ms in workers, {1e3 * server / verdicts:.2f} ms in the server;"
            f" {commits / verdicts:.2f} transactions"
        )


def judge_by_sqlite(folder: str, count: int) -> float:
    """Print the figures of SQLite, and return the seconds of its judging."""
    state = f"{folder}/sqlite"
    store = opened("sqlite", {}, state)
    print(told("sqlite", count, admit(store, draws(count))))
    store.close()
    seconds, used = judge_all("sqlite", {}, [state])
    print(f"           judged {count / seconds:7.0f}/s by 1 worker; CPU {1e3 * used / count:.2f} ms in the worker")
    return seconds


def judge_by_workers(folder: str, count: int, sqlite_seconds: float) -> None:
    """Print the figures of 1, 2 and 4 workers on one PostgreSQL."""
    server = new_server(**DISK)
    try:
        settings = {"url": server.url}
        first: float | None = None
        for workers in (1, 2, 4):
            states = [f"{folder}/state{index}" for index in range(workers)]
            store = opened("postgres", settings, f"{folder}/admitting")
            print(told("postgres", count, admit(store, draws(count, workers * count), server)))
            store.close()
            costs = Costs(server)
            seconds, used = judge_all("postgres", settings, states)
            first = first or seconds
            ratio = f"{first / seconds:.2f} times one worker, {sqlite_seconds / seconds:.2f} times sqlite"
            print(f"           judged {count / seconds:7.0f}/s by {workers}: {ratio}")
            print(f"           {costs.per(count, used)}")
    finally:
        server.delete()


def only_admit(folder: str, count: int) -> None:
    """Print the figures of admissions, three times for each kind of store."""
    server = new_server(**DISK)
    try:
        for run in range(3):
            for kind, settings in (("sqlite", {}), ("postgres", {"url": server.url})):
                store = opened(kind, settings, f"{folder}/{kind}{run}")
                of = server if kind == "postgres" else None
                print(told(kind, count, admit(store, draws(count, run * count), of)), flush=True)
                store.close()
    finally:
        server.delete()


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("draws", type=int, nargs="?", default=3000)
    options.add_argument("--admissions", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.admissions:
            only_admit(folder, chosen.draws)
        else:
            judge_by_workers(folder, chosen.draws, judge_by_sqlite(folder, chosen.draws))


if __name__ == "__main__":
    main()
