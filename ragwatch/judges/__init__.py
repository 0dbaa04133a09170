"""Judges: readers of one sample. `build(options, name=, desk=)`; to add a kind, write its module and name it here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.judges import claude, lexical, local, openai
from ragwatch.ports import Judge, Kind

KINDS: Mapping[str, Kind[Judge]] = MappingProxyType(
    {"lexical": lexical, "local": local, "claude": claude, "openai": openai}
)
