"""Sources of log records, by kind.

A source implements `ports.Source`; its module has `Options` and `build(options)`. To add a kind, write such a module
and add it to `KINDS`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.ports import Kind, Source
from ragwatch.sources import join, otlp, push, tail
from ragwatch.sources.brokers import kafka, nats, redis_streams, sqs

KINDS: Mapping[str, Kind[Source]] = MappingProxyType(
    {
        "tail": tail,
        "otlp": otlp,
        "push": push,
        "join": join,
        "redis_streams": redis_streams,
        "nats": nats,
        "kafka": kafka,
        "sqs": sqs,
    }
)
