"""Probes: who asks a retriever. `build(options, name=...)`; to add a kind, write its module and name it here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.ports import Kind
from ragwatch.ports.probing import Probe
from ragwatch.probes import http, rag

KINDS: Mapping[str, Kind[Probe]] = MappingProxyType({"http": http, "rag": rag})
