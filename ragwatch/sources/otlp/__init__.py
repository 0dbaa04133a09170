"""Source kind `otlp`: receives traces over OTLP/HTTP and assembles one record for each RAG request."""

from __future__ import annotations

from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import build

__all__ = ["Options", "build"]
