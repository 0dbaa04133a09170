"""Groups: all rules of a plan, as Prometheus rule files and as a PrometheusRule of the Prometheus operator."""

from __future__ import annotations

from ragwatch.rules import cause_alerts, own_alerts, quality_alerts, recording
from ragwatch.rules.alert import Alert
from ragwatch.rules.plain import Plain
from ragwatch.rules.plan import RulePlan


def alerts(plan: RulePlan) -> tuple[Alert, ...]:
    """Builds every alert of a plan."""
    return (*quality_alerts.alerts(plan), *cause_alerts.alerts(plan), *own_alerts.alerts(plan))


def prometheus(plan: RulePlan) -> dict[str, dict[str, list[Plain]]]:
    """Builds the rule files, by name: recording rules, and alerts that use them."""
    rules: list[Plain] = [each.rule(plan) for each in alerts(plan)]
    return {
        "ragwatch-recording.yaml": {"groups": list(recording.groups(plan))},
        "ragwatch-alerts.yaml": {"groups": [{"name": "ragwatch-alerts", "rules": rules}]},
    }


def operator(plan: RulePlan) -> dict[str, Plain]:
    """Builds one PrometheusRule resource with the same rules."""
    groups = [group for file in prometheus(plan).values() for group in file["groups"]]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "ragwatch", "labels": {"app.kubernetes.io/name": "ragwatch"}},
        "spec": {"groups": groups},
    }
