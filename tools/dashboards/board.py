"""Builds the frame of every dashboard: variables, annotations, and links to other dashboards and ragwatch pages."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.rules.yaml_writer import JsonValue
from tools.dashboards.panel import SOURCE, Json, Panel, placed

_FIRING = 'ALERTS{alertname=~"Ragwatch.+",alertstate="firing",job=~"$job"}'
_STARTED = 'changes(ragwatch_config_last_reload_success_timestamp_seconds{job=~"$job"}[$__rate_interval]) > 0'


def board(uid: str, title: str, description: str, rows: Sequence[tuple[str, Sequence[Panel]]], pages: str) -> Json:
    """Builds a dashboard as Grafana JSON.

    Args:
        uid: Grafana uid, without the prefix `ragwatch-`.
        title: Title, without the prefix `ragwatch / `.
        description: What the dashboard shows.
        rows: Panels by row.
        pages: URL of the ragwatch pages.
    """
    return {
        "uid": f"ragwatch-{uid}",
        "title": f"ragwatch / {title}",
        "description": description,
        "tags": ["ragwatch"],
        "schemaVersion": 41,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": _annotations()},
        "templating": {"list": _variables()},
        "links": _links(pages),
        "panels": placed(rows),
    }


def _annotations() -> list[JsonValue]:
    tagged: Json = {"type": "tags", "tags": ["deploy"], "limit": 100, "matchAny": True}
    return [
        _annotation("Alerts", _FIRING, "red", "{{alertname}} {{route}}{{suite}}"),
        _annotation("Configuration reloaded", _STARTED, "blue", "{{instance}}"),
        {
            "name": "Deploys",
            "enable": True,
            "iconColor": "green",
            "datasource": {"type": "grafana", "uid": "-- Grafana --"},
            "target": tagged,
        },
    ]


def _annotation(name: str, expr: str, colour: str, title: str) -> Json:
    return {
        "name": name,
        "enable": True,
        "iconColor": colour,
        "datasource": SOURCE,
        "expr": expr,
        "titleFormat": title,
    }


def _variables() -> list[JsonValue]:
    source: Json = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return [
        source,
        _variable("job", "Job", "label_values(ragwatch_build_info, job)", many=True),
        _variable("route", "Route", 'label_values(ragwatch_samples_drawn_total{job=~"$job"}, route)', many=True),
        _variable("judge", "Judge", 'label_values(ragwatch_judge_info{job=~"$job"}, judge)'),
        _variable("window", "Window", 'label_values(all:ragwatch_quality:mean{job=~"$job"}, window)'),
    ]


def _variable(name: str, label: str, query: str, *, many: bool = False) -> Json:
    every: Json = {"multi": True, "includeAll": True, "allValue": ".+"} if many else {}
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        **every,
    }


def _links(pages: str) -> list[JsonValue]:
    others = _link("ragwatch", "")
    return [
        {**others, "type": "dashboards", "tags": ["ragwatch"], "asDropdown": True, "includeVars": True},
        _link("Overview page", f"{pages}/"),
        _link("Judged samples", f"{pages}/samples?outcome=judged"),
    ]


def _link(title: str, url: str) -> Json:
    return {
        "type": "link",
        "title": title,
        "url": url,
        "tags": [],
        "icon": "external link",
        "tooltip": "",
        "asDropdown": False,
        "includeVars": False,
        "keepTime": True,
        "targetBlank": bool(url),
    }
