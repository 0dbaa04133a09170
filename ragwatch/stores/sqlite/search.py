"""Search: a Query as one SQL statement with bound parameters, and its rows as what the web and the loops read."""

from __future__ import annotations

from typing import Any

import orjson

from ragwatch.core.scores import Quantity
from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, Query, StoredVerdict
from ragwatch.stores.sqlite.rows import number, sound, text, unpack
from ragwatch.stores.sqlite.texts import HEAD_BYTES, PackedText, excerpt

_PLACE = (
    "v.seq, v.key, v.judge, v.version, v.at, v.route, v.probability, v.outcome, v.reason, v.stage, v.fault, v.scores,"
    " v.trace_id"
)
_EQUALS = ("key", "route", "judge", "stage", "outcome")
_SCORE = "CASE WHEN json_valid(v.scores) THEN json_extract(v.scores, ?) END"  # a damaged row must not end the search
_TRACE_CHARS = 256
ENTRY = (
    f"SELECT {_PLACE}, v.line, s.body FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - our own words
    " WHERE v.seq = ?"
)


def statement(query: Query) -> tuple[str, list[Any]]:
    """The SQL for whole verdicts and its parameters; for `found_of`.

    >>> statement(Query(route="search", limit=5))[1]
    ['search', 5]
    """
    return _select(query, f"{_PLACE}, v.line, {'s.body' if query.texts else 'NULL'}")


def summaries(query: Query) -> tuple[str, list[Any]]:
    """The same for the rows of lists, of which only the first bytes of the texts are read; for `summary_of`."""
    head = "SUBSTR(v.line, 1, 1024), s.key IS NOT NULL, SUBSTR(s.body, 1, ?)"
    sql, parameters = _select(query, f"{_PLACE}, {head}")
    return sql, [HEAD_BYTES, *parameters]


def places(query: Query) -> tuple[str, list[Any]]:
    """The same for the numbers of the verdicts alone."""
    return _select(query, "v.seq")


def _select(query: Query, columns: str) -> tuple[str, list[Any]]:
    where, parameters = ["1"], []
    for name in _EQUALS:
        value = getattr(query, name)
        if value is not None:
            where.append(f"v.{name} = ?")
            parameters.append(value)
    if query.quantity is not None:
        path = f"$.{query.quantity}"
        where.append(f"{_SCORE} IS NOT NULL")
        parameters.append(path)
        for operator, bound in (("<", query.below), (">", query.above)):
            if bound is not None:
                where.append(f"{_SCORE} {operator} ?")
                parameters += [path, bound]
    for operator, bound in ((">=", query.since), ("<", query.until)):
        if bound is not None:
            where.append(f"v.at {operator} ?")
            parameters.append(bound)
    if query.after is not None:
        where.append("(v.at, v.seq) < (?, ?)")
        parameters += query.after
    sql = (
        f"SELECT {columns} FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - our own words only
        f" WHERE {' AND '.join(where)} ORDER BY v.at DESC, v.seq DESC LIMIT ?"
    )
    return sql, [*parameters, query.limit]


@sound
def found_of(row: tuple[Any, ...]) -> StoredVerdict:
    """A row of `statement`. What is damaged is left out, and named: it costs this row its text, and no other."""
    *columns, line, body = row
    damage: list[str] = []
    try:
        verdict = {**unpack(line), **_place(columns)}
    except StoreError as error:
        damage.append(str(error))
        verdict = bare_line(columns)
    sample = None
    try:
        sample = None if body is None else unpack(body)
    except StoreError as error:
        damage.append(str(error))
    return StoredVerdict(verdict, sample, damage[0] if damage else None)


@sound
def summary_of(row: tuple[Any, ...]) -> StoredVerdict:
    """A row of `summaries`: figures whole, texts cut short."""
    *columns, line, kept, body = row
    sample, damage = None, None
    verdict = {name: value for name, value in bare_line(columns).items() if value != []}
    try:
        verdict["id"] = excerpt(line).get("id", verdict["id"])
        sample = excerpt(body) if kept else None
    except StoreError as error:
        damage = str(error)
    return StoredVerdict(verdict, sample, damage)


@sound
def entry_of(row: tuple[Any, ...]) -> PackedVerdict:
    """A row of `ENTRY`."""
    *columns, line, body = row
    sample = None if body is None else PackedText(body)
    return PackedVerdict(int(columns[0]), _place(columns), bare_line(columns), PackedText(line), sample)


def _place(columns: list[Any]) -> dict[str, Any]:
    """What stands beside the verdict line of the contract."""
    _, key, judge, _, at, route, probability, *_, trace_id = columns
    trace_id = trace_id if trace_id is None else str(trace_id)[:_TRACE_CHARS]
    return {
        "key": text(key),
        "judge_name": text(judge),
        "route": text(route),
        "at": number(at),
        "probability": number(probability),
        "trace_id": trace_id,
    }


def bare_line(columns: list[Any]) -> dict[str, Any]:
    """A verdict as its columns tell it, without any text: where the line is damaged, or too large to be shown."""
    _, key, _, version, _, _, _, outcome, reason, stage, fault, scores, _ = columns
    unknown = dict.fromkeys(("seconds", "input_tokens", "output_tokens", "cost_usd"))
    return {
        "id": key,
        "outcome": outcome,
        "reason": reason,
        "scores": _scores(scores),
        "stage": stage,
        "fault": fault,
        "claims": [],
        "contexts": [],
        "missing": [],
        "address": None,
        "reference": None,
        "judge": {"kind": "", "version": version, **unknown},
        **_place(columns),
    }


def _scores(packed: str | None) -> dict[str, float | None]:
    known: dict[str, float | None] = dict.fromkeys(map(str, Quantity))
    try:
        stored = {} if packed is None else orjson.loads(packed)
    except ValueError:
        return known
    return known | stored if isinstance(stored, dict) else known
