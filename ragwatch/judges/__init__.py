"""Judges, by kind. A kind is a module with `Options` and `build(options, name=, context=)`; add new ones to `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping

from ragwatch.judges import claude, detector, lexical, local, openai
from ragwatch.ports import Judge, Kind

KINDS: Mapping[str, Kind[Judge]] = {
    "lexical": lexical,
    "local": local,
    "detector": detector,
    "claude": claude,
    "openai": openai,
}
