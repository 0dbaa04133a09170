"""Defines one Prometheus recording rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragwatch.rules.yaml_writer import JsonValue


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """One recording rule."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def rule(self) -> dict[str, JsonValue]:
        """Renders the recording rule as Prometheus reads it."""
        labels: dict[str, JsonValue] = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": self.expr, **labels}
