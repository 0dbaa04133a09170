"""Reads the newest messages of a topic without its consumer group."""

from __future__ import annotations

import time

from ragwatch.errors import SourceError
from ragwatch.sources.kafka.group import QUIET, Record, error_of, library
from ragwatch.sources.kafka.options import Options


def newest(options: Options, count: int) -> list[Record]:
    """Return some of the newest messages of the first partition that has any.

    Raises:
        SourceError: No broker can be reached, or there is no such topic.
    """
    kafka = library(options)
    where, limit = f"kafka topic {options.topic} at {options.servers}", options.timeout_seconds
    properties = {**options.client_properties(), "group.id": options.group, "enable.auto.commit": "false"}
    doubts: list[str] = []
    try:
        consumer = kafka.Consumer({**properties, "error_cb": lambda error: doubts.append(error.str())}, logger=QUIET)
    except kafka.KafkaException as error:
        raise error_of(where, error) from None
    try:
        topic = consumer.list_topics(options.topic, timeout=limit).topics[options.topic]
        if topic.error is not None:
            raise error_of(where, kafka.KafkaException(topic.error))
        for number in topic.partitions:
            part = kafka.TopicPartition(options.topic, number)
            low, high = consumer.get_watermark_offsets(part, timeout=limit)
            if high > low:
                consumer.assign([kafka.TopicPartition(options.topic, number, max(low, high - count))])
                return _read(consumer, min(count, high - low), time.monotonic() + limit)
    except kafka.KafkaException as error:
        consumer.poll(0)  # which tells why
        raise error_of(where, error, doubts) from None
    finally:
        consumer.close()
    return []


def _read(consumer: object, count: int, end: float) -> list[Record]:
    records: list[Record] = []
    while len(records) < count and time.monotonic() < end:
        for message in consumer.consume(count - len(records), 0.2):  # type: ignore[attr-defined]  # of the library
            if message.error() is not None:
                raise SourceError(f"kafka topic {message.topic()}: {message.error().str()}")
            records.append(Record(message.partition(), message.offset(), message.value() or b"", None))
    return records
