"""Search: a Query as one SQL statement with bound parameters, and its rows as Found."""

from __future__ import annotations

from typing import Any

from ragwatch.ports import Found, Query
from ragwatch.stores.rows import unpack

_COLUMNS = "v.line, v.judge, v.route, v.at, v.probability, v.trace_id, v.key, s.body"
_EQUALS = ("key", "route", "judge", "stage", "outcome")


def statement(query: Query) -> tuple[str, list[Any]]:
    """The SQL for a query and its parameters.

    >>> statement(Query(route="search", limit=5))[1]
    ['search', 5]
    """
    where, parameters = ["1"], []
    for name in _EQUALS:
        value = getattr(query, name)
        if value is not None:
            where.append(f"v.{name} = ?")
            parameters.append(value)
    if query.quantity is not None:
        path = f"$.{query.quantity}"
        where.append("json_extract(v.scores, ?) IS NOT NULL")
        parameters.append(path)
        for operator, bound in (("<", query.below), (">", query.above)):
            if bound is not None:
                where.append(f"json_extract(v.scores, ?) {operator} ?")
                parameters += [path, bound]
    for operator, bound in ((">=", query.since), ("<", query.until)):
        if bound is not None:
            where.append(f"v.at {operator} ?")
            parameters.append(bound)
    sql = (
        f"SELECT {_COLUMNS} FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - our own words only
        f" WHERE {' AND '.join(where)} ORDER BY v.at DESC, v.seq DESC LIMIT ?"
    )
    return sql, [*parameters, query.limit]


def found_of(row: tuple[Any, ...]) -> Found:
    """A row of the statement above."""
    line, judge, route, at, probability, trace_id, key, body = row
    place = {
        "key": key,
        "judge_name": judge,
        "route": route,
        "at": at,
        "probability": probability,
        "trace_id": trace_id,
    }
    return Found({**unpack(line), **place}, None if body is None else unpack(body))
