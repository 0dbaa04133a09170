"""Source kind `kafka`: reads a Kafka topic as a member of a consumer group; commits offsets of what the store has.

A batch is consecutive messages of one partition; partitions take turns. Kafka counts no deliveries, so an attempt is
noted in the metadata of the committed offset, before the first messages of a partition are handed out. From the third
attempt on they are handed out one by one, and after `max_deliveries` attempts the first one is a dead letter.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, SecretStr

from ragwatch.errors import SourceError
from ragwatch.model.sample import LossReason
from ragwatch.sources.brokers import ALONE_FROM, Address, BrokerOptions, needed, reason
from ragwatch.sources.brokers.consumer import BrokerSource, Client, Delivery, Fetched, Progress

if TYPE_CHECKING:  # an extra
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
    from confluent_kafka.admin._metadata import TopicMetadata

QUIET = logging.getLogger("ragwatch.sources.kafka")  # takes what librdkafka would print on standard error
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
WAIT_SECONDS = 0.2
ALIVE_SECONDS = 5.0
"""Time between two signs of life while nothing can be stored."""
_TOPIC = r"^[A-Za-z0-9._-]{1,249}$"
_MOVED = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID")
_LOGIN = "correct username, password, sasl_mechanism and tls, and the rights of the user"
_REASONS = (
    (("unknown_topic", "unknown topic"), "there is no such topic; create it, or correct topic"),
    (("sasl", "authentication", "authorization"), f"the broker refuses the login ({{}}); {_LOGIN}"),
    (("fenced",), "another worker has the same name in the group; set consumer to a name of its own"),
)


class Options(BrokerOptions):
    """Options of a source of kind `kafka`."""

    servers: Address = Field("127.0.0.1:9092", description="Addresses of some brokers, separated by commas.")
    tls: bool = Field(default=False, description="Encrypt connections.")
    ca_file: Path | None = Field(None, description="Certificates of authorities to trust.")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="How username and password are sent."
    )
    username: str | None = Field(None, description="User.")
    password: SecretStr | None = Field(None, description="Password.")
    topic: str = Field(pattern=_TOPIC, description="Topic, which has to exist.")
    group: str = Field("ragwatch", min_length=1, description="Consumer group, which workers share.")
    consumer: str | None = Field(
        None, min_length=1, description="Static member of the group, another for each worker; null for the machine's."
    )
    dead_letters: str | None = Field(
        None, pattern=_TOPIC, description="Topic for dead letters; null leaves them in their topic only."
    )
    properties: dict[str, SecretStr] = Field(
        {}, description="Further properties of librdkafka, such as ssl.key.location."
    )

    def client_properties(self) -> dict[str, str]:
        """How the client connects, in the terms of librdkafka."""
        known = {"bootstrap.servers": self.servers, "client.id": f"ragwatch-{self.name}"}
        if self.ca_file is not None:
            known["ssl.ca.location"] = str(self.ca_file)
        if self.username is not None and self.password is not None:
            known |= {"sasl.mechanism": self.sasl_mechanism, "sasl.username": self.username}
            known["sasl.password"] = self.password.get_secret_value()
        transport = "ssl" if self.tls else "plaintext"
        known["security.protocol"] = f"sasl_{transport}" if self.username is not None else transport
        return known | {name: value.get_secret_value() for name, value in self.properties.items()}


@dataclass(slots=True)
class Partition:
    """A partition that is assigned to this member."""

    next: int  # offset of the next message to read
    stored: int  # offset up to which messages are stored
    attempts: int = 0  # how often a process has begun to store the message there
    noted: bool = False  # whether that counts the attempt of this process
    alone: int = 0  # how many messages are to be handed out one by one
    # messages that were read and not handed out; their handle is the number of the partition
    waiting: deque[Delivery] = field(default_factory=deque)
    at_end: bool = False  # whether all was read that there was


class KafkaClient(Client):
    """One member of a group: its partitions, and what was read of them. See `consumer.Client`."""

    extend_seconds = 0.0  # what librdkafka needs to hear, and when, is decided here

    def __init__(self, options: Options, progress: Progress) -> None:
        with needed(options.name, "kafka", "confluent-kafka", "kafka"):
            import confluent_kafka  # noqa: PLC0415 - an extra
        self._kafka = confluent_kafka
        self._options, self._progress = options, progress
        self.what = f"topic {options.topic}"
        self._doubt: str | None = "it was never reached"  # why the brokers may be down
        self.partitions: dict[int, Partition] = {}
        self._uncommitted: dict[int, tuple[int, int]] = {}
        self._held: Sequence[Delivery] = ()
        self._copied: Delivery | None = None  # the last dead letter, for a commit that has to be repeated
        self._consumer: Consumer | None = None
        self._turn, self._polled_at = -1, 0.0

    def join(self) -> None:
        """Join the group; the first polls take part in it."""
        if self._consumer is not None:
            return
        group = {
            "group.id": self._options.group,
            "group.instance.id": self._options.consumer or socket.gethostname(),
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": "true",
            "partition.assignment.strategy": "cooperative-sticky",
        }
        self._consumer, topics = self._new_consumer(group), [self._options.topic]
        self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _new_consumer(self, more: dict[str, str]) -> Consumer:
        properties = {"group.id": self._options.group, "enable.auto.commit": "false", **more}
        properties |= self._options.client_properties()

        def note(error: KafkaError) -> None:
            self._doubt = error.str()

        with self._explained():
            return self._kafka.Consumer({**properties, "error_cb": note}, logger=QUIET)

    def close(self) -> None:
        """Leave the group."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    @property
    def _member(self) -> Consumer:
        if self._consumer is None:
            raise ValueError("has not joined the group")
        return self._consumer

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._kafka.KafkaException as error:
            raise self._error(error) from None

    def _error(self, error: Exception, doubt: str | None = None) -> SourceError:
        """The error that stands for one of the library, with what it has said before."""
        cause, otherwise = error.args[0], "the brokers cannot be reached ({}); start them, or correct servers"
        why = reason("; ".join(filter(None, (doubt, cause.str()))), _REASONS, otherwise, cause.name())
        return SourceError(f"kafka {self.what} at {self._options.servers}: {why}")

    def fetch(self) -> Fetched | None:
        """The next messages of the partition whose turn it is: one, if an earlier process has ended over them."""
        if not any(one.waiting for one in self.partitions.values()):
            self._poll(self._options.batch_records)
        ready = sorted(number for number, one in self.partitions.items() if one.waiting)
        if not ready:
            some = next(iter(self.partitions.items()), None)
            return None if some is None else self._fetched(some[0], (), some[1].next)
        number = self._turn = next((number for number in ready if number > self._turn), ready[0])
        partition, count = self.partitions[number], 1
        before_alone = min(ALONE_FROM, self._options.max_deliveries) - 1
        if partition.attempts >= self._options.max_deliveries:
            self._held = [replace(partition.waiting.popleft(), before=partition.attempts)]
        else:
            if partition.attempts >= before_alone:
                partition.alone = self._options.batch_records
            if partition.alone:
                partition.alone -= 1
                partition.attempts, partition.noted = max(partition.attempts, before_alone), False
            else:
                count = len(partition.waiting)
            if not partition.noted:
                self._uncommitted[number] = (partition.stored, partition.attempts + 1)
                self._commit_rest()
                partition.noted = True
            self._held = [partition.waiting.popleft() for _ in range(count)]
        return self._fetched(number, self._held, self._held[-1].offset + 1)

    def _fetched(self, number: int, deliveries: Sequence[Delivery], following: int) -> Fetched:
        return Fetched(stream := f"{self._options.topic}:{number}", f"kafka {stream}", str(following), deliveries)

    def _poll(self, count: int) -> None:
        """Read messages of all partitions, and take part in the group."""
        if self._doubt is not None:
            self._topic(self._member)
            self._doubt = None
        self._commit_rest()
        end = time.monotonic() + (WAIT_SECONDS if self.joined else self._options.timeout_seconds)
        while not self._sort(self._member.consume(count, 0.01 if self._at_end() else 0.05)):
            if self._at_end() or time.monotonic() >= end:
                break
        self._polled_at = time.monotonic()

    def _at_end(self) -> bool:
        return self.joined and all(one.at_end for one in self.partitions.values())

    def _topic(self, consumer: Consumer) -> TopicMetadata:
        """What a broker says of the topic."""
        name = self._options.topic
        try:
            topic: TopicMetadata = consumer.list_topics(name, timeout=self._options.timeout_seconds).topics[name]
        except self._kafka.KafkaException as error:
            consumer.poll(0)  # which tells why
            raise self._error(error, self._doubt) from None
        if topic.error is not None:
            raise self._error(self._kafka.KafkaException(topic.error))
        return topic

    def _sort(self, messages: Sequence[Message]) -> bool:
        """Sort messages into their partitions. True if there are any."""
        some = False
        for message in messages:
            error, delivery = message.error(), _delivery(message)
            partition = self.partitions.get(delivery.handle)
            if error is not None and error.name() == "_PARTITION_EOF":
                if partition is not None:
                    partition.at_end = True
                continue
            if error is not None:
                self._doubt = error.str()
                raise self._error(self._kafka.KafkaException(error))
            if partition is None:
                continue
            some, partition.at_end = True, False
            if delivery.offset > partition.next:  # removed messages; offsets of transactions and compaction are none
                low, _ = self._offsets(self._member, delivery.handle)
                self._progress.lost[LossReason.TRIMMED] += max(0, min(low, delivery.offset) - partition.next)
            partition.next = delivery.offset + 1
            partition.waiting.append(delivery)
        return some

    def _offsets(self, consumer: Consumer, number: int) -> tuple[int, int]:
        """The first offset of a partition, and the one after the last."""
        with self._explained():
            low, high = consumer.get_watermark_offsets(self._part(number), timeout=self._options.timeout_seconds)
        return low, high

    def _part(self, number: int, offset: int = 0, metadata: str = "") -> TopicPartition:
        return self._kafka.TopicPartition(self._options.topic, number, offset, metadata)

    def extend(self, deliveries: Sequence[Delivery]) -> bool:
        """Stay in the group while nothing can be stored: read no messages, and take part in its rebalances."""
        if self._consumer is not None and time.monotonic() - self._polled_at >= ALIVE_SECONDS:
            self._polled_at = time.monotonic()
            paused = self._consumer.assignment()
            with self._explained():
                self._consumer.pause(paused)
                self._sort([message] if (message := self._consumer.poll(0)) is not None else [])
                self._consumer.resume([one for one in paused if one.partition in self.partitions])
        ours = all(one.handle in self.partitions for one in deliveries[:1])
        self._held = self._held if ours else ()
        return ours

    def acknowledge(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Commit the offset of the next message to store, and wait for it."""
        self._held = ()
        for letter in dead:
            if self._options.dead_letters is not None and letter is not self._copied:
                self._copy(letter, self._options.dead_letters)
            self._copied = letter
        number, offset = int(fetched.stream.rpartition(":")[2]), int(fetched.cursor)
        if (partition := self.partitions.get(number)) is not None:
            partition.stored, partition.attempts = offset, 0
            self._uncommitted[number] = (offset, 0)
            self._commit_rest()

    def _copy(self, letter: Delivery, topic: str) -> None:
        """Write a message to the topic of dead letters, and wait until a broker has it."""
        outcomes: list[KafkaError | None] = []
        headers: dict[str, str | bytes | None] = {"ragwatch-reason": letter.why, "ragwatch-topic": self._options.topic}
        headers |= {"ragwatch-partition": str(letter.handle), "ragwatch-offset": str(letter.offset)}
        producer = self._kafka.Producer({**self._options.client_properties(), "acks": "all"}, logger=QUIET)
        producer.produce(topic, letter.value, headers=headers, on_delivery=lambda error, _: outcomes.append(error))
        if producer.flush(self._options.timeout_seconds) or any(outcomes):
            why = next((error.str() for error in outcomes if error), "no broker has confirmed it in time")
            raise SourceError(f"kafka topic {topic}: takes no dead letters ({why}); create it, or correct it")

    def _commit_rest(self) -> None:
        if not self._uncommitted:
            return
        parts = [
            self._part(number, offset, json.dumps({"attempts": attempts}) if attempts else "")
            for number, (offset, attempts) in self._uncommitted.items()
        ]
        try:
            self._member.commit(offsets=parts, asynchronous=False)
        except self._kafka.KafkaException as error:
            if error.args[0].name() not in _MOVED:
                self._doubt = error.args[0].str()
                raise self._error(error) from None
        self._uncommitted.clear()  # where the partition has moved, its new owner reads the messages again

    def _assigned(self, consumer: Consumer, parts: Sequence[TopicPartition]) -> None:
        """Begin where the group has committed, else where the store is, else where the options say."""
        committed = consumer.committed(list(parts), timeout=self._options.timeout_seconds) if parts else []
        for one in committed:
            low, high = self._offsets(consumer, one.partition)
            stored = self._progress.cursors.get(f"{self._options.topic}:{one.partition}")
            known = one.offset if one.offset >= 0 else None if stored is None else int(stored)
            if one.offset < 0 and known is not None:
                self._progress.resets["group_recreated"] += 1
            if known is None:
                known = low if self._options.start == "beginning" else high
            elif known < low:
                self._progress.lost[LossReason.TRIMMED] += low - known
            offset = min(max(known, low), high)
            attempts = _attempts(one.metadata) if offset == one.offset else 0
            self.partitions[one.partition] = Partition(offset, offset, attempts)
            if one.offset < 0:  # the next process begins there, whether this one stores anything or not
                self._uncommitted[one.partition] = (offset, 0)
        consumer.incremental_assign([self._part(one.partition, self.partitions[one.partition].next) for one in parts])
        self.joined = True

    def _revoked(self, consumer: Consumer, parts: Sequence[TopicPartition]) -> None:
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

    def _lost(self, consumer: Consumer, parts: Sequence[TopicPartition]) -> None:
        """Forget partitions that another member has by now."""
        for one in parts:
            self.partitions.pop(one.partition, None)
            self._uncommitted.pop(one.partition, None)
        consumer.incremental_unassign(list(parts))

    @property
    def unread(self) -> tuple[int | None, float | None]:  # type: ignore[override]  # librdkafka knows it as it reads
        """Messages of the partitions of this worker."""
        if not self.joined:
            return None, None
        waiting = [one.waiting for one in self.partitions.values() if one.waiting]
        unread: int | None = len(self._held) + sum(map(len, waiting))
        for number, one in self.partitions.items():
            _, high = self._member.get_watermark_offsets(self._part(number), cached=True)
            behind = None if high < 0 and not one.at_end else max(0, high - one.next)
            unread = None if unread is None or behind is None else unread + behind
        written = [self._held[0].at] if self._held else [some[0].at for some in waiting]
        return unread, math.inf if unread == 0 else min((at for at in written if at is not None), default=None)

    def newest(self, count: int) -> Fetched:
        """Messages of the first partition that has any."""
        self._doubt = None
        consumer = self._new_consumer({})
        try:
            for number in self._topic(consumer).partitions:
                low, high = self._offsets(consumer, number)
                if high > low:
                    start = max(low, high - count)
                    consumer.assign([self._part(number, start)])
                    messages = consumer.consume(high - start, self._options.timeout_seconds)
                    return self._fetched(number, [_delivery(one) for one in messages if one.error() is None], 0)
        finally:
            consumer.close()
        return self._fetched(0, (), 0)


def _delivery(message: Message) -> Delivery:
    kind, at = message.timestamp()
    offset, number = message.offset() or 0, message.partition() or 0
    return Delivery(offset, offset, message.value() or b"", handle=number, at=at / 1000 if kind else None)


def _attempts(metadata: str | None) -> int:
    """How often a process began to store the committed message, by the metadata of the offset."""
    try:
        attempts = json.loads(metadata or "{}").get("attempts", 0)
    except (ValueError, AttributeError):  # somebody else has committed
        return 0
    return attempts if isinstance(attempts, int) else 0


def build(options: Options) -> BrokerSource:
    """Build a source from its options. Raises ConfigError if the extra is not installed."""
    return BrokerSource(options, KafkaClient)
