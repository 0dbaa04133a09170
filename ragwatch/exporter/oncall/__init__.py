"""On-call kit: recording rules, alerts and dashboards as data, built from a Plan and the series of the catalogue."""

from __future__ import annotations

from ragwatch.exporter.oncall.boards import boards
from ragwatch.exporter.oncall.burn import Burn, impossible
from ragwatch.exporter.oncall.groups import alerts, operator, prometheus
from ragwatch.exporter.oncall.plain import yaml_text
from ragwatch.exporter.oncall.plan import Limits, Links, Plan

__all__ = [
    "Burn",
    "Limits",
    "Links",
    "Plan",
    "alerts",
    "boards",
    "impossible",
    "operator",
    "prometheus",
    "yaml_text",
]
