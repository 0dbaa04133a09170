"""Reads records of a message broker; acknowledges what the store has.

Order: fetch, store (records and cursor in one transaction), acknowledge and wait for the broker to note it. Whatever
fails in between is delivered again, and recognised by its id. A record that was delivered `max_deliveries` times
without being stored is given up: it is counted and copied as a dead letter.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ragwatch.errors import SourceError
from ragwatch.model.sample import LossReason, RejectReason
from ragwatch.ports import Batch, Rejection
from ragwatch.sources.brokers import BrokerOptions
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally

MEASURE_SECONDS = 1.0
"""Time between two questions to a broker about how much is unread."""
PEEKED = 100
"""Records that `ragwatch check` reads."""
Chosen = TypeVar("Chosen", bound=BrokerOptions)


class GoneError(Exception):
    """The consumer group does not exist: a failover has lost it, or it was never created."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record as the broker delivered it."""

    offset: int  # its position, the same in each delivery; part of the fallback id of a record without one
    number: int  # how people find it: see the kind
    value: bytes | None  # the record; None if the message has none
    before: int = 0  # how often it was delivered before, and not stored
    handle: Any = None
    at: float | None = None  # when it was written, as seconds since the epoch; None if unknown

    @property
    def why(self) -> str:
        """Why it is a dead letter."""
        return f"delivered {self.before} times and never stored"


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of one stream."""

    stream: str
    name: str
    cursor: str
    deliveries: Sequence[Delivery]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a source is, and what happened to its streams since the last batch."""

    cursors: dict[str, str] = field(default_factory=dict)  # what is stored, by stream
    lost: Counter[LossReason] = field(default_factory=Counter)  # records that will never be read, by reason
    resets: Counter[str] = field(default_factory=Counter)  # restarts of the consumer group, by reason


class Client(Protocol):
    """A client of a broker, for one consumer of a group. Every method raises SourceError when the broker fails."""

    what: str  # what it reads, as text for people
    value: str = "content"  # where a message has its record, as text for people
    extend_seconds: float = math.inf  # time after which the broker is asked to wait longer for what is not stored yet
    joined: bool = False  # whether the group is known to exist
    # how many records are not stored, and when the oldest was written: inf if there is none; see `measure`
    unread: tuple[int | None, float | None] = None, None

    def check_cursor(self, cursor: str) -> None:
        """Raise ValueError if a stored cursor is not valid; most are numbers."""
        int(cursor)

    def join(self) -> None:
        """Connect, and create the group where it does not exist: after what is stored, else where the options say."""

    def measure(self) -> None:
        """Ask how much is unread, and whether some of it was removed."""

    def fetch(self) -> Fetched | None:
        """Return records that no consumer has stored, None if there is no stream to read. Raises GoneError."""

    def acknowledge(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:
        """Copy dead letters, and acknowledge all."""

    def extend(self, deliveries: Sequence[Delivery]) -> bool:  # noqa: ARG002 - for those that have to ask
        """Keep what is not stored yet for this consumer. False if another one has it by now."""
        return True

    def newest(self, count: int) -> Fetched | None:
        """Return the newest records without reading them as a consumer; None if there is no such stream."""

    def close(self) -> None:
        """Close connections. What is not acknowledged is delivered again."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A batch that is not acknowledged."""

    batch: Batch
    fetched: Fetched
    good: Sequence[Delivery]
    dead: Sequence[Delivery]


class BrokerSource:
    """See `ports.Source` and the module.

    Args:
        monotonic: Seconds, for waiting.
        clock: Seconds since the epoch, for ages.
    """

    recognises_resent = True

    def __init__(
        self,
        options: Chosen,
        client: Callable[[Chosen, Progress], Client],
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = options.name
        self._options: BrokerOptions = options
        self._monotonic = monotonic
        self._clock = clock
        self._progress = Progress()
        self._client = client(options, self._progress)
        self._reading: _Reading | None = None
        self._unacknowledged: list[_Reading] = []
        self._extended_at = 0.0
        self._measure_at = -math.inf
        self._failed = True
        self._measured = False
        self._idle = False

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Remember where to continue if the broker has lost the group."""
        for cursor in cursors.values():
            self._client.check_cursor(cursor)
        self._progress.cursors.update(cursors)

    def read(self) -> Batch | None:
        """Return records that are not stored yet. Raises SourceError: the broker cannot be reached, or refuses."""
        try:
            self._extend()
            if self._reading is None:
                self._reading = self._next_or_rejoin()
        except SourceError:
            self._failed, self._measure_at = True, -math.inf
            raise
        self._failed = False
        return None if self._reading is None else self._reading.batch

    def commit(self, batch: Batch) -> None:
        """Acknowledge the records of a batch; if that fails, before the next read. Raises SourceError: it failed."""
        reading = self._reading
        if reading is None or reading.batch is not batch:
            return
        self._reading = None
        self._progress.cursors[batch.stream] = batch.cursor
        self._unacknowledged.append(reading)
        self._acknowledge()

    def lag(self) -> Lag:
        """Records that are not stored, and the age of the oldest; unknown while the broker cannot be reached."""
        if self._failed:
            return Lag(None, None)
        try:
            self._extend()
            self._measure()  # also while nothing is read, because too much waits to be judged
        except (SourceError, GoneError):  # the next read says so
            return Lag(None, None)
        records, oldest = self._client.unread if self._measured else (None, None)
        return Lag(None, None if oldest is None else max(0.0, self._clock() - oldest), records=records)

    def close(self) -> None:
        """Close connections. What is not acknowledged is delivered again."""
        self._client.close()

    def peek(self) -> tuple[str, Batch | None]:
        """See `capabilities.SupportsPeek`."""
        what, fetched = self._client.what, self._client.newest(PEEKED)
        if fetched is None:
            return f"the {what} does not exist; ragwatch creates it at its start", None
        if not fetched.deliveries:
            return f"the {what} is empty", None
        return f"the {what} has records", self._batch(fetched, fetched.deliveries, ())

    def _extend(self) -> None:
        """Keep a batch that waits for the store; drop it if another consumer has it by now."""
        now, held = self._monotonic(), self._reading
        if now - self._extended_at >= self._client.extend_seconds:
            self._extended_at = now
            if not self._client.extend([] if held is None else held.fetched.deliveries):
                self._reading = None

    def _measure(self) -> None:
        if (now := self._monotonic()) >= self._measure_at:
            self._measure_at, self._measured = now + MEASURE_SECONDS, False
            self._client.measure()
            self._measured = True

    def _next_or_rejoin(self) -> _Reading | None:
        """Read; once more if the broker has lost the group."""
        for _ in range(2):
            try:
                return self._next()
            except GoneError:
                self._client.joined = False
        raise SourceError(f"{self._client.what}: the consumer group was deleted twice in a row")

    def _next(self) -> _Reading | None:
        self._acknowledge()
        self._client.join()
        self._measure()
        fetched = self._client.fetch()
        self._extended_at = self._monotonic()
        happened = any(self._progress.lost.values()) or any(self._progress.resets.values())
        if fetched is None or not (fetched.deliveries or happened):
            if not self._idle:  # nothing is left to read: say so at once
                self._client.measure()
            self._idle = True
            return None
        self._idle = False
        limit = self._options.max_deliveries
        good = [one for one in fetched.deliveries if one.before < limit]
        dead = [one for one in fetched.deliveries if one.before >= limit]
        return _Reading(self._batch(fetched, good, dead), fetched, good, dead)

    def _acknowledge(self) -> None:
        """Acknowledge what is stored."""
        while self._unacknowledged:
            one = self._unacknowledged[0]
            self._client.acknowledge(one.fetched, one.good, one.dead)
            self._unacknowledged.pop(0)

    def _batch(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> Batch:
        lines: list[bytes] = []
        read: list[Delivery] = []
        rejections = [
            Rejection(RejectReason.UNDELIVERABLE, fetched.name, one.number, "", f"was {one.why}") for one in dead
        ]
        for one in good:
            if not one.value:
                why, detail = RejectReason.MISSING_FIELD, f"has no {self._client.value}"
            elif len(one.value) > self._options.max_record_bytes:
                why, detail = RejectReason.LINE_TOO_LONG, f"has {len(one.value)} bytes, more than max_record_bytes"
            else:
                lines.append(one.value)
                read.append(one)
                continue
            rejections.append(Rejection(why, fetched.name, one.number, "", detail))
        lost, resets = self._progress.lost, self._progress.resets
        batch = Batch(
            stream=fetched.stream,
            file=fetched.name,
            lines=lines,
            offsets=[one.offset for one in read],
            numbers=[one.number for one in read],
            cursor=fetched.cursor,
            rejections=rejections,
            resets=dict(resets),
            tallies=Counter({(Tally.LOST, (self.name, str(why))): times for why, times in lost.items() if times}),
        )
        lost.clear()
        resets.clear()
        return batch
