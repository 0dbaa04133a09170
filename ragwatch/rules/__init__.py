"""Prometheus rules as data: recording rules and alerts, built from a Plan."""

from __future__ import annotations

from ragwatch.rules.burn import BurnRate, impossible
from ragwatch.rules.groups import alerts, operator, prometheus
from ragwatch.rules.plan import Limits, Links, RulePlan
from ragwatch.rules.yaml_writer import yaml_text

__all__ = [
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
