"""Prometheus rules as data: recording rules and alerts, built from a Plan."""

from __future__ import annotations

from ragwatch.rules.burn import Burn, impossible
from ragwatch.rules.groups import alerts, operator, prometheus
from ragwatch.rules.plain import yaml_text
from ragwatch.rules.plan import Limits, Links, Plan

__all__ = [
    "Burn",
    "Limits",
    "Links",
    "Plan",
    "alerts",
    "impossible",
    "operator",
    "prometheus",
    "yaml_text",
]
