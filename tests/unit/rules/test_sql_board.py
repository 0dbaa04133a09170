"""The dashboard for PostgreSQL: every query runs on a real server and returns what its panel draws."""

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.command_line import command
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.postgres import Postgres, shared_server
from support.stores import database, emptied

from ragwatch.model.budget import Cost
from ragwatch.ports import Feedback, RecordedEvent
from ragwatch.rules.dashboards import sql_board
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.postgres.views import make_views
from tools.dashboard_linter import left, panels

SCHEMA = "shown"
VALUES = {
    "schema": f"{SCHEMA}_views",
    "route:sqlstring": "'search','support'",
    "judge:sqlstring": f"'{JUDGE}'",
    "quantity:sqlstring": "'faithfulness'",
    "__interval": "5m",
}
BOARD: dict[str, Any] = dict(sql_board(schema=f"{SCHEMA}_views", judge=JUDGE))


def expanded(query: str) -> str:
    """A query as Grafana sends it: variables and macros of its PostgreSQL data source filled in."""
    for name, value in VALUES.items():
        query = query.replace(f"${{{name}}}", value).replace(f"${name}", value)
    query = re.sub(r"\$__unixEpochFilter\((\w+)\)", rf"\1 >= {AT - 3600:.0f} AND \1 <= {AT + 3600:.0f}", query)
    query = re.sub(r"\$__unixEpochGroup\((\w+), (\d+)m\)", r"floor((\1)/(\2*60))*(\2*60)", query)
    assert "$" not in query, query
    return query


@pytest.fixture(scope="module")
def server() -> Postgres:
    """A server with views of a few answers, feedback, an event and costs."""
    server = shared_server()
    emptied(server.url, SCHEMA)
    target = database(server.url, SCHEMA)
    store = PostgresStore(target)
    for number, row in enumerate([(1, 0), (0, 0), (1, 0)]):
        draw = a_draw(f"r{number}", at=AT + number, route=["search", "support"][number % 2], probability=0.5)
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw, an_evidence(row))])
        if not number:
            given = Feedback((draw.key,), 0.5, AT + 5, "app")
            admission = an_admission(cursor="2")
            store.admit(type(admission)("app", "log", "2", (), admission.tallies, at=AT + 5, feedback=(given,)))
    unjudged = a_draw("lost", at=AT)
    store.admit(an_admission(unjudged, a_draw("waiting", at=AT)))
    store.settle([an_unjudged(unjudged, "timeout")])
    store.record(RecordedEvent(AT, "release", "v2"))
    store.reserve(JUDGE, Cost(0.5, 100), (), now=AT)
    store.close()
    make_views(target)
    return server


def answered(server: Postgres, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a query."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(expanded(query).encode())
        return [column.name for column in cursor.description or ()], cursor.fetchall()


@pytest.mark.costly
def test_every_panel_has_rows_that_grafana_can_draw(server: Postgres) -> None:
    """Lines have a time, a text and numbers; tables have rows. None is empty here."""
    for panel in panels(BOARD):
        (target,) = panel["targets"]
        names, rows = answered(server, target["rawSql"])
        assert rows, panel["title"]
        if target["format"] == "time_series":
            assert names[0] == "time", panel["title"]
            cells = [(name, value) for row in rows for name, value in zip(names, row, strict=True)]
            assert all(isinstance(value, str) == (name == "metric") for name, value in cells)
            assert [row[0] for row in rows] == sorted(row[0] for row in rows)
        for field in re.findall(r"__data\.fields\.(\w+)", json.dumps(panel)):
            assert field in names


@pytest.mark.costly
def test_figures_are_right(server: Postgres) -> None:
    """Means, shares and costs of a case that can be worked out by hand."""
    queries = {panel["title"]: panel["targets"][0]["rawSql"] for panel in panels(BOARD)}
    means = {route: mean for _, route, mean in answered(server, queries["Mean by route"])[1]}
    assert means == {"search": 1.0, "support": 0.0}
    ((_, mean, low, high),) = answered(server, queries["Mean of the selected routes with its interval"])[1]
    assert mean == pytest.approx(2 / 3)
    assert 0.0 < low < mean < high < 1.0
    shares = {stage: share for _, stage, share in answered(server, queries["Stage at fault"])[1]}
    assert shares == pytest.approx({"none": 2 / 3, "generation": 1 / 3})
    assert [row[1:] for row in answered(server, queries["Unjudged answers by reason"])[1]] == [("timeout", 1.0)]
    assert [row[1:] for row in answered(server, queries["Cost by judge"])[1]] == [(JUDGE, 0.5)]
    names, worst = answered(server, queries["Worst answers"])
    assert worst[0][names.index("score")] == 0.0


@pytest.mark.costly
def test_variables_and_events_are_there(server: Postgres) -> None:
    """The choices of routes and judges, and the marks of events."""
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}
    assert answered(server, variables["route"]["query"])[1] == [("search",), ("support",)]
    assert answered(server, variables["judge"]["query"])[1] == [(JUDGE,)]
    (events,) = BOARD["annotations"]["list"]
    assert answered(server, events["rawQuery"])[1] == [(AT, "release v2", "release")]


@pytest.mark.costly
def test_the_index_is_used(server: Postgres) -> None:
    """A filter on `epoch` reaches the index through the views."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        for view in ("scores", "verdicts"):
            query = f"EXPLAIN SELECT count(*) FROM {SCHEMA}_views.{view} WHERE epoch >= 5 AND epoch <= 6"  # noqa: S608
            plan = "\n".join(row[0] for row in connection.execute(query.encode()).fetchall())
            assert "Index Cond: ((at >= " in plan, plan


def test_the_linter_finds_nothing() -> None:
    """It is laid out as the others."""
    assert left(BOARD, {}) == []


def test_it_is_written_for_a_postgres_store(tmp_path: Path) -> None:
    """`ragwatch rules --dashboards` adds it with the schema of the configuration; SQLite has no such dashboard."""
    config = tmp_path / "ragwatch.yaml"
    for store, expected in (
        ("{kind: postgres, url: 'postgresql://h/d', database_schema: rag}", True),
        ("{kind: sqlite}", False),
    ):
        config.write_text(f"sources: [{{kind: push, name: app}}]\nstore: {store}\n")
        out = tmp_path / f"out-{expected}"
        assert command("rules", "--config", config, "--dashboards", out).return_value == 0
        assert (out / "stored.json").exists() is expected
    board = json.loads((tmp_path / "out-True" / "stored.json").read_text())
    assert "rag_views" in [each.get("query") for each in board["templating"]["list"]]
