"""A discrete-event simulation of workers on one PostgreSQL: the judging loop, cores, and the lock of sequence numbers.

Every step costs CPU of the worker and of the server, which share the cores in slices. Leases skip what others have;
settlements wait for each other while they hold the lock of sequence numbers.
"""

import random
import statistics
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import simpy
from fleet.measured import IDLE_SECONDS, Run, wait_of

from ragwatch.pipeline.judging import SETTLE_SECONDS, JudgingRules

SLICE_SECONDS = 0.003
LOCKED_SHARE = 0.8  # of what the server does for a settlement
ADMITTING_SHARE = 0.45  # of the CPU of the worker, what the server takes for an admission: see bench/workers.py
QUIET = 0.02  # cores that other processes use

Steps = Generator[simpy.Event, Any, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a step on n answers: fixed + each * n."""

    fixed: float
    each: float

    def of(self, count: int) -> float:
        """Seconds."""
        return max(0.0, self.fixed + self.each * count)


@dataclass(frozen=True, slots=True)
class Costs:
    """What the steps cost, from a measured run of one worker."""

    lease: tuple[Cost, Cost]  # CPU of the worker, and of the server
    settle: tuple[Cost, Cost]  # CPU of the worker, and of the server
    read: float  # CPU of the judge for one answer; 0 for one that waits
    loop: float  # other CPU of the worker for one answer
    readings: tuple[float, ...] = ()  # CPU seconds of each measured reading
    slowdowns: tuple[float, ...] = (1.0,)  # by how much work takes longer while 1, 2 ... cores are busy

    @property
    def per_answer(self) -> tuple[float, float]:
        """CPU seconds of worker and server for one of many answers."""
        own = self.read + self.loop + self.lease[0].each + self.settle[0].each
        return own, self.lease[1].each + self.settle[1].each


def costs_of(run: Run, slowdowns: tuple[float, ...]) -> Costs:
    """Fit the costs to a run of one worker."""
    answers = len(run.settled)
    steps = sum(cpu for _, _, cpu in (*run.leases, *run.settlements))
    waited = sum(max(0.0, wall - cpu) for _, wall, cpu in (*run.leases, *run.settlements))
    of_server = run.server_cpu - ADMITTING_SHARE * sum(cpu for _, _, _, cpu in run.admissions)
    share = min(1.0, max(0.0, of_server) / waited)
    read = sum(run.readings) / answers if run.readings else 0.0
    loop = max(0.0, (run.worker_cpu - steps) / answers - read)
    return Costs(_fit(run.leases, share), _fit(run.settlements, share), read, loop, tuple(run.readings), slowdowns)


def _fit(steps: Sequence[tuple[int, float, float]], share: float) -> tuple[Cost, Cost]:
    """Fit lines to the seconds of steps: CPU of the worker, and that of the server, a share of the rest."""
    own = _line([(count, cpu) for count, _, cpu in steps])
    return own, _line([(count, share * max(0.0, wall - cpu)) for count, wall, cpu in steps])


def _line(points: Iterable[tuple[int, float]]) -> Cost:
    """A line through the medians for each number: a step that the machine held up does not count."""
    by_count: dict[int, list[float]] = {}
    for count, seconds in points:
        by_count.setdefault(count, []).append(seconds)
    counts = [count for count, values in by_count.items() for _ in values]
    medians = [statistics.median(values) for values in by_count.values() for _ in values]
    if len(by_count) < 2:
        return Cost(medians[0] if counts[0] == 0 else 0.0, 0.0 if counts[0] == 0 else medians[0] / counts[0])
    each, fixed = statistics.linear_regression(counts, medians)
    return Cost(max(0.0, fixed), max(0.0, each))


class Fleet:
    """The simulation.

    Args:
        arrivals: When each answer is stored, by its key.
        workers: Number of workers.
        costs: What the steps cost.
        cores: Cores that workers and server share.
        service: Seconds that the judge waits for an answer, by its key; None for one that computes.
        concurrency: Samples that a judge reads at a time.

    Attributes:
        settled: When each verdict is stored.
        busy: CPU seconds.
    """

    def __init__(
        self,
        arrivals: Mapping[str, float],
        workers: int,
        costs: Costs,
        *,
        cores: int,
        service: Callable[[str], float] | None = None,
        concurrency: int = 1,
    ) -> None:
        self._env = simpy.Environment()
        self._cores = simpy.Resource(self._env, cores)
        self._sequences = simpy.Resource(self._env, 1)
        self._costs, self._service, self._concurrency = costs, service, concurrency
        self._arrivals = sorted(arrivals.items(), key=lambda pair: pair[1])
        self._queue: deque[str] = deque()
        self._rng = random.Random(3)
        self._workers = workers
        self._done = self._env.event()
        self.settled: dict[str, float] = {}
        self.busy = 0.0

    def run(self) -> dict[str, float]:
        """Run until every answer has its verdict. Returns when each has, counted from the first arrival."""
        start = self._arrivals[0][1]
        self._env.process(self._arrive(start))
        for number in range(self._workers):
            self._env.process(self._work(number))
        self._env.run(until=self._done)
        return {key: start + at for key, at in self.settled.items()}

    def load(self, seconds: Iterable[tuple[float, float]]) -> None:
        """Add other work on the cores: CPU seconds from an instant on, in seconds after the first arrival."""
        for at, cost in seconds:
            self._env.process(self._burn(max(0.0, at), cost))

    def share(self, others: float, cores: int) -> None:
        """Let other processes, one for each core, use so many cores; what they do not get they do not make up for."""
        if others > QUIET:
            for _ in range(cores):
                self._env.process(self._use(others / cores))

    def _use(self, share: float) -> Steps:
        while True:
            due = self._env.now + SLICE_SECONDS / share
            with self._cores.request() as core:
                yield core
                yield self._env.timeout(SLICE_SECONDS)
            yield self._env.timeout(max(0.0, due - self._env.now))

    def _burn(self, at: float, cost: float) -> Steps:
        yield self._env.timeout(at)
        yield from self._cpu(cost)

    def _arrive(self, start: float) -> Steps:
        for key, at in self._arrivals:
            if at - start > self._env.now:
                yield self._env.timeout(at - start - self._env.now)
            self._queue.append(key)

    def _cpu(self, seconds: float) -> Steps:
        """Use a core, in slices that are shared with the others. Busy cores slow each other down."""
        slowdowns = self._costs.slowdowns
        while seconds > 0.0:
            with self._cores.request() as core:
                yield core
                piece = min(SLICE_SECONDS, seconds)
                taken = piece * slowdowns[min(self._cores.count, len(slowdowns)) - 1]
                self.busy += taken
                yield self._env.timeout(taken)
                seconds -= piece

    def _work(self, number: int) -> Steps:
        """One worker: see `JudgingLoop.step`."""
        env, rules = self._env, JudgingRules()
        slots = simpy.Resource(env, self._concurrency)
        reading: dict[str, simpy.Event] = {}
        read: list[str] = []
        yield env.timeout(IDLE_SECONDS * number / self._workers)
        while True:
            free = rules.batch - len(reading)
            if free > 0:
                for key in (yield from self._lease(free)):
                    reading[key] = env.process(self._read(key, slots, read))
            if not reading:
                yield env.timeout(IDLE_SECONDS)
                continue
            yield env.all_of(list(reading.values())) | env.timeout(SETTLE_SECONDS)
            finished, read[:] = list(read), []
            for key in finished:
                del reading[key]
            if finished:
                yield from self._settle(finished)

    def _lease(self, limit: int) -> Generator[simpy.Event, Any, list[str]]:
        own, server = self._costs.lease
        count = min(limit, len(self._queue))
        yield from self._cpu(own.of(count) / 2 + server.of(count) / 2)
        leased = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        yield from self._cpu(own.of(len(leased)) / 2 + server.of(len(leased)) / 2)
        return leased

    def _read(self, key: str, slots: simpy.Resource, read: list[str]) -> Steps:
        with slots.request() as slot:
            yield slot
            yield from self._cpu(self._costs.loop)
            if self._service is not None:
                yield self._env.timeout(self._service(key))
            else:
                readings = self._costs.readings
                yield from self._cpu(self._rng.choice(readings) if readings else self._costs.read)
        read.append(key)

    def _settle(self, keys: Sequence[str]) -> Steps:
        own, server = self._costs.settle
        yield from self._cpu(own.of(len(keys)) + server.of(len(keys)) * (1.0 - LOCKED_SHARE))
        with self._sequences.request() as lock:
            yield lock
            yield from self._cpu(server.of(len(keys)) * LOCKED_SHARE)
        self.settled.update(dict.fromkeys(keys, self._env.now))
        if len(self.settled) == len(self._arrivals) and not self._done.triggered:
            self._done.succeed()


def simulate(
    run: Run, costs: Costs, *, workers: int, cores: int, judge: str, wait: float, concurrency: int
) -> list[float]:
    """Seconds that each answer of a measured run waits for its verdict, as simulated from when it arrived."""
    names = {key: f"r{index}" for index, key in enumerate(run.arrived)}
    service = None if judge == "lexical" else lambda key: wait_of(names[key], wait)
    fleet = Fleet(run.arrived, workers, costs, cores=cores, service=service, concurrency=concurrency)
    start = min(run.arrived.values())
    used = 1.0 + ADMITTING_SHARE
    fleet.load((at - seconds - start, used * cpu) for at, _, seconds, cpu in run.admissions if at > start)
    fleet.share(run.others, cores)
    settled = fleet.run()
    return [settled[key] - at for key, at in run.arrived.items()]
