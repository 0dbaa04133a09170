"""Sources: transports that yield records. `build(options)`; to add a kind, write its module and name it here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.ports import Kind, Source
from ragwatch.sources import tail

KINDS: Mapping[str, Kind[Source]] = MappingProxyType({"tail": tail})
