"""Translates a Query into one SQL statement with bound parameters, and decodes its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.core.verdict_line import VerdictRecord, parse_verdict_line
from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, Query, StoredVerdict
from ragwatch.stores.sqlite.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.sqlite.rows import known_scores, number, raises_store_error, text, unpack
from ragwatch.stores.sqlite.texts import PackedText, damaged_text, excerpt

_COLUMNS = (
    "v.seq, v.key, v.judge, v.version, v.at, v.route, v.probability, v.outcome, v.reason, v.stage, v.fault, v.scores,"
    " v.trace_id"
)
_EQUALS = ("key", "route", "judge", "stage", "outcome")
_SCORE = "CASE WHEN json_valid(v.scores) THEN json_extract(v.scores, ?) END"  # a damaged row must not fail the search
_TRACE_CHARS = 256
_BODY = "NULLIF(s.body, x'00')"  # NULL where the texts are not kept: see `dropping`
ENTRY_BY_SEQ = (
    f"SELECT {_COLUMNS}, v.line, {_BODY} FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - constants only
    " WHERE v.seq = ?"
)


def statement(query: Query) -> tuple[str, list[Any]]:
    """Return SQL and parameters for complete verdicts; `verdict_of` decodes the rows.

    >>> statement(Query(route="search", limit=5))[1]
    ['search', 5]
    """
    return _select(query, f"{_COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}")


def summary_statement(query: Query) -> tuple[str, list[Any]]:
    """Return SQL and parameters for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
    line = "SUBSTR(v.line, 1, CASE WHEN SUBSTR(v.line, 1, 1) = x'02' THEN ?1 ELSE 1024 END)"
    head = f"{line}, s.body <> x'00', SUBSTR(s.body, 1, ?1)"
    sql, parameters = _select(query, f"{_COLUMNS}, {head}")
    return sql, [FIRST_SEGMENT_BYTES, *parameters]


def seq_statement(query: Query) -> tuple[str, list[Any]]:
    """Return SQL and parameters for the sequence numbers of the verdicts alone."""
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
    order = "v.at DESC, v.seq DESC"
    if query.worst and query.quantity is not None:
        order = f"{_SCORE} {'DESC' if query.quantity in LOW_IS_GOOD else 'ASC'}, {order}"
        parameters.append(f"$.{query.quantity}")
    sql = (
        f"SELECT {columns} FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - constants only
        f" WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    )
    return sql, [*parameters, query.limit]


@raises_store_error
def verdict_of(row: tuple[Any, ...]) -> StoredVerdict:
    """Decode a row of `statement`. A damaged text is left out and reported in `damage`; other rows are not affected."""
    *columns, packed_line, body = row
    damage: list[str] = []
    extra_fields = _extra_fields(columns)
    try:
        line = {**unpack(packed_line), **extra_fields}
        verdict = _parsed(line)
    except StoreError as error:
        damage.append(str(error))
        line = line_from_columns(columns)
        verdict = parse_verdict_line(line)
    sample = None
    try:
        sample = None if body is None else unpack(body)
    except StoreError as error:
        damage.append(str(error))
    return StoredVerdict(verdict, line, sample, damage[0] if damage else None)


@raises_store_error
def summary_of(row: tuple[Any, ...]) -> StoredVerdict:
    """Decode a row of `summary_statement`: all columns, and excerpts of the texts."""
    *columns, packed_line, has_sample, body = row
    sample, damage = None, None
    line = line_from_columns(columns)
    try:
        line["id"] = excerpt(packed_line).get("id", line["id"])
        sample = excerpt(body) if has_sample else None
    except StoreError as error:
        damage = str(error)
    verdict = parse_verdict_line(line)
    return StoredVerdict(verdict, {name: value for name, value in line.items() if value != []}, sample, damage)


@raises_store_error
def packed_verdict_of(row: tuple[Any, ...]) -> PackedVerdict:
    """Decode a row of `ENTRY_BY_SEQ`."""
    *columns, line, body = row
    sample = None if body is None else PackedText(body)
    bare = line_from_columns(columns)
    return PackedVerdict(
        seq=int(columns[0]),
        verdict=parse_verdict_line(bare),
        place=_extra_fields(columns),
        bare=bare,
        line=PackedText(line),
        sample=sample,
    )


def _parsed(line: Mapping[str, Any]) -> VerdictRecord:
    try:
        return parse_verdict_line(line)
    except ValueError as error:
        raise damaged_text(error) from error


def _extra_fields(columns: list[Any]) -> dict[str, Any]:
    """Return the fields beyond the verdict line of the contract."""
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


def line_from_columns(columns: list[Any]) -> dict[str, Any]:
    """Rebuild a verdict line from its columns, without texts, for a line that is damaged or too large to show."""
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
        **_extra_fields(columns),
    }


def _scores(packed: str | None) -> dict[str, float | None]:
    scores: dict[str, float | None] = dict.fromkeys(map(str, Quantity))
    try:
        stored = {} if packed is None else orjson.loads(packed)
    except ValueError:
        return scores
    return scores | dict(known_scores(stored)) if isinstance(stored, dict) else scores
