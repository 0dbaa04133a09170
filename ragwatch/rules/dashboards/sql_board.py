"""Builds the dashboard for Grafana's PostgreSQL data source, on the views of `ragwatch store views`.

It shows what Prometheus does not have: every stored answer, for as long as the store keeps it. `epoch` is the column of
the views that has an index, so every panel filters by it.
"""

# ruff: noqa: S608 - Grafana fills in the variables, and quotes what people choose

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.rules.dashboards.board import ALL, PAGES_LABEL, chosen, constant, frame, source_variable, variable
from ragwatch.rules.dashboards.page import SHOWN_TIME, Page
from ragwatch.rules.dashboards.panel import PLACEHOLDER, Panel, laid_out
from ragwatch.rules.dashboards.query import Json, SqlQuery
from ragwatch.rules.yaml_writer import JsonValue

FILE = "stored.json"

_SHOWN = "$__unixEpochFilter(epoch) AND route IN (${route:sqlstring})"
_JUDGED = f"{_SHOWN} AND judge = ${{judge:sqlstring}}"
_SCORED = f"{_JUDGED} AND quantity = ${{quantity:sqlstring}}"
_TIME = '$__unixEpochGroup(epoch, $__interval) AS "time"'
_SUMS = ", ".join(
    f"sum({term})"
    for term in (
        "weight",
        "weight * value",
        "weight * weight",
        "weight * weight * value",
        "weight * weight * value * value",
    )
)


_ANSWERS = Page("Answers", "/samples", SHOWN_TIME)


def _panel(
    title: str,
    description: str,
    unit: str,
    sql: str,
    *,
    page: Page = _ANSWERS,
    kind: str = "timeseries",
    width: int = 12,
    custom: Mapping[str, JsonValue] = MappingProxyType({}),
) -> Panel:
    return Panel(title, description, unit, (SqlQuery(sql),), page, kind=kind, width=width, height=9, custom=custom)


_STACKED: Mapping[str, JsonValue] = {"stacking": {"mode": "normal"}, "fillOpacity": 60, "lineWidth": 0}
_BARS: Mapping[str, JsonValue] = {"drawStyle": "bars", "stacking": {"mode": "normal"}, "fillOpacity": 60}


_LOW = ", ".join(f"'{quantity}'" for quantity in Quantity if quantity in LOW_IS_GOOD)
_ORDER = f"CASE WHEN quantity IN ({_LOW}) THEN -score ELSE score END"  # the worst first

_QUALITY = (
    _panel(
        "Mean by route",
        "Weighted mean of the selected quantity. Answers of a time of which good ones were deleted are left out.",
        "percentunit",
        f"SELECT {_TIME}, route AS metric, sum(weight * value) / sum(weight) AS mean FROM $schema.scores\n"
        f"WHERE {_SCORED} GROUP BY 1, 2 ORDER BY 1",
    ),
    _panel(
        "Mean of the selected routes with its interval",
        "Mean, and both ends of its 95 % interval. Zoom out for narrower intervals.",
        "percentunit",
        f"SELECT {_TIME}, sum(weight * value) / sum(weight) AS mean,\n"
        f"  $schema.interval_low({_SUMS}) AS low,\n  $schema.interval_high({_SUMS}) AS high\n"
        f"FROM $schema.scores WHERE {_SCORED} GROUP BY 1 ORDER BY 1",
    ),
    _panel(
        "By version of the judge",
        "Scores of two versions are not comparable: a step of the mean where versions change is one of the judge.",
        "short",
        "SELECT judge, version, to_timestamp(min(epoch)) AS first, to_timestamp(max(epoch)) AS last,\n"
        "  count(*) AS answers, sum(weight * value) / sum(weight) AS mean\n"
        f"FROM $schema.scores WHERE {_SHOWN} AND quantity = ${{quantity:sqlstring}} GROUP BY 1, 2 ORDER BY first DESC",
        kind="table",
    ),
    _panel(
        "Worst answers",
        "Answers with the worst scores of the selected quantity; a row links to the answer.",
        "short",
        'SELECT s.at AS "time", s.route, s.score, v.stage, v.trace_id, v.key FROM (\n'
        f"  SELECT *, {_ORDER} AS place FROM $schema.scores WHERE {_SCORED} ORDER BY place, epoch DESC LIMIT 50\n"
        ") AS s JOIN $schema.verdicts AS v USING (seq) ORDER BY s.place, s.epoch DESC",
        page=Page("Answers", "/samples/${__data.fields.key}"),
        kind="table",
    ),
)
_FAULTS = (
    _panel(
        "Stage at fault",
        "Weighted share of judged answers by stage; unread ones are those where too little was read to decide.",
        "percentunit",
        f"SELECT {_TIME}, coalesce(stage, 'unread') AS metric,\n"
        f"  sum(weight) / sum(sum(weight)) OVER (PARTITION BY $__unixEpochGroup(epoch, $__interval)) AS share\n"
        f"FROM $schema.verdicts WHERE {_JUDGED} AND outcome = 'judged' GROUP BY 1, 2 ORDER BY 1",
        custom=_STACKED,
    ),
    _panel(
        "Unjudged answers by reason",
        "Answers that were drawn and could not be judged.",
        "short",
        f"SELECT {_TIME}, reason AS metric, count(*)::float8 AS answers FROM $schema.verdicts\n"
        f"WHERE {_JUDGED} AND outcome = 'unjudged' GROUP BY 1, 2 ORDER BY 1",
        custom=_BARS,
    ),
)
_USERS = (
    _panel(
        "Feedback of users",
        "Mean of what users say of answers, by the time of the answer.",
        "percentunit",
        f"SELECT {_TIME}, route AS metric, avg(score) AS mean FROM $schema.feedback\n"
        f"WHERE {_SHOWN} GROUP BY 1, 2 ORDER BY 1",
        width=8,
    ),
    _panel(
        "Cost by judge",
        "Calls by the time at which they began. Reservations that are not settled count in full.",
        "currencyUSD",
        f"SELECT {_TIME}, judge AS metric, sum(usd) AS usd FROM $schema.spending\n"
        "WHERE $__unixEpochFilter(epoch) GROUP BY 1, 2 ORDER BY 1",
        width=8,
        custom=_BARS,
    ),
    _panel(
        "Pending now",
        "Draws that no judge has read yet, whatever time is selected.",
        "short",
        "SELECT judge, route, draws, oldest FROM $schema.pending ORDER BY oldest",
        kind="table",
        width=8,
    ),
)
_ROWS: tuple[tuple[str, Sequence[Panel]], ...] = (
    ("Quality", _QUALITY),
    ("Faults", _FAULTS),
    ("Users, costs, queue", _USERS),
)


_EVENTS: Json = {
    "name": "Events",
    "enable": True,
    "iconColor": "green",
    "datasource": SqlQuery.source,
    "rawQuery": "SELECT epoch AS \"time\", kind || ' ' || detail AS text, kind AS tags FROM $schema.events\n"
    "WHERE $__unixEpochFilter(epoch) ORDER BY epoch",
}


def sql_board(*, pages: str = PLACEHOLDER, schema: str = "ragwatch_views", judge: str = "embedded") -> Json:
    """Builds the dashboard as Grafana JSON: URL of the pages, schema of the views, and the judge that it opens with."""
    return {
        **frame(
            "stored",
            "Stored answers",
            "Answers in the PostgreSQL store, by the views of `ragwatch store views`.",
            "5m",
            "now-7d",
        ),
        "annotations": {"list": [_EVENTS]},
        "templating": {"list": _variables(pages, schema, judge)},
        "links": [],
        "panels": laid_out((title, row, False) for title, row in _ROWS),
    }


def _variables(pages: str, schema: str, judge: str) -> list[JsonValue]:
    names = [str(quantity) for quantity in Quantity]
    values = "SELECT DISTINCT {} FROM $schema.verdicts WHERE $__unixEpochFilter(epoch) ORDER BY 1"
    return [
        source_variable("grafana-postgresql-datasource"),
        constant("schema", "Schema of the views", schema),
        {**variable("route", SqlQuery.source, values.format("route"), ALL), "multi": True, "includeAll": True},
        variable("judge", SqlQuery.source, values.format("judge"), chosen(judge)),
        {
            "name": "quantity",
            "label": "Quantity",
            "type": "custom",
            "query": ",".join(names),
            "current": chosen(names[0]),
            "options": [{**chosen(name), "selected": name == names[0]} for name in names],
        },
        constant("pages", PAGES_LABEL, pages),
    ]
