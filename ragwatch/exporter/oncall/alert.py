"""Alert: one condition that calls somebody, and what it tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ragwatch.exporter.oncall.plain import Plain
from ragwatch.exporter.oncall.plan import Plan
from ragwatch.exporter.oncall.promql import span

PERCENT = "{{ $value | humanizePercentage }}"


class Severity(StrEnum):
    """Who is told, and when: critical wakes, warning waits for the morning, info waits for someone to look."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Area(StrEnum):
    """What an alert is about. Alertmanager silences `quality` while its cause stands."""

    QUALITY = "quality"
    RETRIEVAL = "retrieval"
    JUDGE = "judge"
    SOURCE = "source"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alerting rule.

    Attributes:
        name: CamelCase; also the name of its runbook.
        severity: Who is told.
        area: What it is about.
        expr: Its condition; the value is what the description quotes.
        summary: One sentence without figures.
        description: The figures, as a template.
        board: Dashboard to open.
        labels: Labels that are left in `expr`; links choose by them.
        samples: Query of the page of samples beside those labels, when answers can show what is wrong.
        held: Seconds that the condition must hold; None for the plan's.
        fixed: Labels that tell rules of one name apart.
    """

    name: str
    severity: Severity
    area: Area
    expr: str
    summary: str
    description: str
    board: str
    labels: tuple[str, ...]
    samples: str | None = None
    held: float | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)

    def rule(self, plan: Plan) -> dict[str, Plain]:
        """The same, as Prometheus reads it."""
        held = plan.limits.hold if self.held is None else self.held
        waits: dict[str, Plain] = {"for": span(held)} if held else {}
        return {
            "alert": self.name,
            "expr": self.expr,
            **waits,
            "labels": {"severity": str(self.severity), "area": str(self.area), **self.fixed},
            "annotations": self._annotations(plan),
        }

    def _annotations(self, plan: Plan) -> dict[str, Plain]:
        links = plan.links
        found: dict[str, Plain] = {"summary": self.summary, "description": self.description}
        if links.runbooks is not None:
            found["runbook_url"] = f"{links.runbooks}/{self.name}.md"
        if links.dashboards is not None:
            found["dashboard_url"] = f"{links.dashboards}/d/ragwatch-{self.board}?{self._chosen('var-')}"
        if self.samples is not None:
            found["samples_url"] = f"{links.pages}/samples?{self._chosen('', ('route', 'judge'))}{self.samples}"
        return found

    def _chosen(self, prefix: str, known: tuple[str, ...] = ("job", "route", "judge")) -> str:
        """The alert's labels as parameters of an address."""
        labels = [label for label in known if label in self.labels]
        return "&".join(f"{prefix}{label}={{{{ $labels.{label} }}}}" for label in labels)
