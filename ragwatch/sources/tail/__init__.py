"""Source kind `tail`: follows JSONL files through rotation, truncation and restarts; no line is lost or read twice."""

from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.source import build

__all__ = ["Options", "build"]
