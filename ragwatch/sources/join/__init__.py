"""Source kind `join`: merges the parts of a request that are logged in separate records, by their id."""

from __future__ import annotations

from ragwatch.sources.join.options import Options
from ragwatch.sources.join.source import build

__all__ = ["Options", "build"]
