"""Builds the frame of every dashboard: variables, annotations, and links to other dashboards and ragwatch pages."""

from ragwatch.rules.dashboards.page import JUDGED, OVERVIEW
from ragwatch.rules.dashboards.panel import BoardPlan, Rows, placed
from ragwatch.rules.dashboards.query import PLACE, Json, Query, grouped, recorded, scraped
from ragwatch.rules.yaml_writer import JsonValue

_EVENTS = "ragwatch_last_event_timestamp_seconds"
_LOADED = "ragwatch_config_last_reload_success_timestamp_seconds"
_ANY, _ANY_OR_NONE = ".+", ".*"  # job and instance are on every series, cluster and namespace are not
_BY_NAME, _BY_NUMBER = 1, 3
ALL: Json = {"selected": True, "text": ["All"], "value": ["$__all"]}
"""The value of a variable that may have several."""
PAGES_LABEL = "URL of ragwatch"


def board(title: str, description: str, rows: Rows, plan: BoardPlan) -> Json:
    """Builds a dashboard as Grafana JSON; its title has no prefix of ragwatch yet."""
    return {
        **frame(title.lower(), title, description, "1m", "now-6h"),
        "annotations": {"list": _annotations()},
        "templating": {"list": _variables(plan)},
        "links": [
            {
                **_link("ragwatch", ""),
                "type": "dashboards",
                "tags": ["ragwatch"],
                "asDropdown": True,
                "includeVars": True,
            },
            _link(OVERVIEW.title, OVERVIEW.url()),
            _link(JUDGED.title, JUDGED.url()),
        ],
        "panels": placed(rows, plan),
    }


def frame(uid: str, title: str, description: str, refresh: str, start: str) -> Json:
    """What all dashboards begin with: their names, how often they are refreshed, and the time that they show first."""
    return {
        "uid": f"ragwatch-{uid}",
        "title": f"ragwatch / {title}",
        "description": description,
        "tags": ["ragwatch"],
        "schemaVersion": 41,
        "editable": False,
        "graphTooltip": 1,
        "refresh": refresh,
        "time": {"from": start, "to": "now"},
        "timezone": "browser",
    }


def _annotations() -> list[JsonValue]:
    firing = recorded("ALERTS", 'alertname=~"Ragwatch.+"', 'alertstate="firing"')
    tagged: Json = {"type": "tags", "tags": ["deploy"], "limit": 100, "matchAny": True}
    return [
        _annotation("Alerts", firing, "red", "{{alertname}} {{route}}{{suite}}"),
        _moments("Deploys", scraped(_EVENTS, 'kind=~"release|index|other|version"'), "green", "kind"),
        _moments("Changes of judge and baseline", scraped(_EVENTS, 'kind=~"judge|drift"'), "purple", "kind"),
        _moments("Canaries degraded or healthy again", scraped(_EVENTS, 'kind="canary"'), "orange", "kind"),
        _moments("Configuration loaded", scraped(_LOADED), "blue", "instance"),
        {
            "name": "Deploys annotated in Grafana",
            "enable": True,
            "iconColor": "green",
            "datasource": {"type": "grafana", "uid": "-- Grafana --"},
            "target": tagged,
        },
    ]


def _moments(name: str, selector: str, colour: str, label: str) -> Json:
    """Annotates the times that a series has as its values: the last time of each kind, at every instant shown."""
    latest = grouped("max", selector, label)
    return {**_annotation(name, f"1000 * {latest.expr}", colour, f"{{{{{label}}}}}"), "useValueForTime": True}


def _annotation(name: str, expr: str, colour: str, title: str) -> Json:
    return {
        "name": name,
        "enable": True,
        "iconColor": colour,
        "datasource": Query.source,
        "expr": expr,
        "titleFormat": f"{title} {' '.join(f'{{{{{label}}}}}' for label in PLACE)}",
    }


def _variables(plan: BoardPlan) -> list[JsonValue]:
    cluster, namespace, job = 'cluster=~"$cluster"', 'namespace=~"$namespace"', 'job=~"$job"'
    info = "ragwatch_build_info"
    drawn = f"ragwatch_samples_drawn_total{{{job},{cluster},{namespace}}}"
    judges = f"ragwatch_judge_info{{{job},{cluster},{namespace}}}"
    return [
        source_variable("prometheus"),
        *(
            {**_variable(name, selector, ALL, _BY_NAME), "multi": True, "includeAll": True, "allValue": every}
            for name, selector, every in (
                ("cluster", info, _ANY_OR_NONE),
                ("namespace", f"{info}{{{cluster}}}", _ANY_OR_NONE),
                ("job", f"{info}{{{cluster},{namespace}}}", _ANY),
                ("instance", f"{info}{{{job},{cluster},{namespace}}}", _ANY),
                ("route", drawn, _ANY),
            )
        ),
        # where Prometheus does not have the value, Grafana selects the first that it has
        _variable("judge", judges, chosen(plan.judge), _BY_NAME),
        _variable("window", recorded("", '__name__=~"all:ragwatch_quality:mean.+"'), chosen(plan.window), _BY_NUMBER),
        constant("pages", PAGES_LABEL, plan.pages),
    ]


def _variable(name: str, selector: str, current: Json, sort: int) -> Json:
    return variable(name, Query.source, {"query": f"label_values({selector}, {name})", "refId": name}, current, sort)


def source_variable(plugin: str) -> Json:
    """The variable with the data source of all panels."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": plugin}


def chosen(value: str) -> Json:
    """The value of a variable that has one."""
    return {"selected": True, "text": value, "value": value}


def variable(name: str, source: JsonValue, query: JsonValue, current: Json, sort: int = _BY_NAME) -> Json:
    """A variable with the values that a query returns."""
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": source,
        "query": query,
        "refresh": 2,
        "sort": sort,
        "current": current,
    }


def constant(name: str, label: str, value: str) -> Json:
    """A variable that nobody can change, not even with an address that leads to the dashboard."""
    return {
        "name": name,
        "label": label,
        "type": "constant",
        "query": value,
        "hide": 2,
        "skipUrlSync": True,
        "current": chosen(value),
        "options": [chosen(value)],
    }


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
        "keepTime": not url,
        "targetBlank": bool(url),
    }
