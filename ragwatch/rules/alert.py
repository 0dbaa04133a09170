"""Alert: one Prometheus alerting rule with its annotations and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ragwatch.rules.plain import Plain
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import span

PERCENT = "{{ $value | humanizePercentage }}"


class Severity(StrEnum):
    """Severity label: critical pages, warning opens a ticket, info notifies nobody."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Area(StrEnum):
    """Area label. Alertmanager inhibits alerts of area `quality` while an alert on their cause fires."""

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
        severity: Severity label.
        area: Area label.
        expr: Condition in PromQL; the description quotes its value.
        summary: One sentence without figures.
        description: Template with the figures.
        board: Dashboard that the alert links to.
        labels: Labels of the result of `expr`, passed on in links.
        samples: Query string for the samples page, in addition to those labels; None for no such link.
        held: Seconds that the condition must hold (`for`); None for the default of the plan.
        fixed: Static labels that distinguish rules of the same name.
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

    def rule(self, plan: RulePlan) -> dict[str, Plain]:
        """Renders the alerting rule as Prometheus reads it."""
        held = plan.limits.hold if self.held is None else self.held
        waits: dict[str, Plain] = {"for": span(held)} if held else {}
        return {
            "alert": self.name,
            "expr": self.expr,
            **waits,
            "labels": {"severity": str(self.severity), "area": str(self.area), **self.fixed},
            "annotations": self._annotations(plan),
        }

    def _annotations(self, plan: RulePlan) -> dict[str, Plain]:
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
        """Renders the labels of the alert as URL query parameters."""
        labels = [label for label in known if label in self.labels]
        return "&".join(f"{prefix}{label}={{{{ $labels.{label} }}}}" for label in labels)
