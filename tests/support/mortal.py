"""A tail, an intake and a SQLite store that can die at any instant, as a process does under kill -9."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NoReturn

import orjson
import structlog

from ragwatch.errors import StoreError
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import Batch, LoopContext
from ragwatch.sources.tail.descriptors import DescriptorBudget
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.source import TailSource
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import unpack
from ragwatch.telemetry import Telemetry
from support.kit import AT, JUDGE, a_verdict, an_unjudged
from support.loops import CANONICAL

FREE_PAGES = 1 << 30


class KilledError(BaseException):
    """The process is gone. Not an Exception: nothing in a process handles its own kill."""


class Fate:
    """Counts instants down to a kill. Once it has struck, nothing happens any more."""

    def __init__(self) -> None:
        self.left: int | None = None

    def tick(self) -> None:
        """One more instant is lived through."""
        if self.left is None:
            return
        if self.left <= 0:
            raise KilledError
        self.left -= 1


class MortalConnection:
    """A SQLite connection on which every statement is an instant."""

    def __init__(self, connection: sqlite3.Connection, fate: Fate) -> None:
        self.connection, self._fate = connection, fate

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Execute, if we live."""
        self._fate.tick()
        return self.connection.execute(*statement)

    def executemany(self, *statement: Any) -> sqlite3.Cursor:
        """Execute, if we live."""
        self._fate.tick()
        return self.connection.executemany(*statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


class MortalTail(TailSource):
    """A tail on which reading and committing are instants."""

    fate: Fate

    def read(self) -> Batch | None:
        """Read, if we live."""
        self.fate.tick()
        batch = super().read()
        self.fate.tick()
        return batch

    def commit(self, batch: Batch) -> None:
        """Move on, if we live."""
        self.fate.tick()
        super().commit(batch)
        self.fate.tick()


def _silence(*_: Any) -> NoReturn:
    raise structlog.DropEvent


class MortalDaemon:
    """What the daemon's intake loop is made of, on one state directory, through any number of lives.

    Args:
        state: Its state directory.
        pattern: What the tail follows.
        store_kind: The store under test.
        max_pending: Length of the queue at which reading stops.
        read_bytes: Bytes of one batch.
        open_files: How many log files may be open at once.
    """

    def __init__(
        self,
        state: Path,
        pattern: str,
        *,
        store_kind: Callable[[Path], SqliteStore],
        max_pending: int,
        read_bytes: int,
        open_files: int = 1000,
    ) -> None:
        self._descriptors = DescriptorBudget(lambda: open_files)
        self.now = 0.0
        self.full = False
        self._state, self._store_kind, self._max_pending = state, store_kind, max_pending
        whole = {"name": "app", "path": pattern, "start": "beginning", "format": "canonical", "read_bytes": read_bytes}
        self._options = Options.model_validate(whole)
        self.start()

    def start(self) -> None:
        """A new life, from what is on disk."""
        self.fate = Fate()
        self.store = self._store_kind(self._state)
        self.store.engine._writer = MortalConnection(self.store.engine._writer, self.fate)  # type: ignore[assignment]
        if self.full:
            self.fill()
        self.source = MortalTail(self._options, clock=lambda: self.now, descriptors=self._descriptors)
        self.source.fate = self.fate
        self.source.resume(self.store.cursors("app"))
        rules = IntakeRules(
            SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, self._max_pending
        )
        telemetry = Telemetry(structlog.wrap_logger(None, processors=[_silence]))
        self._intake = IntakeLoop(self.source, CANONICAL, rules, LoopContext(self.store, telemetry, lambda: AT))

    def stop(self) -> None:
        """End as after SIGTERM."""
        self.source.close()
        self.store.close()

    def die(self) -> None:
        """End as after kill -9: what is in the files stays, to the byte; nobody rolls back, checkpoints or unlinks."""
        image = {each: each.read_bytes() for each in self._state.iterdir() if each.is_file()}
        self.fate.left = None
        self.stop()  # for the sake of descriptors; whatever it does to the files is undone
        for each, content in image.items():
            each.write_bytes(content)

    def step(self) -> bool:
        """One step of intake, as the daemon's loop makes it: a store that cannot write is asked again later."""
        try:
            return self._intake._step()
        except StoreError:
            return False

    def step_until_killed(self, instants: int) -> None:
        """Work on for so many instants, or until there is nothing to do, and die there."""
        self.fate.left = instants
        with suppress(KilledError):
            while self.step():
                pass
        self.die()

    def fill(self) -> None:
        """No further page fits on the disk."""
        self.full = True
        pages = self.store.engine._writer.execute("PRAGMA page_count").fetchone()[0]
        self.store.engine._writer.execute(f"PRAGMA max_page_count={pages}")

    def free(self) -> None:
        """There is space again."""
        self.full = False
        self.store.engine._writer.execute(f"PRAGMA max_page_count={FREE_PAGES}")

    def judge(self, count: int, *, able: bool = True) -> int:
        """The judge settles some of what waits. Returns how many."""
        draws = self.store.lease(JUDGE, count, now=0.0, seconds=0.0)
        with suppress(StoreError):
            return self.store.settle([a_verdict(draw) if able else an_unjudged(draw) for draw in draws])
        return 0

    def cursors(self) -> list[dict[str, Any]]:
        """Stored places of files."""
        places = [orjson.loads(cursor) for cursor in self.store.cursors("app").values()]
        return [place for place in places if "ino" in place]

    def total(self, tally: Tally, *parts: str) -> int:
        """A tally over all labels, or those that have these parts."""
        found = self.store.tallies().items()
        return int(sum(value for (name, labels), value in found if name is tally and set(parts) <= set(labels)))

    def stored(self) -> list[int]:
        """Numbers of the records of all draws, judged or not."""
        database = f"{(self._state / 'ragwatch.db').as_uri()}?mode=ro"
        with closing(sqlite3.connect(database, uri=True)) as reader:
            return sorted(int(unpack(body)["question"]) for (body,) in reader.execute("SELECT body FROM samples"))


def open_inodes(root: Path) -> set[int]:
    """Inodes of regular files below `root`, unlinked ones included, that this process has open."""
    found = set()
    for each in os.listdir("/proc/self/fd"):  # noqa: PTH208 - a listing of names
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{each}").startswith(f"{root}/"):  # noqa: PTH115
                found.add(os.stat(f"/proc/self/fd/{each}").st_ino)  # noqa: PTH116
    return found
