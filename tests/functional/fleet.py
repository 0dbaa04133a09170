"""Real daemons over one PostgreSQL, each with a log of its own, and what they have done together."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from functional.daemon import RagwatchProcess, parse_series, record, write_config
from support.patience import DEADLINE
from support.postgres import Postgres

from ragwatch.board import Board
from ragwatch.config import load
from ragwatch.daemon.process import SharedState
from ragwatch.daemon.runtime import build
from ragwatch.errors import StoreError
from ragwatch.pipeline.drift.scores import KIND, ScoreDriftLoop
from ragwatch.ports import ScoreRow, Store
from ragwatch.statistics.tally import Tally
from ragwatch.stores.postgres import Options, database
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

LEASE_SECONDS = 12
SUITE, PERIOD = "docs", 5
ANSWERS = ("The old mill stands by the river.", "A dragon burned Reykjavik last winter.", "The old mill stands.")
COUNTERS = ("ragwatch_samples_judged_total", "ragwatch_samples_drawn_total", "ragwatch_stage_samples_total")


def line(number: int) -> str:
    """A log line: two of three answers are supported; two routes."""
    answer = ANSWERS[number * 2654435761 % 2**32 % 3]
    return record(number, answer=answer, route="search" if number % 4 else "support")


class Fleet:
    """Workers that share one queue.

    Args:
        server: Their database.
        folder: Holds a folder for each of them, and one for SQLite.
        workers: How many.
        samples: How many lines their logs have together.
        retriever: Address that canaries ask.
    """

    def __init__(self, server: Postgres, folder: Path, *, workers: int, samples: int, retriever: str) -> None:
        self.server, self.folder, self.samples = server, folder, samples
        self.store: Store = database(Options.model_validate({"url": server.url})).connected()
        self.configs = [self.configured(f"worker{index}", retriever) for index in range(workers)]
        self.workers: list[RagwatchProcess] = [self.started(config) for config in self.configs]

    def configured(self, name: str, retriever: str, judging: str = "lease: 12s, ") -> Path:
        """Write the configuration of a worker."""
        folder = self.folder / name
        folder.mkdir()
        probe = {"kind": "http", "url": retriever, "body": {"q": "{{ query }}"}, "contexts": "hits"}
        suite = {"suite": SUITE, "schedule": f"{PERIOD}s", "jitter": 0, "at_start": False, "probe": probe}
        suite["items"] = [{"query": "q", "expected": ["d1"]}]
        return write_config(
            folder,
            store=json.dumps({"kind": "postgres", "url": self.server.url, "timeout_seconds": 10}),
            sources=f"[{{kind: tail, name: {name}, path: '{folder}/log/*', start: beginning}}]",
            judging=f"{{{judging}timeout: 12s, max_pending: 1000000}}",
            thresholds="{}",
            drift="{reference: 100, reference_time: 1s, quantities: [faithfulness], traffic: {signals: []}}",
            estimates="{windows: [1d], every: 500ms}",
            canaries=json.dumps([suite]),
        )

    def started(self, config: Path, code: Path | None = None) -> RagwatchProcess:
        """Start a worker, and wait until it serves; with the code in a folder, if one is given."""
        return RagwatchProcess(config, forked=code is None, code=code).wait_until_serving()

    def write_logs(self) -> None:
        """Write all lines, a part into the log of each worker."""
        count = len(self.configs)
        for index, config in enumerate(self.configs):
            lines = "".join(f"{line(number)}\n" for number in range(index, self.samples, count))
            (config.parent / "log" / "app.jsonl").write_text(lines)

    def judged(self) -> float:
        """Number of samples that are judged; that of before while the database is away."""
        with suppress(StoreError):
            return sum(count for (tally, _), count in self.store.tallies().items() if tally is Tally.JUDGED)
        return -1.0

    def until(self, judged: float, seconds: float = DEADLINE) -> None:
        """Wait until so many samples are judged."""
        wait_for(lambda: self.judged() >= judged, seconds, lambda: f"{self.judged()} of {judged}")

    def leader(self) -> int:
        """The worker that leads."""
        found = list[int]()

        def search() -> bool:
            found[:] = [index for index, worker in enumerate(self.workers) if worker.series()["ragwatch_leader"]]
            return len(found) == 1

        wait_for(search, DEADLINE, lambda: f"leaders: {found}")
        return found[0]

    def replace(self, index: int) -> None:
        """Kill a worker, and start it again."""
        self.workers[index].kill()
        self.workers[index] = self.started(self.configs[index])

    def signal(self, index: int, number: signal.Signals) -> None:
        """Send a signal to a worker."""
        self.workers[index].signal(number)

    def series(self) -> list[dict[str, float]]:
        """All samples of each worker."""
        return [worker.series() for worker in self.workers]

    def end(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.signal(signal.SIGCONT)
            worker.kill()
        self.store.close()


def wait_for(condition: Callable[[], bool], seconds: float, state: Callable[[], str]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, state()
        time.sleep(0.1)


def sqlite_series(fleet: Fleet) -> dict[str, float]:
    """What one process with SQLite exports over the same lines."""
    folder = fleet.folder / "sqlite"
    folder.mkdir()
    config = write_config(folder, estimates="{windows: [1d]}", thresholds="{}", drift="{quantities: []}")
    lines = "".join(f"{line(number)}\n" for number in range(fleet.samples))
    (folder / "log" / "app.jsonl").write_text(lines)
    command = [sys.executable, "-m", "ragwatch", "run", "--once", "--config", str(config)]
    limit = DEADLINE + fleet.samples / 20
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    return parse_series(done.stdout)


def of_fleet(series: Sequence[Mapping[str, float]], prefixes: Sequence[str]) -> dict[str, float]:
    """The sums over workers of the counters with these names."""
    total: Counter[str] = Counter()
    for one in series:
        total.update({name: value for name, value in one.items() if name.startswith(tuple(prefixes))})  # type: ignore[arg-type]  # sums of floats
    return {name: value for name, value in total.items() if value}


class Replay(SqliteStore):
    """A store with the verdicts of another one, in their order."""

    def __init__(self, folder: Path, verdicts: Store) -> None:
        super().__init__(folder)
        self._verdicts = verdicts

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Those of the other one."""
        return self._verdicts.window(after, since, limit)


def replayed_drift(fleet: Fleet) -> Mapping[str, Any] | None:
    """The state of drift detection that one process has after all verdicts, each taken once, in their order."""
    store = Replay(fleet.folder / "replay", fleet.store)
    runtime = build(load(fleet.configs[0]), SharedState(store, Board(), Telemetry(), time.time), tuple)
    drift: ScoreDriftLoop = runtime.watchers.drift
    drift.resume()
    drift._step()
    state = store.recall(KIND)
    store.close()
    return state


def canary_slots(fleet: Fleet) -> list[int]:
    """By run of the suite, the time of its schedule."""
    return sorted(int(run.at // PERIOD) for run in fleet.store.runs("canary", SUITE, 10_000))


def numbers(series: Mapping[str, float], *names: str) -> Iterator[tuple[str, float]]:
    """Samples of some series."""
    for name, value in series.items():
        if name.partition("{")[0] in names:
            yield name, value
