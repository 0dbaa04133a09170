"""Kind `local`: the embedded judge with a cross-encoder. It needs no key and no network."""

from __future__ import annotations

from ragwatch.judges.local.judge import Options, build

__all__ = ["Options", "build"]
