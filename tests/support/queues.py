"""A queue of its own on a broker of each kind, as its producer and its operator see it.

Redis and NATS are the servers of Debian's packages, SQS is moto's. Neither Debian nor PyPI has a Kafka: `kafka` is the
mock cluster inside of librdkafka, a loopback server with Kafka's protocol, or a real broker that RAGWATCH_TEST_KAFKA
names (`host:port`).
"""

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import boto3
import confluent_kafka
import nats
import redis
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from ragwatch.ports import Store
from ragwatch.sources import KINDS
from ragwatch.sources.brokers.consumer import BrokerSource
from ragwatch.sources.brokers.nats import LoopThread
from support.brokers import BrokerProcess, Worker
from support.kit import a_line
from support.patience import DEADLINE, wait_until

SECRET = "hunter22"  # noqa: S105 - a made up one


class Queue:
    """What all kinds have in common."""

    kind: str  # kind of the source
    options: dict[str, Any]  # its options, beside those of all kinds
    other: Mapping[str, Any] = MappingProxyType({})  # options of a second worker that soon has what a first one holds
    # options with a queue that does not exist, where that is an error
    missing: Mapping[str, Any] = MappingProxyType({})
    where: str  # how errors name the queue
    server: Any = None  # the server, where it is a process that can be killed and started again

    def __init__(self) -> None:
        self.name = f"rag-{uuid4()}"
        self.sources: list[BrokerSource] = []

    def source(self, **options: Any) -> BrokerSource:
        """A source that reads it from its beginning."""
        module: Any = KINDS[self.kind]
        given = {"name": "app", "start": "beginning"} | self.options | options
        self.sources.append(module.build(module.Options.model_validate(given)))
        return self.sources[-1]

    def worker(self, store: Store, *, max_pending: int = 1_000_000, **options: Any) -> Worker:
        """A worker that reads it."""
        return Worker(self.source(**options), store, max_pending=max_pending)

    def add(self, *contents: str | bytes) -> None:
        """Add a record for each name, or what is given."""
        self.send([one if isinstance(one, bytes) else a_line(one) for one in contents])

    def send(self, contents: list[bytes]) -> None:
        """Add messages."""
        raise NotImplementedError

    def left(self) -> int:
        """How many messages are not acknowledged, delivered or not."""
        raise NotImplementedError

    def held(self) -> int:
        """How many of them were delivered."""
        raise NotImplementedError

    def expire(self, worker: Worker) -> None:
        """Let the time be over for which a worker may hold its batch."""

    def kill(self, worker: Worker) -> None:
        """End a worker without a word: what it holds is delivered again."""
        self.expire(worker)
        worker.source.close()

    def trim(self, count: int) -> None:
        """Remove all but the newest messages."""
        raise NotImplementedError

    def lose_group(self) -> None:
        """Lose the consumer group, as a failover may."""
        raise NotImplementedError

    def dead_letters(self) -> dict[str, Any]:
        """Options with which dead letters are copied."""
        return {}

    def letters(self) -> list[tuple[bytes, str]]:
        """Dead letters and their reasons."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections."""
        for source in self.sources:
            source.close()


def held_by(worker: Worker) -> list[Any]:
    """What a worker needs to acknowledge the messages that it holds."""
    reading = worker.source._reading  # type: ignore[attr-defined]  # a stand-in for time that passes
    return [] if reading is None else [one.handle for one in reading.fetched.deliveries]


class RedisQueue(Queue):
    """A stream that does not exist yet."""

    kind = "redis_streams"

    def __init__(self, server: BrokerProcess) -> None:
        super().__init__()
        self.server = server
        self.client: Any = redis.Redis(port=server.port, protocol=2)
        self.where = f"redis stream {self.name} at redis"
        self.options = {"url": f"redis://127.0.0.1:{server.port}/0", "stream": self.name, "consumer": "one"}
        self.other = {"consumer": "two", "claim_idle_seconds": 0.02}

    def send(self, contents: list[bytes]) -> None:
        """Add entries."""
        with self.client.pipeline(transaction=False) as pipeline:
            for one in contents:
                pipeline.xadd(self.name, {"data": one})
            pipeline.execute()

    def left(self) -> int:
        """Entries that the group has not acknowledged."""
        groups = self.client.xinfo_groups(self.name) if self.client.exists(self.name) else []
        if not groups:
            return int(self.client.xlen(self.name))
        # Redis counts the `lag` of a group wrongly after a restart.
        following = self.client.xrange(self.name, b"(" + groups[0]["last-delivered-id"], "+")
        return int(groups[0]["pending"]) + len(following)

    def held(self) -> int:
        """Entries that are pending."""
        groups = self.client.xinfo_groups(self.name) if self.client.exists(self.name) else []
        return int(groups[0]["pending"]) if groups else 0

    def trim(self, count: int) -> None:
        """As `MAXLEN` does; and a second passes, in which nobody asked how much there is."""
        self.client.xtrim(self.name, maxlen=count, approximate=False)
        for source in self.sources:
            source._measure_at = 0.0

    def lose_group(self) -> None:
        """Destroy it."""
        self.client.xgroup_destroy(self.name, "ragwatch")

    def letters(self) -> list[tuple[bytes, str]]:
        """Entries of the stream of dead letters."""
        rows = self.client.xrange(f"{self.name}:dead")
        return [(fields[b"data"], fields[b"ragwatch_reason"].decode()) for _, fields in rows]

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self.client.close()


class NatsQueue(Queue):
    """An empty stream."""

    kind = "nats"
    missing = MappingProxyType({"stream": "no-such"})

    def __init__(self, server: BrokerProcess, **options: Any) -> None:
        super().__init__()
        self.server = server
        address = f"nats://127.0.0.1:{server.port}"
        self._thread = LoopThread("producer")
        self.client = self._thread.run(nats.connect(address, max_reconnect_attempts=-1), DEADLINE)
        self.manager: Any = self.client.jetstream(timeout=DEADLINE)
        self.where = "nats stream .* at nats"
        self.options = {"url": address, "stream": self.name, "ack_wait_seconds": 30}
        self.create(**options)

    def do(self, call: Any) -> Any:
        """Wait for a call of the client."""
        wait_until(lambda: self.client.is_connected, "the producer is connected")
        return self._thread.run(call, DEADLINE)

    def create(self, **options: Any) -> None:
        """Create the stream."""
        self.do(self.manager.add_stream(name=self.name, subjects=[self.name, f"{self.name}.>"], **options))

    def send(self, contents: list[bytes]) -> None:
        """Publish messages."""

        async def publish() -> None:
            for one in contents:
                await self.manager.publish(self.name, one)

        self.do(publish())

    def info(self) -> Any:
        """What the server says of the consumer."""
        return self.do(self.manager.consumer_info(self.name, "ragwatch"))

    def left(self) -> int:
        """Messages that the consumer has not acknowledged."""
        try:
            info = self.info()
        except nats.js.errors.NotFoundError:
            return int(self.do(self.manager.stream_info(self.name)).state.messages)
        return int(info.num_pending) + int(info.num_ack_pending)

    def held(self) -> int:
        """Messages that wait for their acknowledgement."""
        with contextlib.suppress(nats.js.errors.NotFoundError):
            return int(self.info().num_ack_pending)
        return 0

    def expire(self, worker: Worker) -> None:
        """Refuse what it holds."""
        for one in held_by(worker):
            self.do(self.client.publish(one, b"-NAK"))
        self.do(self.client.flush())

    def trim(self, count: int) -> None:
        """By a limit that holds for a moment."""
        for limit in (count, -1):
            config = {"name": self.name, "subjects": [self.name, f"{self.name}.>"], "max_msgs": limit}
            self.do(self.manager.update_stream(**config))

    def lose_group(self) -> None:
        """Delete the consumer."""
        self.do(self.manager.delete_consumer(self.name, "ragwatch"))

    def dead_letters(self) -> dict[str, Any]:
        """A subject of the same stream."""
        return {"dead_letters": f"{self.name}.dead", "subject": self.name}

    def letters(self) -> list[tuple[bytes, str]]:
        """The last one."""
        letter = self.do(self.manager.get_last_msg(self.name, f"{self.name}.dead"))
        return [(letter.data, letter.headers["Ragwatch-Reason"])]

    def close(self) -> None:
        """Close all connections."""
        super().close()
        with contextlib.suppress(TimeoutError):
            self._thread.run(self.client.close(), 5)
        self._thread.close()


class SqsQueue(Queue):
    """A queue of moto, which keeps visibility timeouts, numbers of deliveries and receipt handles as SQS does."""

    kind = "sqs"

    def __init__(self, address: str, *, fifo: bool = False) -> None:
        super().__init__()
        keys = {"aws_access_key_id": "AKIA", "aws_secret_access_key": SECRET}
        self.client: Any = boto3.client("sqs", endpoint_url=address, region_name="eu-central-1", **keys)
        end, more = (".fifo", {"Attributes": {"FifoQueue": "true"}}) if fifo else ("", {})
        names = (f"{self.name}{kind}{end}" for kind in ("", "-dead"))
        self.url, self.dead = (self.client.create_queue(QueueName=name, **more)["QueueUrl"] for name in names)
        self.where = "sqs queue http"
        self.options = {"queue_url": self.url, "endpoint_url": address, "region": "eu-central-1"}
        self.options |= {"access_key_id": "AKIA", "secret_access_key": SECRET}
        self.missing = {"queue_url": f"{self.url}x"}

    def send(self, contents: list[bytes]) -> None:
        """Send messages."""
        for start in range(0, len(contents), 10):
            part = enumerate(contents[start : start + 10])
            entries = [{"Id": str(place), "MessageBody": body.decode()} for place, body in part]
            assert not self.client.send_message_batch(QueueUrl=self.url, Entries=entries).get("Failed")

    def left(self) -> int:
        """Messages in the queue."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        reply = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(map(int, reply["Attributes"].values()))

    def expire(self, worker: Worker) -> None:
        """End the visibility timeout of what it holds."""
        for handle, _ in held_by(worker):
            self.client.change_message_visibility(QueueUrl=self.url, ReceiptHandle=handle, VisibilityTimeout=0)

    def dead_letters(self) -> dict[str, Any]:
        """A queue beside it."""
        return {"dead_letters": self.dead}

    def letters(self) -> list[tuple[bytes, str]]:
        """Messages of that queue."""
        asked = {"MessageAttributeNames": ["All"], "AttributeNames": ["All"], "MaxNumberOfMessages": 10}
        messages = self.client.receive_message(QueueUrl=self.dead, **asked).get("Messages", [])
        return [(one["Body"].encode(), one["MessageAttributes"]["RagwatchReason"]["StringValue"]) for one in messages]

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self.client.close()


class KafkaQueue(Queue):
    """A topic with four partitions; all messages are in the first one but where a partition is named."""

    kind = "kafka"

    def __init__(self, servers: str, *, is_mock: bool = True) -> None:
        super().__init__()
        self.producer: Any = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 0})
        self.where = "kafka topic .* at 127"
        self.options = {"servers": servers, "topic": self.name, "group": self.name}
        if is_mock:  # a real broker takes no session below six seconds
            self.options["properties"] = {"session.timeout.ms": "1500", "heartbeat.interval.ms": "100"}
        self.other = {"consumer": "two"}
        self._added = 0
        if not is_mock:  # the mock creates a topic with its first message
            created = AdminClient({"bootstrap.servers": servers}).create_topics([NewTopic(self.name, 4, 1)])
            created[self.name].result(DEADLINE)

    def send(self, contents: list[bytes], *, spread: bool = False) -> None:
        """Produce messages."""
        self._added += len(contents)
        for number, content in enumerate(contents):
            self.producer.produce(self.name, content, partition=number % 4 if spread else 0)
        assert not self.producer.flush(DEADLINE)

    def committed(self) -> int:
        """Messages up to the committed offsets."""
        servers = self.options["servers"]
        consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": self.options["group"]})
        try:
            parts = [confluent_kafka.TopicPartition(self.name, number) for number in range(4)]
            return sum(max(0, one.offset) for one in consumer.committed(parts, timeout=DEADLINE))
        finally:
            consumer.close()

    def left(self) -> int:
        """Messages behind the committed offsets."""
        return self._added - self.committed()

    def kill(self, worker: Worker) -> None:
        """Leave the group without committing anything."""
        worker.source._client.partitions.clear()  # type: ignore[attr-defined]
        worker.source.close()

    def dead_letters(self) -> dict[str, Any]:
        """A topic beside it."""
        self.producer.produce(f"{self.name}.dead", b"creates it")
        assert not self.producer.flush(DEADLINE)
        return {"dead_letters": f"{self.name}.dead"}

    def letters(self) -> list[tuple[bytes, str]]:
        """Messages of that topic."""
        place = {"bootstrap.servers": self.options["servers"], "group.id": "reader", "auto.offset.reset": "earliest"}
        reader: Any = confluent_kafka.Consumer(place)
        reader.assign([confluent_kafka.TopicPartition(f"{self.name}.dead", number, 0) for number in range(4)])
        letters = [one for one in reader.consume(2, 10) if one.headers()]
        reader.close()
        return [(one.value(), dict(one.headers())["ragwatch-reason"].decode()) for one in letters]
