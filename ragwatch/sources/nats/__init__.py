"""Source kind `nats`: reads a JetStream stream through a durable pull consumer."""

from __future__ import annotations

from ragwatch.sources.nats.options import Options
from ragwatch.sources.nats.source import NatsSource, build

__all__ = ["NatsSource", "Options", "build"]
