"""Stores: durable storage. To add a kind, write its module and add it to `KINDS`.

`build` of a kind takes its options and the state directory.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.ports import Kind, Store
from ragwatch.stores import postgres, sqlite

KINDS: Mapping[str, Kind[Store]] = MappingProxyType({"postgres": postgres, "sqlite": sqlite})
