"""Scope: what configuration says pages are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class PageScope:
    """Names to show even while nothing is known of them, and what counts as good.

    Attributes:
        sources: Configured sources.
        routes: Configured routes, without `other`.
        judges: Configured judges, the default one first.
        windows: Configured windows, the shortest first.
        thresholds: By quantity: the worst mean that is still good.
        suites: Configured suites of canaries.
    """

    sources: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    suites: tuple[str, ...] = ()
