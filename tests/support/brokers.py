"""Real message brokers of Debian packages on a port and in a folder of their own; and a worker that reads from one."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragwatch.errors import SourceError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import Batch, LoopContext, Source, Store
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import Telemetry
from support.kit import AT, JUDGE, Clock
from support.patience import DEADLINE, wait_until
from support.programs import free_port

SOURCE = "app"


def names(count: int, prefix: str = "r") -> list[str]:
    """Ids of records."""
    return [f"{prefix}{number}" for number in range(count)]


class BrokerProcess:
    """A server as a process of its own, which can be killed, stopped and started again on its data.

    Args:
        program: Name of the program.
        package: Debian package of it.
        arguments: What it is started with.
        answers: Tells of a connection whether the server answers, and not only listens.
    """

    def __init__(
        self,
        program: str,
        package: str,
        port: int,
        arguments: Sequence[str],
        answers: Callable[[socket.socket], bool] = lambda _: True,
    ) -> None:
        path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/bin")
        if path is None:
            pytest.skip(f"{program} is missing: Debian package `{package}`")
        self.port = port
        self._answers = answers
        self._command = [path, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._is_up, f"{self._command[0]} answers")

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"{self._command} ended with {self._process.returncode}"
        with socket.socket() as client:
            client.settimeout(1.0)
            try:
                client.connect(("127.0.0.1", self.port))
                return self._answers(client)
            except OSError:
                return False

    @property
    def pid(self) -> int:
        """Id of its process."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def redis_server(folder: Path, *options: str) -> BrokerProcess:
    """A Redis server that writes every change to disk."""
    port = free_port()
    listening = ("--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "")
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    return BrokerProcess("redis-server", "redis-server", port, [*listening, *durable, *options], _has_loaded)


def _has_loaded(client: socket.socket) -> bool:
    """A Redis server listens while it loads its data, and refuses every command."""
    client.sendall(b"PING\r\n")
    return not client.recv(64).startswith((b"-LOADING", b"-MASTERDOWN"))


def nats_server(folder: Path, *options: str) -> BrokerProcess:
    """A NATS server with JetStream."""
    port = free_port()
    return BrokerProcess(
        "nats-server",
        "nats-server",
        port,
        ["--addr", "127.0.0.1", "--port", str(port), "--jetstream", "--store_dir", str(folder), *options],
    )


class Worker:
    """A source with its intake.

    Args:
        source: What it reads.
        store: Where it stores.
        cursors: Whether it continues where the store has it.
    """

    def __init__(self, source: Source, store: Store, *, max_pending: int = 1_000_000) -> None:
        self.source, self.store = source, store
        rules = IntakeRules(SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, max_pending)
        source.resume(store.cursors(SOURCE))
        self.intake = IntakeLoop(source, LogReader(RecordRules()), rules, LoopContext(store, Telemetry(), Clock(AT)))

    async def drain(self) -> None:
        """Step until nothing is left to read; a server that is slow on a busy machine is asked again."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                if not await self.intake.step():
                    return
            except SourceError as error:
                if "does not answer in time" not in str(error) or time.monotonic() > end:
                    raise

    async def drain_until(self, holds: Callable[[], object], what: str) -> None:
        """Step until a condition holds."""
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end, f"never happened: {what}"
            if not await self.intake.step():
                time.sleep(0.01)  # noqa: ASYNC251 - nothing else runs

    def take(self) -> Batch:
        """The next batch, not stored yet."""
        batch = self.source.read()
        assert batch is not None
        return batch

    def admit(self, batch: Batch) -> None:
        """Store a batch, without telling the broker."""
        self.store.admit(self.intake._admission(batch)[0])


def counted(store: Store, tally: Tally, *labels: str) -> float:
    """A counter of the source."""
    return store.tallies()[tally, (SOURCE, *labels)]


def once(count: int) -> dict[str, Any]:
    """What must hold if every record is counted once: to be compared with `books`."""
    return {"seen": count, "drawn": count, "pending": {JUDGE: count} if count else {}, "rejected": 0}


def books(store: Store) -> dict[str, Any]:
    """What the store has counted."""
    tallies = store.tallies()
    rejected = sum(value for (name, _), value in tallies.items() if name is Tally.REJECTED)
    return {
        "seen": tallies[Tally.SEEN, (SOURCE,)],
        "drawn": tallies[Tally.DRAWN, ("search",)],
        "pending": dict(store.pending()),
        "rejected": rejected,
    }
