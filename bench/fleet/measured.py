"""Runs real workers on one PostgreSQL: how long each answer waits, and what every step costs.

Each worker is a process with the judging loop of ragwatch; one more process admits answers at random times.
"""

import asyncio
import multiprocessing
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event, Semaphore
from pathlib import Path
from typing import Any, NamedTuple

from support.kit import a_draw, a_judge_context, an_admission, an_evidence
from support.postgres import Postgres, new_server

from ragwatch.judges.lexical.judge import LexicalJudge, Options
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Draw, Sample
from ragwatch.pipeline.judging import JudgingLoop, JudgingRules
from ragwatch.ports import FollowUp, LoopContext, Store
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict import NO_USAGE, Usage, Verdict
from ragwatch.stores import KINDS
from ragwatch.telemetry import Telemetry

JUDGE = "embedded"
IDLE_SECONDS = 0.1
TICK_SECONDS = 0.05
PART_SECONDS = 0.2
TEXT = " ".join(f"Cats purr when they are calm, and number {index} of them sleeps all day long." for index in range(24))
STORED = (
    "SELECT SUM(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'ragwatch' AND c.relkind = 'r'"
)
LOGGED = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"
DISK = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    workers: int  # number of workers
    judge: str  # `lexical`, which computes, or `waits`, which waits as for the reply of a server
    rate: float  # answers per second; 0 for all at once
    answers: int  # their number
    concurrency: int = 1  # samples that one judge reads at a time
    wait: float = 0.04  # mean wait of the judge that waits, in seconds


@dataclass(slots=True)
class Run:
    """What was measured. Steps are (number of answers, seconds, seconds of CPU of the worker)."""

    arrived: dict[str, float] = field(default_factory=dict)  # when each answer was stored, by its key
    settled: dict[str, float] = field(default_factory=dict)  # when its verdict was stored
    leases: list[tuple[int, float, float]] = field(default_factory=list)  # steps of leasing
    settlements: list[tuple[int, float, float]] = field(default_factory=list)  # steps of settling
    # steps of storing answers, each with the time of its end
    admissions: list[tuple[float, int, float, float]] = field(default_factory=list)
    readings: list[float] = field(default_factory=list)  # CPU seconds of each reading of the judge that computes
    worker_cpu: float = 0.0  # CPU seconds of all workers
    server_cpu: float = 0.0  # CPU seconds of PostgreSQL
    stored_bytes: int = 0  # size of the tables with their indexes
    log_bytes: int = 0  # what was written to the write-ahead log
    others: float = 0.0  # cores that other processes of the machine used meanwhile

    @property
    def waits(self) -> list[float]:
        """Seconds from the admission of each answer to its verdict."""
        return [self.settled[key] - at for key, at in self.arrived.items()]

    @property
    def seconds(self) -> float:
        """Seconds from the first admission to the last verdict."""
        return max(self.settled.values()) - min(self.arrived.values())


class Signals(NamedTuple):
    """What a worker waits for, and where it puts what it has measured."""

    ready: Semaphore
    go: Event
    stop: Event
    results: Queue[Any]


class RecordedStore:
    """Passes everything on to a store, and records the steps that matter here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.leases: list[tuple[int, float, float]] = []
        self.settlements: list[tuple[int, float, float]] = []
        self.settled: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        """Lease, with a record of it."""
        begin, cpu = time.perf_counter(), time.thread_time()
        draws = self._store.lease(judge, limit, now=now, seconds=seconds, before=before)
        self.leases.append((len(draws), time.perf_counter() - begin, time.thread_time() - cpu))
        return draws

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        """Settle, with a record of it."""
        begin, cpu = time.perf_counter(), time.thread_time()
        count = self._store.settle(verdicts, follow_ups, tallies)
        self.settlements.append((len(verdicts), time.perf_counter() - begin, time.thread_time() - cpu))
        now = time.time()
        self.settled.update((verdict.draw.key, now) for verdict in verdicts)
        return count


class RecordedJudge(LexicalJudge):
    """The lexical judge, with the CPU seconds of each reading."""

    readings: list[float]

    def evidence(self, sample: Sample) -> Evidence:
        """Read, with a record of it."""
        cpu = time.thread_time()
        evidence = super().evidence(sample)
        self.readings.append(time.thread_time() - cpu)
        return evidence


class WaitingJudge:
    """A judge that waits as long for each answer as `wait_of` says."""

    kind = model = version = "waits"

    def __init__(self, name: str, concurrency: int, wait: float) -> None:
        self.name, self.concurrency, self._wait = name, concurrency, wait

    def ready_in(self) -> float:
        """Always ready."""
        return 0.0

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Wait, and find a good answer."""
        await asyncio.sleep(wait_of(sample.id, self._wait))
        return an_evidence((1, 0)), NO_USAGE

    async def close(self) -> None:
        """Nothing is open."""


def wait_of(identity: str, mean: float) -> float:
    """Seconds that the judge waits for an answer: exponentially distributed, the same in each run."""
    return random.Random(identity).expovariate(1.0 / mean)


def answers(count: int) -> list[Draw]:
    """Answers of 400 characters on contexts of 1.8 KB."""
    return [a_draw(f"r{index}", contexts=(TEXT, "Dogs bark."), answer=TEXT[:400]) for index in range(count)]


def slowdowns(cores: int, parts: int = 12) -> tuple[float, ...]:
    """CPU seconds of a reading while 1, 2 ... cores are busy, as multiples of the first: cores may share parts."""
    context = multiprocessing.get_context("spawn")
    costs = []
    for busy in range(1, cores + 1):
        results: Queue[list[float]] = context.Queue()
        barrier = context.Barrier(busy)
        processes = [context.Process(target=_read_for, args=(parts, barrier, results)) for _ in range(busy)]
        for process in processes:
            process.start()
        costs.append(statistics.median(cost for _ in processes for cost in results.get()))
        for process in processes:
            process.join()
    return tuple(max(1.0, cost / costs[0]) for cost in costs)


def _read_for(parts: int, barrier: Barrier, results: Queue[list[float]]) -> None:
    """Read all the time, and put the CPU seconds of a reading in each of some parts of a second."""
    judge = LexicalJudge(Options(), name=JUDGE, context=a_judge_context())
    (answer,) = answers(1)
    judge.evidence(answer.sample)  # loads its tables
    barrier.wait()
    costs = []
    for _ in range(parts):
        until, begin, count = time.perf_counter() + PART_SECONDS, time.process_time(), 0
        while time.perf_counter() < until:
            judge.evidence(answer.sample)
            count += 1
        costs.append((time.process_time() - begin) / count)
    results.put(costs)


def run(plan: Plan) -> Run:
    """Run workers on a new server until every answer has its verdict."""
    context = multiprocessing.get_context("spawn")
    server = new_server(**DISK)
    try:
        with tempfile.TemporaryDirectory() as folder:
            ready, go, stop = context.Semaphore(0), context.Event(), context.Event()
            results: Queue[Any] = context.Queue()
            open_store(server.url, f"{folder}/first").close()  # makes the tables
            signals = Signals(ready, go, stop, results)
            processes = [
                context.Process(target=work, args=(f"{folder}/{index}", plan, server.url, signals))
                for index in range(plan.workers)
            ]
            for process in processes:
                process.start()
            for _ in processes:
                ready.acquire()
            found = Run()
            logged, stored, used = int(server.sql(LOGGED)), int(server.sql(STORED)), Used(server)
            if plan.rate:
                go.set()
                _admit(plan, open_store(server.url, f"{folder}/admitting"), found)
            else:
                _admit(plan, open_store(server.url, f"{folder}/admitting"), found)
                at = time.time()
                found.arrived = dict.fromkeys(found.arrived, at)
                used = Used(server)
                go.set()
            waiting = open_store(server.url, f"{folder}/waiting")
            while waiting.pending():
                time.sleep(0.2)
            waiting.close()
            found.server_cpu, others, seconds = used.now()
            found.stored_bytes = int(server.sql(STORED)) - stored
            found.log_bytes = int(server.sql(LOGGED)) - logged
            stop.set()
            for _ in processes:
                _collect(found, results.get())
            found.others = max(0.0, others - found.worker_cpu) / seconds
            for process in processes:
                process.join()
            return found
    finally:
        server.delete()


def _collect(found: Run, part: dict[str, Any]) -> None:
    found.settled |= part["settled"]
    found.leases += part["leases"]
    found.settlements += part["settlements"]
    found.readings += part["readings"]
    found.worker_cpu += part["cpu"]


def open_store(url: str, state: str) -> Store:
    """A store of a state directory of its own."""
    kind = KINDS["postgres"]
    return kind.build(kind.Options.model_validate({"url": url}), Path(state))


def _admit(plan: Plan, store: Store, found: Run) -> None:
    """Store the answers at their times, those that are due every 50 ms together."""
    rng, due = random.Random(7), 0.0
    times = []
    for _ in range(plan.answers):
        due += rng.expovariate(plan.rate) if plan.rate else 0.0
        times.append(due)
    draws, start, place = answers(plan.answers), time.time(), 0
    while place < len(draws):
        end = place
        while end < len(draws) and times[end] <= time.time() - start and end - place < 500:
            end += 1
        if end > place:
            begin, cpu = time.perf_counter(), time.thread_time()
            store.admit(an_admission(*draws[place:end], judges=(JUDGE,)))
            wall, cpu, now = time.perf_counter() - begin, time.thread_time() - cpu, time.time()
            found.admissions.append((now, end - place, wall, cpu))
            found.arrived |= {draw.key: now for draw in draws[place:end]}
            place = end
        time.sleep(TICK_SECONDS if plan.rate else 0.0)
    store.close()


def work(state: str, plan: Plan, url: str, signals: Signals) -> None:
    """One worker, until it is stopped."""
    store = RecordedStore(open_store(url, state))
    judge: Any
    if plan.judge == "lexical":
        judge = RecordedJudge(Options(concurrency=plan.concurrency), name=JUDGE, context=a_judge_context())
        judge.readings = []
        judge.evidence(answers(1)[0].sample)  # loads its tables
        judge.readings.clear()
    else:
        judge = WaitingJudge(JUDGE, plan.concurrency, plan.wait)
    loop = JudgingLoop(judge, JudgingRules(), LoopContext(store, Telemetry(), time.time))
    signals.ready.release()
    signals.go.wait()
    begin = time.process_time()
    asyncio.run(_judge_until(loop, signals.stop))
    readings = getattr(judge, "readings", [])
    signals.results.put(
        {
            "settled": store.settled,
            "leases": store.leases,
            "settlements": store.settlements,
            "readings": readings,
            "cpu": time.process_time() - begin,
        }
    )
    store.close()


async def _judge_until(loop: JudgingLoop, stop: Event) -> None:
    stopped = asyncio.Event()
    running = asyncio.get_running_loop()
    threading.Thread(target=lambda: (stop.wait(), running.call_soon_threadsafe(stopped.set)), daemon=True).start()
    while not stopped.is_set():
        if not await loop.step():
            await asyncio.sleep(IDLE_SECONDS)


class Used:
    """CPU that is used from an instant on."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._start = self._read()

    def _read(self) -> tuple[float, float, float]:
        fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
        of_machine = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # neither idle nor waiting
        of_server = server_seconds(self._server)
        return of_server, of_machine - of_server - time.process_time(), time.time()

    def now(self) -> tuple[float, float, float]:
        """CPU seconds of the server, of all processes but that and this one, and seconds."""
        one, two, three = (now - start for now, start in zip(self._read(), self._start, strict=True))
        return one, two, three


def server_seconds(server: Postgres) -> float:
    """CPU seconds of a server and of all sessions that it had."""
    ticks = os.sysconf("SC_CLK_TCK")
    main = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    total = sum(_stat(main)[11:15])  # its own, and those of ended sessions
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields and fields[1] == main:
                total += sum(fields[11:13])
    return total / ticks


def _stat(process: int) -> list[int]:
    """Numbers of /proc/PID/stat from the state on, which stands for 0; empty if the process has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return []
    fields = text.rpartition(")")[2].split()
    return [0, *(int(value) for value in fields[1:])]
