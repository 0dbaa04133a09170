"""Search: a query is words of ours and parameters of theirs."""

from __future__ import annotations

import pytest
from support.kit import JUDGE, a_draw, a_verdict, an_admission

from ragwatch.ports import Query
from ragwatch.stores.postgres.postgres_queries import PostgresQueries
from ragwatch.stores.sqlite.sqlite_queries import SqliteQueries
from ragwatch.stores.sqlite.store import SqliteStore

HOSTILE = "'; DROP TABLE verdicts; --"


@pytest.mark.parametrize("field", ["key", "route", "judge", "stage", "outcome"])
def test_x24_text_from_outside_is_a_parameter(field: str) -> None:
    """Nothing that a person can type becomes SQL."""
    for queries in (SqliteQueries, PostgresQueries):
        sql, parameters = queries.full(Query(**{field: HOSTILE}))
        assert HOSTILE not in sql
        assert parameters == {field: HOSTILE, "limit": 50}


def test_x24_hostile_values_find_nothing_and_change_nothing(store: SqliteStore) -> None:
    """As an id, a route, a key and a search: they are stored as they are, found as they are, and no table is gone."""
    draw = a_draw(HOSTILE, route=HOSTILE, question=HOSTILE)
    store.admit(an_admission(draw, a_draw("other")))
    store.settle([a_verdict(draw)])
    for field in ("key", "route", "judge", "stage", "outcome"):
        assert [row.verdict.id for row in store.find(Query(**{field: HOSTILE}))] == [HOSTILE] * (field == "route")
    assert (len(store.find(Query())), store.pending()) == (1, {JUDGE: 1})


def test_bounds_need_a_quantity() -> None:
    """A bound without the quantity it bounds narrows nothing."""
    full = SqliteQueries.full
    assert full(Query(below=0.5)).sql == full(Query(above=0.5)).sql == full(Query()).sql
