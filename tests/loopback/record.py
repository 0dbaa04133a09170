"""The record: what was asked, in order, and how it went. The key itself is never kept, only whether it was right."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

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
