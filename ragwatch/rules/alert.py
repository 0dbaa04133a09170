"""Defines the row of an alert: its rule with annotations and links, and its row of docs/alerts.md, are made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ragwatch.rules import texts
from ragwatch.rules.plan import RulePlan
from ragwatch.rules.promql import span
from ragwatch.rules.yaml_writer import JsonValue

PREFIX = "Ragwatch"
PERCENT = "{{ $value | humanizePercentage }}"
COUNT = '{{ $value | printf "%.0f" }}'
AGE = "{{ $value | humanizeDuration }}"
JOB, SUITE, JUDGE, SOURCE, ROUTE = (
    f"{{{{ $labels.{label} }}}}" for label in ("job", "suite", "judge", "source", "route")
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """All that there is of one alert but its runbook. Rules of one name have the same meaning, delay and promise."""

    name: str  # CamelCase; also the name of its runbook
    meaning: str  # what is the case while it fires, for docs/alerts.md
    delay: str = ""  # time from the cause to the condition, likewise; empty for at once
    promise: str = "none: a state, not an estimate"  # how often it may fire without a cause, likewise
    severity: Severity = Severity.WARNING  # severity label
    area: Area  # area label
    expr: str  # condition in PromQL; the description quotes its value
    summary: str  # template of one line: where, what, how much
    description: str  # template with further figures, and what else changed
    board: str  # dashboard that the alert links to
    labels: tuple[str, ...]  # labels of the alert that links pass on
    samples: str | None = None  # query string for the samples page, in addition to those labels; None for no such link
    causes: str | None = None  # query string for the page of causes, likewise
    segments: str | None = None  # query string for the page of its segment, likewise
    # query for the series of the instances that raise it, and its arguments; links lead to one of these
    origin: tuple[str, str] = texts.ANSWERING
    hold: float | None = None  # seconds that the condition must hold (`for`); None for the default of the plan
    # seconds for which it must be gone before the alert ends (`keep_firing_for`); None likewise. 0 for a condition that
    # looks over missed scrapes itself
    kept: float | None = None
    static_labels: Mapping[str, str] = field(default_factory=dict)  # labels that distinguish rules of the same name

    def rule(self, plan: RulePlan) -> dict[str, JsonValue]:
        """Renders the alerting rule as Prometheus reads it."""
        hold = plan.limits.hold if self.hold is None else self.hold
        severity = plan.severity.get(self.name, str(self.severity))
        pending: dict[str, JsonValue] = {"for": span(hold)} if hold else {}
        if kept := plan.kept if self.kept is None else self.kept:
            pending["keep_firing_for"] = span(kept)
        return {
            "alert": self.name,
            "expr": self.expr,
            **pending,
            "labels": {"severity": severity, "area": str(self.area), **self.static_labels},
            "annotations": self._annotations(plan),
        }

    def _annotations(self, plan: RulePlan) -> dict[str, JsonValue]:
        links = plan.links
        annotations: dict[str, JsonValue] = {"summary": self.summary, "description": self.description}
        if links.runbooks is not None:
            annotations["runbook_url"] = f"{links.runbooks}/{self.name}.md"
        if links.dashboards is not None:
            annotations["dashboard_url"] = f"{links.dashboards}/d/ragwatch-{self.board}?{self._url_parameters('var-')}"
        parameters = self._url_parameters("", ("route", "judge"))
        pages = {"samples": self.samples, "causes": self.causes, "segments/{{ $labels.segment }}": self.segments}
        for page, query in pages.items():
            if query is not None:
                address = texts.link(self.origin, f"/{page}?{parameters}{query}", pages=links.pages)
                annotations[f"{page.partition('/')[0]}_url"] = address
        return annotations

    def _url_parameters(self, prefix: str, allowed: tuple[str, ...] = ("job", "route", "judge")) -> str:
        """Renders the labels of the alert as URL query parameters."""
        labels = [label for label in allowed if label in self.labels]
        return "&".join(f"{prefix}{label}={{{{ $labels.{label} }}}}" for label in labels)
