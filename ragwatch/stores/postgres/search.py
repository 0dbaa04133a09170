"""Translates a Query into one SQL statement with bound parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.ports import AnswerQuery, Query
from ragwatch.stores import traits
from ragwatch.stores.decoding import VERDICT_COLUMNS
from ragwatch.stores.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.postgres.pruning import unbiased
from ragwatch.stores.rows import conditions_of

_COLUMNS = ", ".join("v.scores::text" if name == "scores" else f"v.{name}" for name in VERDICT_COLUMNS)
_FROM = "verdicts v"
_FROM_INDEX = "verdicts v JOIN answer_index a ON a.key = v.key"
_DISPUTED = (  # as `CONDITIONS` of `stores.rows` says: of two stages of one answer, each judge named one
    "v.stage IS NOT NULL AND v.key IN"
    " (SELECT o.key FROM verdicts o WHERE {times} GROUP BY o.key HAVING min(o.stage) <> max(o.stage))"
)
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


def statement(query: Query, terms: Terms = ()) -> tuple[str, list[object]]:
    """Return SQL and parameters for complete verdicts; `verdict_of` decodes the rows.

    >>> statement(Query(route="search", limit=5))[1]
    ['search', 5]
    """
    return _select(query, f"{_COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}", terms)


def summary_statement(query: Query, terms: Terms = ()) -> tuple[str, list[object]]:
    """Return SQL and parameters for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
    sql, parameters = _select(query, f"{_COLUMNS}, {_HEAD}", terms)
    return sql, [FIRST_SEGMENT_BYTES, FIRST_SEGMENT_BYTES, *parameters]


def seq_statement(query: Query, terms: Terms = ()) -> tuple[str, list[object]]:
    """Return SQL and parameters for the sequence numbers of the verdicts alone."""
    return _select(query, "v.seq", terms)


def answers_statement(query: AnswerQuery) -> tuple[str, list[object]]:
    """Return SQL and parameters of a page of judged answers with their traits; `traits.answer_of` decodes the rows."""
    return traits.answers_statement(
        query, mark="%s", scores="v.scores::text", place="%s::float8, %s::bigint", unbiased=unbiased("v.")
    )


def _of_index(query: Query, terms: Terms) -> tuple[list[str], list[object]]:
    """Conditions on the index of searches, with their parameters."""
    where = ["a.terms && %b::bigint[]" for _ in terms]
    parameters: list[object] = [list(alternatives) for alternatives in terms]
    if query.words:
        where.append("a.words @@ %s::tsquery")
        parameters.append(
            " & ".join("(" + " <-> ".join(f"'{word}'" for word in phrase) + ")" for phrase in query.words)
        )
    return where, parameters


def _select(query: Query, columns: str, terms: Terms) -> tuple[str, list[object]]:
    indexed = _of_index(query, terms)
    if query.worst and query.quantity is not None:
        return _worst_first(query, query.quantity, columns, indexed)
    where, parameters = indexed
    where += [*_conditions(query, parameters), *_equalities(query, parameters)]
    if query.quantity is not None:
        path = str(query.quantity)
        where.append(f"{_SCORE} IS NOT NULL")
        parameters.append(path)
        for operator, bound in _bounds(query):
            where.append(f"{_SCORE} {operator} %s")
            parameters += [path, bound]
    where += _times(query, "v.", parameters)
    condition = " AND ".join(where or ["true"])
    source = _FROM_INDEX if terms or query.words else _FROM
    newest = "ORDER BY v.at DESC, v.seq DESC LIMIT %s"
    if query.disputed:
        rows = f"SELECT v.seq, v.part, v.at FROM {source} WHERE {condition} {newest}"  # noqa: S608 - constants only
        sql = _loaded(columns, rows, "m.at DESC, m.seq DESC")
    else:
        tables = f"{source} LEFT JOIN samples s ON s.key = v.key"
        sql = f"SELECT {columns} FROM {tables} WHERE {condition} {newest}"  # noqa: S608 - constants only
    return sql, [*parameters, query.limit]


def _worst_first(
    query: Query, quantity: Quantity, columns: str, indexed: tuple[list[str], list[object]]
) -> tuple[str, list[object]]:
    """The worst scores: each is decoded once (OFFSET 0).

    With a search of the index, those that are not the best one are sorted and looked up until there are enough; as many
    of the best ones are the newest that the index has.
    """
    low, path = quantity in LOW_IS_GOOD, str(quantity)
    order = f"m.score {'DESC' if low else 'ASC'}, m.at DESC, m.seq DESC"
    parameters: list[object] = [path]
    where = [*_conditions(query, parameters), *_equalities(query, parameters), *_times(query, "v.", parameters)]
    condition = " AND ".join(where or ["true"])
    scored = f"SELECT v.key, v.seq, v.part, v.at, {_SCORE} AS score FROM {_FROM} WHERE {condition} OFFSET 0"  # noqa: S608 - constants only
    bounds = ["m.score IS NOT NULL", *(f"m.score {operator} %s" for operator, _ in _bounds(query))]
    limits = [bound for _, bound in _bounds(query)]
    conditions, values = indexed
    ranked = f"SELECT m.* FROM ({scored}) m WHERE {' AND '.join(bounds)}"  # noqa: S608 - constants only
    if not conditions:
        return _loaded(columns, f"{ranked} ORDER BY {order} LIMIT %s", order), [*parameters, *limits, query.limit]
    best, searched = (0.0 if low else 1.0), " AND ".join(conditions)
    flawed = (
        f"SELECT m.seq, m.part, m.at, m.score FROM ({ranked} AND m.score <> {best} ORDER BY {order} OFFSET 0) m"  # noqa: S608 - constants only
        f" JOIN answer_index a ON a.key = m.key WHERE {searched} ORDER BY {order} LIMIT %s"
    )
    rest = (
        f"SELECT v.seq, v.part, v.at, {_SCORE} AS score FROM {_FROM_INDEX}"  # noqa: S608 - constants only
        f" WHERE {searched} AND {condition} AND {_SCORE} = {best} {_within(query, best)}"
        " ORDER BY v.at DESC, v.seq DESC LIMIT %s"
    )
    rows = f"SELECT * FROM (({flawed}) UNION ALL ({rest})) m ORDER BY {order} LIMIT %s"  # noqa: S608 - constants only
    of_rest = [path, *values, *parameters[1:], path]
    limit = query.limit
    return _loaded(columns, rows, order), [*parameters, *limits, *values, limit, *of_rest, limit, limit]


def _within(query: Query, best: float) -> str:
    """Nothing if the best score is within the bounds, else a condition that is never true."""
    above, below = query.above, query.below
    return "" if (below is None or best < below) and (above is None or best > above) else "AND false"


def _loaded(columns: str, rows: str, order: str) -> str:
    """Statement that loads the texts of some rows only, and of no others that were compared."""
    tables = f"({rows}) m JOIN verdicts v ON v.seq = m.seq AND v.part = m.part LEFT JOIN samples s ON s.key = v.key"
    return f"SELECT {columns} FROM {tables} ORDER BY {order}"  # noqa: S608 - constants only


def _conditions(query: Query, parameters: list[object]) -> list[str]:
    """Conditions on other rows. Disputed answers are few: they are read in one go instead of one by one."""
    if not query.disputed:
        return conditions_of(query)
    times = " AND ".join(["true", *_times(replace(query, after=None), "o.", parameters)])
    return [*conditions_of(replace(query, disputed=None)), _DISPUTED.format(times=times)]


def _equalities(query: Query, parameters: list[object]) -> list[str]:
    given = {name: value for name in _EQUALS if (value := getattr(query, name)) is not None}
    parameters += map(str, given.values())
    return [f"v.{name} = %s" for name in given]


def _bounds(query: Query) -> Iterator[tuple[str, float]]:
    return ((operator, bound) for operator, bound in (("<", query.below), (">", query.above)) if bound is not None)


def _times(query: Query, table: str, parameters: list[object]) -> list[str]:
    where = []
    for operator, bound in ((">=", query.since), ("<", query.until)):
        if bound is not None:
            where.append(f"{table}at {operator} %s")
            parameters.append(bound)
    if query.after is not None:
        where.append(f"({table}at, {table}seq) < (%s::float8, %s::bigint)")
        parameters += query.after
    return where
