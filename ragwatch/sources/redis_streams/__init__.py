"""Source kind `redis_streams`: reads a Redis stream as a member of a consumer group."""

from __future__ import annotations

from ragwatch.sources.redis_streams.options import Options
from ragwatch.sources.redis_streams.source import RedisStreamsSource, build

__all__ = ["Options", "RedisStreamsSource", "build"]
