"""Reads a Kafka topic as a member of a consumer group; commits offsets of what the store has.

A batch is consecutive messages of one partition; partitions take turns. Order: read, store (records and cursor in one
transaction), commit the offset after the last one and wait for it. Kafka counts no deliveries, so an attempt is noted
in the metadata of the committed offset, before the first messages of a partition are handed out. From the third
attempt on they are handed out one by one, and after `max_deliveries` attempts the first one is a dead letter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError
from ragwatch.ports import Batch
from ragwatch.sources.kafka.group import GroupMember, Partition, Record, copy_dead_letter, library
from ragwatch.sources.kafka.options import Options
from ragwatch.sources.kafka.peeking import newest
from ragwatch.sources.messages import PEEKED, Incidents, Message, StreamPlace, batch_of

ALONE_FROM = 3
"""Attempts from which on a message is in a batch of its own."""
ALIVE_SECONDS = 5.0
"""Time between two signs of life while nothing can be stored."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A batch that is not committed.

    Attributes:
        next: Offset after it.
        dead: Dead letter in it, and after how many attempts.
        since: When its first message was written, as seconds since the epoch.
    """

    batch: Batch
    partition: int
    next: int
    dead: tuple[Record, int] | None
    since: float | None


class KafkaSource:
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
        library(options)
        self.name = options.name
        self._options = options
        self._monotonic = monotonic
        self._clock = clock
        self._cursors: dict[int, int] = {}
        self._incidents = Incidents()
        self._member: GroupMember | None = None
        self._reading: _Reading | None = None
        self._stored: list[_Reading] = []
        self._turn = -1
        self._alive_at = 0.0
        self._failed = True

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Remember where to continue if the brokers have lost the group."""
        for stream, offset in cursors.items():
            topic, _, partition = stream.rpartition(":")
            if topic == self._options.topic:
                self._cursors[int(partition)] = int(offset)

    def read(self) -> Batch | None:
        """Return messages that are not stored yet.

        Raises:
            SourceError: The brokers cannot be reached, or refuse.
        """
        try:
            self._stay()
            if self._reading is None:
                self._reading = self._next()
        except SourceError:
            self._failed = True
            raise
        self._failed = False
        return None if self._reading is None else self._reading.batch

    def commit(self, batch: Batch) -> None:
        """Commit the offset after a batch. If that fails it is committed before the next read.

        Raises:
            SourceError: The brokers cannot be reached.
        """
        reading, member = self._reading, self._member
        if reading is None or reading.batch is not batch or member is None:
            return
        self._reading = None
        self._cursors[reading.partition] = reading.next
        self._stored.append(reading)
        self._commit(member)

    def _commit(self, member: GroupMember) -> None:
        """Commit the offsets after what is stored, and copy dead letters before."""
        while self._stored:
            reading = self._stored[0]
            if reading.dead is not None and self._options.dead_letters is not None:
                copy_dead_letter(self._options, *reading.dead)
            self._stored.pop(0)
            member.commit(reading.partition, reading.next)

    def lag(self) -> Lag:
        """Messages of the partitions of this worker that are not stored; unknown while no broker can be reached."""
        if self._failed or self._member is None:
            return Lag(None, None)
        try:
            self._stay()
        except SourceError:  # the next read says so
            return Lag(None, None)
        held = 0 if self._reading is None else len(self._reading.batch.lines)
        behind = self._member.unread()
        unread = None if behind is None else behind + held
        oldest = self._reading.since if self._reading is not None else self._oldest()
        age = None if oldest is None else max(0.0, self._clock() - oldest)
        return Lag(None, 0.0 if unread == 0 else age, records=unread)

    def close(self) -> None:
        """Leave the group. What is not committed is read again."""
        if self._member is not None:
            self._member.close()
            self._member = None

    def peek(self) -> tuple[str, Batch | None]:
        """See `capabilities.SupportsPeek`."""
        records = newest(self._options, PEEKED)
        if not records:
            return f"the topic {self._options.topic} is empty", None
        messages = [Message(one.offset, one.offset, one.value) for one in records]
        return f"the topic {self._options.topic} has records", batch_of(
            self._place(records[0].partition), messages, "0"
        )

    def _place(self, partition: int) -> StreamPlace:
        stream = f"{self._options.topic}:{partition}"
        return StreamPlace(self.name, stream, f"kafka {stream}", "content", self._options.max_record_bytes)

    def _stay(self) -> None:
        """Give a sign of life while a batch waits for the store; drop it if its partition was given to another."""
        member = self._member
        if member is None or self._monotonic() - self._alive_at < ALIVE_SECONDS:
            return
        self._alive_at = self._monotonic()
        member.keep_alive()
        if self._reading is not None and self._reading.partition not in member.partitions:
            self._reading = None

    def _next(self) -> _Reading | None:
        if self._member is None:
            self._member = GroupMember(self._options, self._cursors, self._incidents)
        member = self._member
        self._commit(member)
        if not any(one.waiting for one in member.partitions.values()):
            member.poll(self._options.batch_records)
            self._alive_at = self._monotonic()
        ready = sorted(number for number, one in member.partitions.items() if one.waiting)
        if not ready:
            return self._report()
        self._turn = next((number for number in ready if number > self._turn), ready[0])
        return self._hand_out(member, self._turn, member.partitions[self._turn])

    def _report(self) -> _Reading | None:
        """A batch without records, if there is a loss to count."""
        if not self._incidents or self._member is None or not self._member.partitions:
            return None
        number, partition = next(iter(self._member.partitions.items()))
        return self._reading_of(number, [], partition.next, None)

    def _hand_out(self, member: GroupMember, number: int, partition: Partition) -> _Reading:
        """The next messages of a partition: one, if an earlier process has ended over them."""
        if partition.attempts >= self._options.max_deliveries:
            first = partition.waiting.popleft()
            return self._reading_of(number, [], first.offset + 1, (first, partition.attempts))
        if partition.attempts >= ALONE_FROM - 1:
            partition.alone = self._options.batch_records
        alone = partition.alone > 0
        if alone:
            partition.alone -= 1
            partition.attempts, partition.noted = max(partition.attempts, ALONE_FROM - 1), False
        member.note_attempt(number)
        records = [partition.waiting.popleft() for _ in range(1 if alone else len(partition.waiting))]
        return self._reading_of(number, records, records[-1].offset + 1, None)

    def _reading_of(
        self, number: int, records: Sequence[Record], following: int, dead: tuple[Record, int] | None
    ) -> _Reading:
        batch = batch_of(
            self._place(number),
            [Message(one.offset, one.offset, one.value) for one in records],
            str(following),
            dead={} if dead is None else {dead[0].offset: dead[1]},
            incidents=self._incidents.take(),
        )
        return _Reading(batch, number, following, dead, records[0].at if records else None)

    def _oldest(self) -> float | None:
        """When the oldest message that waits was written."""
        partitions = () if self._member is None else self._member.partitions.values()
        return min((one.waiting[0].at for one in partitions if one.waiting and one.waiting[0].at), default=None)


def build(options: Options) -> KafkaSource:
    """Build a source from its options.

    Raises:
        ConfigError: The extra is not installed.
    """
    return KafkaSource(options)
