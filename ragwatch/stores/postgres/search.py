"""Translates a Query into one SQL statement with bound parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragwatch.core.scores import LOW_IS_GOOD
from ragwatch.ports import AnswerQuery, Query
from ragwatch.stores import traits
from ragwatch.stores.decoding import VERDICT_COLUMNS
from ragwatch.stores.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.postgres.pruning import unbiased
from ragwatch.stores.rows import conditions_of

_COLUMNS = ", ".join("v.scores::text" if name == "scores" else f"v.{name}" for name in VERDICT_COLUMNS)
_FROM = "verdicts v LEFT JOIN samples s USING (key)"
_FROM_INDEX = "verdicts v JOIN answer_index a ON a.key = v.key LEFT JOIN samples s ON s.key = v.key"
_EQUALS = ("key", "route", "judge", "stage", "outcome")
_SCORE = "(v.scores ->> %s)::float8"
_BODY = r"NULLIF(s.body, '\x00')"  # NULL where the texts are not kept
_HEAD = (
    r"substr(v.line, 1, CASE WHEN substr(v.line, 1, 1) = '\x02' THEN %s ELSE 1024 END), s.body <> '\x00',"
    " substr(s.body, 1, %s)"
)
ENTRY_BY_SEQ = (
    f"SELECT {_COLUMNS}, v.line, {_BODY} FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - constants only
    " WHERE v.seq = %s"
)


Terms = Sequence[Sequence[int]]
"""See `asked_terms`."""


def statement(query: Query, terms: Terms = ()) -> tuple[str, list[Any]]:
    """Return SQL and parameters for complete verdicts; `verdict_of` decodes the rows.

    >>> statement(Query(route="search", limit=5))[1]
    ['search', 5]
    """
    return _select(query, f"{_COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}", terms)


def summary_statement(query: Query, terms: Terms = ()) -> tuple[str, list[Any]]:
    """Return SQL and parameters for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
    sql, parameters = _select(query, f"{_COLUMNS}, {_HEAD}", terms)
    return sql, [FIRST_SEGMENT_BYTES, FIRST_SEGMENT_BYTES, *parameters]


def seq_statement(query: Query, terms: Terms = ()) -> tuple[str, list[Any]]:
    """Return SQL and parameters for the sequence numbers of the verdicts alone."""
    return _select(query, "v.seq", terms)


def answers_statement(query: AnswerQuery) -> tuple[str, list[Any]]:
    """Return SQL and parameters of a page of judged answers with their traits; `traits.answer_of` decodes the rows."""
    return traits.answers_statement(
        query, mark="%s", scores="v.scores::text", place="%s::float8, %s::bigint", unbiased=unbiased("v.")
    )


def _of_index(query: Query, terms: Terms) -> tuple[list[str], list[Any]]:
    """Conditions on the index of searches, with their parameters."""
    where = ["a.terms && %s::bigint[]" for _ in terms]
    parameters: list[Any] = [list(alternatives) for alternatives in terms]
    if query.words:
        where.append("a.words @@ %s::tsquery")
        parameters.append(
            " & ".join("(" + " <-> ".join(f"'{word}'" for word in phrase) + ")" for phrase in query.words)
        )
    return where, parameters


def _select(query: Query, columns: str, terms: Terms) -> tuple[str, list[Any]]:
    indexed, parameters = _of_index(query, terms)
    where = ["true", *conditions_of(query), *indexed]
    for name in _EQUALS:
        value = getattr(query, name)
        if value is not None:
            where.append(f"v.{name} = %s")
            parameters.append(str(value))
    if query.quantity is not None:
        path = str(query.quantity)
        where.append(f"{_SCORE} IS NOT NULL")
        parameters.append(path)
        for operator, bound in (("<", query.below), (">", query.above)):
            if bound is not None:
                where.append(f"{_SCORE} {operator} %s")
                parameters += [path, bound]
    for operator, bound in ((">=", query.since), ("<", query.until)):
        if bound is not None:
            where.append(f"v.at {operator} %s")
            parameters.append(bound)
    if query.after is not None:
        where.append("(v.at, v.seq) < (%s::float8, %s::bigint)")
        parameters += query.after
    order = "v.at DESC, v.seq DESC"
    if query.worst and query.quantity is not None:
        order = f"{_SCORE} {'DESC' if query.quantity in LOW_IS_GOOD else 'ASC'}, {order}"
        parameters.append(str(query.quantity))
    sql = (
        f"SELECT {columns} FROM {_FROM_INDEX if terms or query.words else _FROM}"  # noqa: S608 - constants only
        f" WHERE {' AND '.join(where)} ORDER BY {order} LIMIT %s"
    )
    return sql, [*parameters, query.limit]
