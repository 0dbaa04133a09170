"""How PostgreSQL uses its index of searches, and finds the worst scores and disputed answers."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.ports import Query
from ragwatch.stores.queries import (
    SCORE,
    Queries,
    Terms,
    Values,
    best_is_within,
    best_of,
    bounds_of,
    conditions_of,
    equalities_of,
    order_of_worst,
    ordered,
    scores_of,
    times_of,
)

_FROM = "verdicts v"
_FROM_INDEX = "verdicts v JOIN answer_index a ON a.key = v.key"
_DISPUTED = (  # as `queries` says: of two stages of one answer, each judge named one
    "v.stage IS NOT NULL AND v.key IN"
    " (SELECT o.key FROM verdicts o WHERE {times} GROUP BY o.key HAVING min(o.stage) <> max(o.stage))"
)
_NEWEST = "v.at DESC, v.seq DESC"


class PostgresQueries(Queries):
    """Statements of searches in PostgreSQL."""

    def newest(self, query: Query, columns: str, terms: Terms, values: Values) -> str:
        """See `Queries.newest`."""
        where = [*_indexed(query, terms, values), *_conditions(query), *equalities_of(query)]
        where += [*scores_of(query), *times_of(query)]
        source = _FROM_INDEX if terms or query.words else _FROM
        if query.disputed:
            return _loaded(columns, ordered("v.seq, v.part, v.at", source, where, _NEWEST), "m.at DESC, m.seq DESC")
        return ordered(columns, f"{source} LEFT JOIN samples s ON s.key = v.key", where, _NEWEST)

    def worst(self, query: Query, columns: str, terms: Terms, values: Values) -> str:
        """See `Queries.worst`. Each score is decoded once (OFFSET 0).

        With a search of the index, those that are not the best one are sorted and looked up until there are enough; as
        many of the best ones are the newest that the index has.
        """
        order, best = order_of_worst(query), best_of(query)
        others = [*_conditions(query), *equalities_of(query), *times_of(query)]
        scored = (
            f"SELECT v.key, v.seq, v.part, v.at, {SCORE} AS score FROM verdicts v"  # noqa: S608 - constants only
            f" WHERE {' AND '.join(others or ['TRUE'])} OFFSET 0"
        )
        bounds = ["m.score IS NOT NULL", *bounds_of(query, "m.score")]
        indexed = _indexed(query, terms, values)
        if not indexed:
            return _loaded(columns, ordered("m.*", f"({scored}) m", bounds, order), order)
        flawed = f"SELECT m.* FROM ({scored}) m WHERE {' AND '.join(bounds)} AND m.score <> {best} ORDER BY {order}"  # noqa: S608 - constants only
        matching = f"({flawed} OFFSET 0) m JOIN answer_index a ON a.key = m.key"
        picked = ordered("m.seq, m.part, m.at, m.score", matching, indexed, order)
        within = [] if best_is_within(query) else ["FALSE"]
        rest = ordered(
            f"v.seq, v.part, v.at, {SCORE} AS score",
            _FROM_INDEX,
            [*indexed, *others, f"{SCORE} = {best}", *within],
            _NEWEST,
        )
        rows = f"SELECT * FROM (({picked}) UNION ALL ({rest})) m ORDER BY {order} LIMIT :limit"  # noqa: S608 - constants only
        return _loaded(columns, rows, order)


def _indexed(query: Query, terms: Terms, values: Values) -> list[str]:
    """Conditions on the index of searches."""
    values |= {f"terms_{place}": list(alternatives) for place, alternatives in enumerate(terms)}
    where = [f"a.terms && %(terms_{place})b::bigint[]" for place in range(len(terms))]
    if query.words:
        phrases = ("(" + " <-> ".join(f"'{word}'" for word in phrase) + ")" for phrase in query.words)
        values["words"] = " & ".join(phrases)
        where.append("a.words @@ CAST(:words AS tsquery)")
    return where


def _conditions(query: Query) -> list[str]:
    """Conditions on other rows. Disputed answers are few: they are read in one go instead of one by one."""
    if not query.disputed:
        return conditions_of(query)
    times = " AND ".join(["TRUE", *times_of(replace(query, after=None), "o.at", "o.seq")])
    return [*conditions_of(replace(query, disputed=None)), _DISPUTED.format(times=times)]


def _loaded(columns: str, rows: str, order: str) -> str:
    """Statement that loads the texts of some rows only, and of no others that were compared."""
    tables = f"({rows}) m JOIN verdicts v ON v.seq = m.seq AND v.part = m.part LEFT JOIN samples s ON s.key = v.key"
    return f"SELECT {columns} FROM {tables} ORDER BY {order}"  # noqa: S608 - constants only
