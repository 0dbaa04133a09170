"""Grafana dashboards as data. They are generated into `grafana/dashboards`; ragwatch never imports this."""

from __future__ import annotations

from tools.dashboards.boards import boards

__all__ = ["boards"]
