"""Kind `lexical`: the embedded judge. It compares words, and needs no model, network or key."""

from __future__ import annotations

from ragwatch.judges.lexical.judge import Options, build

__all__ = ["Options", "build"]
