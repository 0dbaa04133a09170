"""Probes: send canary queries. To add a kind, write its module and add it to `KINDS`.

`build` of a kind takes its options and `name`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.ports import Kind, Probe
from ragwatch.probes import http, rag

KINDS: Mapping[str, Kind[Probe]] = MappingProxyType({"http": http, "rag": rag})
