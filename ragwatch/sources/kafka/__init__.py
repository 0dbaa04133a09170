"""Source kind `kafka`: reads a Kafka topic as a member of a consumer group."""

from __future__ import annotations

from ragwatch.sources.kafka.options import Options
from ragwatch.sources.kafka.source import KafkaSource, build

__all__ = ["KafkaSource", "Options", "build"]
