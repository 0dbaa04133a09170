"""Defines the names in the configuration that pages show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class PageScope:
    """Names that pages show even without data, and the thresholds.

    Attributes:
        sources: Configured sources.
        routes: Configured routes, without `other`.
        judges: Configured judges, the default one first.
        windows: Configured windows, the shortest first.
        thresholds: Worst acceptable mean, by quantity.
        suites: Configured canary suites.
    """

    sources: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    suites: tuple[str, ...] = ()
