"""Stores that several workers share, in one process: who leads, what a leader has written, what each has counted."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ragwatch.errors import NotLeadingError
from ragwatch.statistics.tally import Tallies, verdict_tallies
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.sqlite.store import SqliteStore


class Server:
    """What the workers share."""

    def __init__(self) -> None:
        self.now = 0.0
        self.holder, self.term, self.until = "", 0, 0.0
        self.written: list[str] = []


class SharedStore:
    """One worker's connection to the server."""

    def __init__(self, server: Server, name: str, term: Callable[[], int | None] | None = None) -> None:
        self.server, self.name, self._term = server, name, term

    def lead(self, seconds: float, *, force: bool = False) -> int | None:
        """Lead, unless another one does."""
        server = self.server
        over = server.until <= server.now
        if server.holder != self.name and not over and not force:
            return None
        server.term += server.holder != self.name or over
        server.holder, server.until = self.name, server.now + seconds
        return server.term

    def resign(self, term: int) -> None:
        """End a term."""
        if term == self.server.term:
            self.server.until = 0.0

    def fenced(self, term: Callable[[], int | None]) -> Any:
        """The same, for writes of a leader."""
        return SharedStore(self.server, self.name, term)

    def write(self, what: str) -> None:
        """Write within the term."""
        server = self.server
        if self._term is not None and (self._term() != server.term or server.until <= server.now):
            raise NotLeadingError
        server.written.append(what)

    own_tallies = revise = shared_secret = write  # parts of the protocol that elections do not use


class WorkerStore:
    """One worker's view of a database that several share: a SQLite store, elections, and counters by worker."""

    def __init__(self, store: SqliteStore, server: Server, name: str) -> None:
        self._store, self._elections = store, SharedStore(server, name)
        self._own: Tallies = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def lead(self, seconds: float, *, force: bool = False) -> int | None:
        """Lead, unless another one does."""
        return self._elections.lead(seconds, force=force)

    def resign(self, term: int) -> None:
        """End a term."""
        self._elections.resign(term)

    def fenced(self, term: Callable[[], int | None]) -> Any:
        """The same, which refuses the writes of a leader outside of its term."""
        return FencedStore(self, self._elections.fenced(term))

    def settle(self, verdicts: Sequence[Verdict], *more: Any) -> int:
        """Settle, and count as this worker."""
        for verdict in verdicts:
            self._own.update(verdict_tallies(verdict))
        return self._store.settle(verdicts, *more)

    def own_tallies(self) -> Tallies:
        """What this worker has counted."""
        return Counter(self._own)

    def shared_secret(self, ours: bytes) -> bytes:
        """The only one."""
        return ours

    def revise(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Change a state."""
        revised = change(self._store.recall(name))
        if revised is None:
            return self._store.recall(name)
        self._store.remember(name, revised)
        return revised


class FencedStore:
    """Writes states and runs within a term."""

    def __init__(self, store: WorkerStore, fence: SharedStore) -> None:
        self._store, self._fence = store, fence

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def remember(self, name: str, state: Any) -> None:
        """Save a state."""
        self._fence.write(name)
        self._store.remember(name, state)

    def record_run(self, run: Any, tallies: Tallies, sums: Any = None) -> None:
        """Store a run."""
        self._fence.write(run.kind)
        self._store.record_run(run, tallies, sums)
