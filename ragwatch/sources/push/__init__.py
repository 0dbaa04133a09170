"""Source kind `push`: services send answers and feedback over HTTP."""

from __future__ import annotations

from ragwatch.sources.push.source import Options, PushSource, build

__all__ = ["Options", "PushSource", "build"]
