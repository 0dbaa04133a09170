"""Prometheus rules as data: recording rules and alerts, built from a plan.

All rules of a plan are Prometheus rule files, or a PrometheusRule of the Prometheus operator.
"""

from ragwatch.model.quantities import Quantity
from ragwatch.rules import cause_alerts, own_alerts, quality_alerts, recording, traffic_alerts
from ragwatch.rules.alert import Alert
from ragwatch.rules.plan import BurnRate, Limits, Links, RulePlan, impossible
from ragwatch.rules.yaml_writer import JsonValue, yaml_text

__all__ = [
    "NAMES",
    "BurnRate",
    "Limits",
    "Links",
    "RulePlan",
    "alerts",
    "impossible",
    "operator",
    "prometheus",
    "yaml_text",
]


def alerts(plan: RulePlan) -> tuple[Alert, ...]:
    """Builds every alert of a plan."""
    return (
        *traffic_alerts.alerts(plan),  # before those of quality: of a change that both see, one page is enough
        *quality_alerts.alerts(plan),
        *cause_alerts.alerts(plan),
        *own_alerts.alerts(plan),
    )


_ALL = RulePlan(
    judge="",
    job="",
    links=Links(None, None, None),
    thresholds={Quantity.FAITHFULNESS: 0.5},
    objectives={Quantity.FAITHFULNESS: 0.5},
)
"""A plan that has every alert."""
NAMES = frozenset(alert.name for alert in alerts(_ALL))


def prometheus(plan: RulePlan) -> dict[str, dict[str, list[JsonValue]]]:
    """Builds the rule files, by name: recording rules, and alerts that use them."""
    rules: list[JsonValue] = [alert.rule(plan) for alert in alerts(plan)]
    return {
        "ragwatch-recording.yaml": {"groups": list(recording.groups(plan))},
        "ragwatch-alerts.yaml": {"groups": [{"name": "ragwatch-alerts", "rules": rules}]},
    }


def operator(plan: RulePlan) -> dict[str, JsonValue]:
    """Builds one PrometheusRule resource with the same rules."""
    groups = [group for file in prometheus(plan).values() for group in file["groups"]]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "ragwatch", "labels": {"app.kubernetes.io/name": "ragwatch"}},
        "spec": {"groups": groups},
    }
