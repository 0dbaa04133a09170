"""Kind `detector`: a public hallucination or NLI model from a local folder, fused with the lexical judge."""

from __future__ import annotations

from ragwatch.judges.detector.judge import Options, build

__all__ = ["Options", "build"]
