"""The world of a run: its script, its clocks, its batches, and the record of what was asked and how it went.

A new script makes a new one. The key itself is never kept, only whether it was right.
"""

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from loopback.faults import Control, Script
from loopback.tokens import PromptCache
from loopback.wire import Reply

_HEADERS = frozenset({
    "anthropic-version", "anthropic-beta", "content-type", "user-agent", "idempotency-key",
    "x-stainless-retry-count", "x-stainless-timeout",
})  # fmt: skip
_KEPT = 20_000


@dataclass(slots=True)
class Entry:
    """One request."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    authorized: bool  # whether it brought the right key
    body: Any
    started: float  # seconds since the server began
    seconds: float | None = None  # how long it took; None while it runs
    status: int | None = None  # HTTP status; None while it runs, and where the connection was broken off
    fault: str | None = None  # what the script did to it
    note: str | None = None  # why the model did not understand what it was shown


@dataclass(slots=True)
class Record:
    """All requests since the last `/control`, `/record` and the like left out."""

    entries: deque[Entry] = field(default_factory=lambda: deque(maxlen=_KEPT))
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    usage: Counter[str] = field(default_factory=Counter)
    batch_usage: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    peak_in_flight: int = 0

    def open(
        self, method: str, path: str, headers: Mapping[str, str], *, authorized: bool, body: Any, at: float
    ) -> Entry:
        """A request has come."""
        kept = {name: value for name, value in headers.items() if name in _HEADERS}
        entry = Entry(self.counts.total(), method, path, kept, authorized, body, at)
        self.entries.append(entry)
        self.counts[f"{method} {path}"] += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        return entry

    def close(self, entry: Entry, reply: Reply | None, at: float) -> None:
        """It was answered, or broken off."""
        self.in_flight -= 1
        entry.seconds = at - entry.started
        entry.status = reply.status if reply else None
        if entry.fault:
            self.faults[entry.fault] += 1
        if reply:
            (self.batch_usage if reply.batch else self.usage).update(reply.usage)

    def shown(self, *, bodies: bool = True) -> dict[str, Any]:
        """The record as JSON."""
        rows = [asdict(entry) for entry in self.entries]
        for row in rows if not bodies else ():
            del row["body"]
        return {
            "requests": rows,
            "counts": dict(self.counts),
            "faults": dict(self.faults),
            "usage": dict(self.usage),
            "batch_usage": dict(self.batch_usage),
            "in_flight": self.in_flight,
            "peak_in_flight": self.peak_in_flight,
        }


PATH = "/v1/messages/batches"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


@dataclass(slots=True)
class Batch:
    """One batch. `results` are known once it has ended."""

    id: str
    requests: list[dict[str, Any]]
    created: float
    looks: int = 0
    ended: float | None = None
    results: list[dict[str, Any]] | None = None

    def shown(self, address: str) -> dict[str, Any]:
        """The batch as the API shows it."""
        counts = Counter(each["result"]["type"] for each in self.results or ())
        if self.results is None:
            counts["processing"] = len(self.requests)
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "in_progress" if self.ended is None else "ended",
            "request_counts": {name: counts[name] for name in _COUNTS},
            "created_at": rfc3339(self.created),
            "expires_at": rfc3339(self.created + timedelta(days=1).total_seconds()),
            "ended_at": None if self.ended is None else rfc3339(self.ended),
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{address}{PATH}/{self.id}/results" if self.ended is not None else None,
        }


def rfc3339(at: float) -> str:
    """A time as both APIs write it."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


class World:
    """Everything that one run remembers.

    Args:
        control: Its script.
        clock: Seconds, for latency, caches and limits.
    """

    def __init__(self, control: Control, clock: Callable[[], float] = time.monotonic) -> None:
        self.control = control
        self.clock = clock
        self.script = Script(control.faults, control.seed)
        self.record = Record()
        self.cache = PromptCache(clock)
        self.batches: dict[str, Batch] = {}
        self.began = clock()
        self._made = 0
        self._waits = random.Random(f"{control.seed}/latency")

    def change(self, control: Control) -> None:
        """Go on with another script: what was asked, batches and caches stay."""
        self.control = control
        self.script = Script(control.faults, control.seed)

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def since(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.began

    def new_id(self, kind: str) -> str:
        """A name nobody has."""
        self._made += 1
        return f"{kind}_{self._made:08d}"

    def wait(self, path: str) -> float:
        """Seconds that the next call of this path takes."""
        latency = self.control.embedding_latency if path == "/v1/embeddings" else self.control.latency
        return latency.draw(self._waits)
