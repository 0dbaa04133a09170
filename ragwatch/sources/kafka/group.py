"""One member of a Kafka consumer group: its partitions, and what was read of them. Failures become our errors."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragwatch.core.sample import LossReason
from ragwatch.errors import SourceError
from ragwatch.sources.kafka.options import Options
from ragwatch.sources.messages import Incidents, missing_package

QUIET = logging.getLogger("ragwatch.sources.kafka")
"""Takes what librdkafka would print on standard error."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
WAIT_SECONDS = 0.2
_NO_OFFSET = -1001
_LOGIN = "correct username, password, sasl_mechanism and tls, and the rights of the user"


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a partition.

    Attributes:
        at: When it was written, as seconds since the epoch; None if unknown.
    """

    partition: int
    offset: int
    value: bytes
    at: float | None


@dataclass(slots=True)
class Partition:
    """A partition that is assigned to this member.

    Attributes:
        next: Offset of the next message to read.
        stored: Offset up to which messages are stored.
        attempts: How often a process has begun to store the message there.
        noted: Whether that counts the attempt of this process.
        alone: How many messages are to be handed out one by one.
        waiting: Messages that were read and not handed out.
        at_end: Whether all was read that there was.
    """

    next: int
    stored: int
    attempts: int = 0
    noted: bool = False
    alone: int = 0
    waiting: deque[Record] = field(default_factory=deque)
    at_end: bool = False


class GroupMember:
    """Reads messages and commits offsets. Not for several threads.

    Args:
        options: Brokers, topic and group.
        cursors: Offset to begin with, by partition, where the group has none.
        incidents: Where losses and restarts are noted.

    Raises:
        ConfigError: The extra is not installed.
        SourceError: A property is not valid.
    """

    def __init__(self, options: Options, cursors: Mapping[int, int], incidents: Incidents) -> None:
        self._library = library(options)
        self._options = options
        self._cursors = cursors
        self._incidents = incidents
        self._where = f"kafka topic {options.topic} at {options.servers}"
        self._doubt: str | None = "it was never reached"  # why the brokers may be down
        self.partitions: dict[int, Partition] = {}
        self._uncommitted: dict[int, tuple[int, int]] = {}
        self.joined = False
        properties: dict[str, Any] = {**options.group_properties(), **options.client_properties()}
        try:
            self._consumer: Any = self._library.Consumer({**properties, "error_cb": self._note_error}, logger=QUIET)
            self._consumer.subscribe(
                [options.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
        except self._library.KafkaException as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Leave."""
        self._consumer.close()

    def _note_error(self, error: Any) -> None:  # noqa: ANN401 - of the library
        self._doubt = error.str()

    def _error(self, error: Exception) -> SourceError:
        return error_of(self._where, error)

    def _check(self) -> None:
        """Ask a broker for the topic, where there is a doubt that one can be reached.

        Raises:
            SourceError: None can, or there is no such topic.
        """
        if self._doubt is None:
            return
        try:
            metadata = self._consumer.list_topics(self._options.topic, timeout=self._options.timeout_seconds)
        except self._library.KafkaException as error:
            self._consumer.poll(0)  # which tells why
            raise error_of(self._where, error, [self._doubt]) from None
        if (why := metadata.topics[self._options.topic].error) is not None:
            raise self._error(self._library.KafkaException(why))
        self._doubt = None

    def poll(self, count: int) -> None:
        """Read messages of all partitions, and take part in the group.

        Raises:
            SourceError: The brokers cannot be reached, or refuse.
        """
        self._check()
        self._commit_rest()
        end = time.monotonic() + (WAIT_SECONDS if self.joined else self._options.timeout_seconds)
        while not self._take(count) and time.monotonic() < end:
            if self.joined and all(one.at_end for one in self.partitions.values()):
                return

    def keep_alive(self) -> None:
        """Stay in the group while nothing can be stored: read no messages, and take part in its rebalances."""
        paused = self._consumer.assignment()
        try:
            self._consumer.pause(paused)
            self._sort([message] if (message := self._consumer.poll(0)) is not None else [])
            self._consumer.resume([one for one in paused if one.partition in self.partitions])
        except self._library.KafkaException as error:
            raise self._error(error) from None

    def _take(self, count: int) -> bool:
        at_end = self.joined and all(one.at_end for one in self.partitions.values())
        return self._sort(self._consumer.consume(count, 0.01 if at_end else 0.05))

    def _sort(self, messages: Sequence[Any]) -> bool:
        """Sort messages into their partitions. True if there are any."""
        codes = self._library.KafkaError
        some = False
        for message in messages:
            error, partition = message.error(), self.partitions.get(message.partition())
            if error is not None and error.code() == codes._PARTITION_EOF:  # noqa: SLF001 - a constant with such a name
                if partition is not None:
                    partition.at_end = True
                continue
            if error is not None:
                self._doubt = error.str()
                raise self._error(self._library.KafkaException(error))
            if partition is None:
                continue
            some, partition.at_end = True, False
            if message.offset() > partition.next:
                self._count_lost(message.partition(), partition.next, message.offset())
            partition.next = message.offset() + 1
            kind, at = message.timestamp()
            partition.waiting.append(
                Record(message.partition(), message.offset(), message.value() or b"", at / 1000 if kind else None)
            )
        return some

    def _count_lost(self, partition: int, expected: int, arrived: int) -> None:
        """Count messages that the broker has removed. Offsets of transactions and compaction are no messages."""
        low, _ = self._consumer.get_watermark_offsets(self._part(partition), timeout=self._options.timeout_seconds)
        self._incidents.lost[LossReason.TRIMMED] += max(0, min(low, arrived) - expected)

    def _part(self, partition: int, offset: int = _NO_OFFSET, attempts: int = 0) -> Any:  # noqa: ANN401 - of the library
        metadata = json.dumps({"attempts": attempts}) if attempts else ""
        if offset == _NO_OFFSET:
            return self._library.TopicPartition(self._options.topic, partition)
        return self._library.TopicPartition(self._options.topic, partition, offset, metadata)

    def note_attempt(self, number: int) -> None:
        """Note in the committed offset that the next message is about to be stored.

        Raises:
            SourceError: The brokers cannot be reached.
        """
        partition = self.partitions[number]
        if not partition.noted:
            self._uncommitted[number] = (partition.stored, partition.attempts + 1)
            self._commit_rest()
            partition.noted = True

    def commit(self, number: int, offset: int) -> None:
        """Commit the offset of the next message to store, and wait for it.

        Raises:
            SourceError: The brokers cannot be reached; it is committed before the next read.
        """
        partition = self.partitions.get(number)
        if partition is not None:
            partition.stored, partition.attempts = offset, 0
            self._uncommitted[number] = (offset, 0)
            self._commit_rest()

    def _commit_rest(self) -> None:
        if not self._uncommitted:
            return
        parts = [self._part(partition, *place) for partition, place in self._uncommitted.items()]
        codes = self._library.KafkaError
        moved = {
            codes.ILLEGAL_GENERATION,
            codes.UNKNOWN_MEMBER_ID,
            codes.REBALANCE_IN_PROGRESS,
            codes.FENCED_INSTANCE_ID,
        }
        try:
            self._consumer.commit(offsets=parts, asynchronous=False)
        except self._library.KafkaException as error:
            if error.args[0].code() not in moved:
                self._doubt = error.args[0].str()
                raise self._error(error) from None
        self._uncommitted.clear()  # where the partition has moved, its new owner reads the messages again

    def _assigned(self, consumer: Any, parts: Sequence[Any]) -> None:  # noqa: ANN401 - of the library
        """Begin where the group has committed, else where the store is, else where the options say."""
        limit = self._options.timeout_seconds
        committed = consumer.committed(list(parts), timeout=limit) if parts else []
        for one in committed:
            low, high = consumer.get_watermark_offsets(self._part(one.partition), timeout=limit)
            known = one.offset if one.offset >= 0 else self._cursors.get(one.partition)
            if one.offset < 0 and known is not None:
                self._incidents.resets["group_recreated"] += 1
            if known is None:
                known = low if self._options.start == "beginning" else high
            elif known < low:
                self._incidents.lost[LossReason.TRIMMED] += low - known
            offset = min(max(known, low), high)
            attempts = _attempts(one.metadata) if offset == one.offset else 0
            self.partitions[one.partition] = Partition(offset, offset, attempts)
        consumer.incremental_assign([self._part(one.partition, self.partitions[one.partition].next) for one in parts])
        self.joined = True

    def _revoked(self, consumer: Any, parts: Sequence[Any]) -> None:  # noqa: ANN401 - of the library
        """Commit what is stored, and forget what was read. An attempt that ends in this way does not count."""
        for number in {one.partition for one in parts}.intersection(self.partitions):
            partition = self.partitions[number]
            if partition.noted and number not in self._uncommitted:
                self._uncommitted[number] = (partition.stored, partition.attempts)
        try:
            self._commit_rest()
        except SourceError:
            self._uncommitted.clear()
        self._lost(consumer, parts)

    def _lost(self, consumer: Any, parts: Sequence[Any]) -> None:  # noqa: ANN401 - of the library
        """Forget partitions that another member has by now."""
        for one in parts:
            self.partitions.pop(one.partition, None)
            self._uncommitted.pop(one.partition, None)
        consumer.incremental_unassign(list(parts))

    def unread(self) -> int | None:
        """How many messages of the assigned partitions are not handed out; None while that is unknown."""
        total = 0
        for number, one in self.partitions.items():
            _, high = self._consumer.get_watermark_offsets(self._part(number), cached=True)
            if high < 0 and not one.at_end:
                return None
            total += len(one.waiting) + max(0, high - one.next)
        return total


def library(options: Options) -> Any:  # noqa: ANN401 - a module
    """The client library.

    Raises:
        ConfigError: The extra is not installed.
    """
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra
    except ImportError:
        raise missing_package(options.name, "kafka", "confluent-kafka", "kafka") from None
    return confluent_kafka


def copy_dead_letter(options: Options, record: Record, times: int) -> None:
    """Write a message to the topic of dead letters, and wait until a broker has it.

    Raises:
        SourceError: No broker takes it.
    """
    kafka = library(options)
    failures: list[Any] = []
    headers = [
        ("ragwatch-reason", f"delivered {times} times and never stored"),
        ("ragwatch-topic", options.topic),
        ("ragwatch-partition", str(record.partition)),
        ("ragwatch-offset", str(record.offset)),
    ]
    producer = kafka.Producer({**options.client_properties(), "acks": "all"}, logger=QUIET)
    producer.produce(
        options.dead_letters,
        record.value,
        headers=headers,
        on_delivery=lambda error, _: None if error is None else failures.append(error),
    )
    if producer.flush(options.timeout_seconds) or failures:
        why = failures[0].str() if failures else "no broker has confirmed it in time"
        raise SourceError(
            f"kafka topic {options.dead_letters}: takes no dead letters ({why}); create it, or correct it"
        )


def error_of(where: str, error: Exception, doubts: Sequence[str] = ()) -> SourceError:
    """The error that stands for one of the library, with what it has said before."""
    cause = error.args[0] if error.args else error
    text = "; ".join([*doubts[-1:], cause.str() if hasattr(cause, "str") else str(cause)])
    return SourceError(f"{where}: {_reason(cause.name() if hasattr(cause, 'name') else '', text)}")


def _attempts(metadata: str | None) -> int:
    """How often a process began to store the committed message, by the metadata of the offset."""
    try:
        attempts = json.loads(metadata or "{}").get("attempts", 0)
    except (ValueError, AttributeError):  # somebody else has committed
        return 0
    return attempts if isinstance(attempts, int) else 0


def _reason(code: str, text: str) -> str:
    """What went wrong and what to do, as text for people."""
    lower = f"{code} {text}".lower()
    reasons = (
        (("unknown_topic", "unknown topic"), "there is no such topic; create it, or correct topic"),
        (("sasl", "authentication", "authorization"), f"the broker refuses the login ({text}); {_LOGIN}"),
        (("fenced",), "another worker has the same name in the group; set consumer to a name of its own"),
    )
    matching = (why for words, why in reasons if any(word in lower for word in words))
    return next(matching, f"the brokers cannot be reached ({text}); start them, or correct servers")
