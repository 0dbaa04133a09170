"""Stores: durable memory. `build(options, state_directory)`; to add a kind, write its module and name it here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ragwatch.ports import Kind, Store
from ragwatch.stores import sqlite

KINDS: Mapping[str, Kind[Store]] = MappingProxyType({"sqlite": sqlite})
