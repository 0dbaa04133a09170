"""Defines what the dashboards are built from, independent of the configuration format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ragwatch.model.quantities import Quantity

PLACEHOLDER = "https://ragwatch.example.com"
"""URL of the pages where none is known: a reserved domain, which no reader takes for a real address."""


class Feature(StrEnum):
    """Part of a configuration without which some panels can never show anything."""

    PAID = "a judge that costs money per call"
    BUDGET = "a judge with a budget"
    REPEAT = "a judge that reads some answers twice"
    KNOWN_BAD = "a judge that is tested with known-bad answers"
    ANCHORS = "anchor samples"
    CANARIES = "canaries"
    MIXED = "a source that skips lines"
    JOINED = "a source of kind join"
    TRACES = "a source of kind otlp"
    EXPORT = "an export of scores"
    SEGMENTS = "segments"
    CRITERIA = "criteria"
    LABELS = "labels by people"


@dataclass(frozen=True, slots=True)
class BoardPlan:
    """Everything that the dashboards are built from. The defaults build every panel.

    Attributes:
        pages: URL of the ragwatch pages as users reach them, without a trailing slash.
        judge: Judge that is selected when a dashboard is opened.
        window: Window that is selected when a dashboard is opened, as Prometheus writes it.
        quantities: Quantities that a configured judge can score.
        features: Other parts of the configuration that panels need.
        optional: Of these, those that may be missing: their panels stand in closed rows, which query nothing.
    """

    pages: str = PLACEHOLDER
    judge: str = "embedded"
    window: str = "1h"
    quantities: frozenset[Quantity] = frozenset(Quantity)
    features: frozenset[Feature] = frozenset(Feature)
    optional: frozenset[Feature] = frozenset()

    def fills(self, needs: Quantity | Feature | None) -> bool:
        """Whether a panel that needs this can show anything."""
        return needs is None or needs in self.quantities or needs in self.features
