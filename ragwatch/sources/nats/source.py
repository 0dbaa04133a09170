"""Reads a JetStream stream through a durable pull consumer; acknowledges what the store has.

Order: read, store (records and cursor in one transaction), acknowledge and wait for the server to note it. Whatever
fails in between is delivered again, and recognised by its id. A message that was delivered `max_deliveries` times
without being stored is given up: it is counted, copied if there is a subject for dead letters, and delivered no more.
While there are messages that were delivered twice, one is read at a time, so that no other is given up with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.core.sample import LossReason
from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError
from ragwatch.ports import Batch
from ragwatch.sources.messages import MEASURE_SECONDS, PEEKED, Incidents, Message, StreamPlace, batch_of
from ragwatch.sources.nats.consumer import ConsumerGoneError, ConsumerState, Delivery, JetStreamConsumer, StreamState
from ragwatch.sources.nats.options import Options


@dataclass(frozen=True, slots=True)
class _Reading:
    """A batch that is not committed.

    Attributes:
        good: Messages to acknowledge.
        dead: Messages to give up.
    """

    batch: Batch
    good: Sequence[Delivery]
    dead: Sequence[Delivery]


class NatsSource:
    """See `ports.Source` and the module.

    Args:
        options: What to read.
        monotonic: Seconds, for waiting.
        clock: Seconds since the epoch, for ages.
    """

    recognises_resent = True

    def __init__(
        self,
        options: Options,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = options.name
        self._options = options
        self._monotonic = monotonic
        self._clock = clock
        self._consumer = JetStreamConsumer(options)
        self._cursors: Mapping[str, str] = {}
        self._place: StreamPlace | None = None
        self._identity = ""
        self._floor: int | None = None
        self._incidents = Incidents()
        self._reading: _Reading | None = None
        self._read_at = 0.0
        self._unacknowledged: list[_Reading] = []
        self._state: ConsumerState | None = None
        self._oldest_at: float | None = None
        self._measure_at = float("-inf")

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Remember where to continue if the server has lost the consumer."""
        for number in cursors.values():
            int(number)
        self._cursors = dict(cursors)

    def read(self) -> Batch | None:
        """Return messages that are not stored yet.

        Raises:
            SourceError: The server cannot be reached, or refuses.
        """
        try:
            if self._reading is None:
                self._reading = self._next_or_rejoin()
            elif self._monotonic() - self._read_at > self._options.ack_wait_seconds / 2:
                self._consumer.still_at_work([*self._reading.good, *self._reading.dead])
                self._read_at = self._monotonic()
        except SourceError:
            self._state = None
            raise
        return None if self._reading is None else self._reading.batch

    def commit(self, batch: Batch) -> None:
        """Acknowledge the messages of a batch. If that fails they are acknowledged before the next read.

        Raises:
            SourceError: The server cannot be reached.
        """
        reading = self._reading
        if reading is None or reading.batch is not batch:
            return
        self._reading = None
        self._unacknowledged.append(reading)
        self._acknowledge()

    def lag(self) -> Lag:
        """Messages that are not stored, and the age of the oldest; unknown while the server cannot be reached."""
        state = self._state
        if state is None:
            return Lag(None, None)
        records = state.unread + state.pending
        age = None if self._oldest_at is None else max(0.0, self._clock() - self._oldest_at)
        return Lag(None, age if records else 0.0, records=records)

    def close(self) -> None:
        """Close the connection. What is not acknowledged is delivered again."""
        self._consumer.close()

    def peek(self) -> tuple[str, Batch | None]:
        """See `capabilities.SupportsPeek`."""
        messages = [Message(number, number, data) for number, data in self._consumer.newest(PEEKED)]
        if not messages:
            return f"the stream {self._options.stream} is empty", None
        return f"the stream {self._options.stream} has records", batch_of(self._place_of(""), messages, "0")

    def _place_of(self, identity: str) -> StreamPlace:
        options = self._options
        return StreamPlace(options.name, identity, f"nats stream {options.stream}", "content", options.max_record_bytes)

    def _next_or_rejoin(self) -> _Reading | None:
        """Read; once more if the server has lost the consumer."""
        self._acknowledge()
        self._consumer.connect()
        try:
            return self._next(self._joined())
        except ConsumerGoneError:
            self._place = None
        try:
            return self._next(self._joined())
        except ConsumerGoneError as error:
            raise SourceError(f"nats stream {self._options.stream}: the consumer is gone again: {error}") from error

    def _next(self, place: StreamPlace) -> _Reading | None:
        state = self._consumer.state()
        self._measure(state)
        small = state.redelivered > 0
        deliveries = self._consumer.fetch(1 if small else self._options.batch_records) if _has_work(state) else []
        if not deliveries and not self._incidents:
            return None
        self._count_trimmed(state, deliveries)
        limit = self._options.max_deliveries
        good = [one for one in deliveries if one.times <= limit]
        dead = [one for one in deliveries if one.times > limit]
        batch = batch_of(
            place,
            [Message(one.sequence, one.sequence, one.data) for one in good],
            str(self._floor or 0),
            dead={one.sequence: one.times - 1 for one in dead},
            incidents=self._incidents.take(),
        )
        self._read_at = self._monotonic()
        return _Reading(batch, good, dead)

    def _joined(self) -> StreamPlace:
        """Where messages come from, after making sure that there is a consumer."""
        if self._place is not None:
            return self._place
        stream = self._consumer.stream()
        identity = f"{self._options.stream}@{stream.created}"  # numbers start over in a stream that is created again
        if identity != self._identity:
            stored = self._cursors.get(identity)
            self._floor = None if stored is None else int(stored)
        try:
            self._floor = max(self._consumer.state().floor, self._floor or 0)
        except ConsumerGoneError:
            self._floor = self._create(stream)
        self._identity, self._place = identity, self._place_of(identity)
        return self._place

    def _create(self, stream: StreamState) -> int:
        """Create the consumer: after what is stored, else where the options say. Returns what it need not read."""
        known = self._floor
        if known is None:
            from_now = self._options.start == "end" and not self._cursors and not self._identity
            self._consumer.create(None if from_now else max(1, stream.first))
            return stream.last if from_now else max(0, stream.first - 1)
        self._incidents.resets["group_recreated"] += 1
        if self._options.subject is None:
            self._incidents.lost[LossReason.TRIMMED] += max(0, stream.first - known - 1)
        first = max(known + 1, stream.first)
        self._consumer.create(first)
        return first - 1

    def _measure(self, state: ConsumerState) -> None:
        """Note how much is unread, and now and then how old the oldest of it is."""
        self._state, self._floor = state, max(state.floor, self._floor or 0)
        now = self._monotonic()
        if now >= self._measure_at:
            self._measure_at = now + MEASURE_SECONDS
            waiting = state.unread or state.pending
            self._oldest_at = self._consumer.stored_at(state.floor + 1) if waiting else None

    def _count_trimmed(self, state: ConsumerState, deliveries: Sequence[Delivery]) -> None:
        """Count messages that the stream removed before they were delivered: gaps between consecutive deliveries."""
        if self._options.subject is not None:  # messages of other subjects are gaps as well
            return
        number, last = state.deliveries, max(state.delivered, state.floor)
        for one in deliveries:
            if one.times == 1:
                if one.delivery == number + 1:
                    self._incidents.lost[LossReason.TRIMMED] += max(0, one.sequence - last - 1)
                last = one.sequence
            number = one.delivery

    def _acknowledge(self) -> None:
        """Acknowledge what is stored."""
        while self._unacknowledged:
            reading = self._unacknowledged[0]
            self._consumer.acknowledge(reading.good, reading.dead)
            self._unacknowledged.pop(0)


def _has_work(state: ConsumerState) -> bool:
    return state.unread > 0 or state.pending > 0


def build(options: Options) -> NatsSource:
    """Build a source from its options.

    Raises:
        ConfigError: The extra is not installed.
    """
    return NatsSource(options)
