"""How SQLite uses its index of searches, and its index of scores that are not the best one (`flaws`)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ragwatch.core.search_words import MAX_EXAMINED
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.ports import Query
from ragwatch.stores.queries import (
    SCORE,
    Queries,
    Statement,
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
    values_of,
)
from ragwatch.stores.sqlite.sqlite_index import first_id

_FROM = "verdicts v LEFT JOIN samples s USING (key)"
_FROM_TERM = (  # in the order of the index of terms, which is that of time
    "terms t CROSS JOIN answer_index a ON a.id = t.id CROSS JOIN verdicts v ON v.key = a.key"
    " AND v.at = a.at LEFT JOIN samples s ON s.key = v.key"
)
_FROM_WORDS = (  # as far as the index of words says, then sorted
    "answer_index a CROSS JOIN verdicts v ON v.key = a.key AND v.at = a.at LEFT JOIN samples s ON s.key = v.key"
)
_FROM_FLAWS = "flaws x CROSS JOIN verdicts v ON v.seq = x.seq LEFT JOIN samples s ON s.key = v.key"
_MATCHES = (
    "SELECT rowid FROM words WHERE words MATCH :words AND rowid >= :first_id AND rowid < :last_id ORDER BY rowid DESC"
)
PLAIN_MATCHES = 1000  # of a search without other filters, whose first matches are its page
_OTHER_FILTERS = ("route", "judge", "stage", "outcome", "quantity", "labelled", "disputed")
_NEWEST = "v.at DESC, v.seq DESC"


class SqliteQueries(Queries):
    """Statements of searches in SQLite."""

    def newest(self, query: Query, columns: str, terms: Terms, values: Values) -> str:
        """See `Queries.newest`."""
        source, at = _source(query, terms)
        where = [*_indexed(query, terms, values), *conditions_of(query), *equalities_of(query)]
        return ordered(columns, source, [*where, *scores_of(query), *times_of(query, at)], f"{at} DESC, v.seq DESC")

    def worst(self, query: Query, columns: str, terms: Terms, values: Values) -> str:
        """See `Queries.worst`. By the index of scores, then, for as many as are missing, the newest best ones."""
        if terms or query.words:
            return _worst_of_index(query, columns, terms, values)
        low = query.quantity in LOW_IS_GOOD
        others = [*equalities_of(query), *conditions_of(query)]
        where = ["x.name = :quantity", *_ranks(query, low=low), *times_of(query, "x.at", "x.seq"), *others]
        sql = ordered(columns, _FROM_FLAWS, where, "x.rank, x.at DESC, x.seq DESC")
        if best_is_within(query):
            best = [f"{SCORE} = {best_of(query)}", *times_of(query), *others]
            rest = ordered(columns, _FROM, best, _NEWEST)
            sql = f"SELECT * FROM ({sql}) UNION ALL SELECT * FROM ({rest}) LIMIT :limit"  # noqa: S608 - constants only
        return sql

    def last_examined(self, query: Query, terms: Terms) -> Statement | None:
        """See `Queries.last_examined`."""
        if not _is_limited(query, terms):
            return None
        values = values_of(query) | _match(query) | {"skipped": MAX_EXAMINED - 1}
        return Statement(f"{_MATCHES} LIMIT 2 OFFSET :skipped", values)


def _ranks(query: Query, *, low: bool) -> Iterator[str]:
    """Bounds of the score as those of the rank."""
    for operator, opposite, name in (("<", ">", "below"), (">", "<", "above")):
        if getattr(query, name) is not None:
            yield f"x.rank {opposite} -:{name}" if low else f"x.rank {operator} :{name}"


def _worst_of_index(query: Query, columns: str, terms: Terms, values: Values) -> str:
    """The worst of what the index of searches finds: scores are decoded once, and texts read of what is returned."""
    source, at = _source(query, terms)
    where = [*_indexed(query, terms, values), *conditions_of(query), *equalities_of(query), *times_of(query, at)]
    bounds, order = ["m.score IS NOT NULL", *bounds_of(query, "m.score")], order_of_worst(query)
    matches = f"SELECT v.seq AS seq, {at} AS at, {SCORE} AS score FROM {source} WHERE {' AND '.join(where)}"  # noqa: S608 - constants only
    return (
        f"SELECT {columns} FROM (WITH m AS MATERIALIZED ({matches}) {ordered('m.*', 'm', bounds, order)}) m"  # noqa: S608 - constants only
        f" CROSS JOIN verdicts v ON v.seq = m.seq LEFT JOIN samples s ON s.key = v.key ORDER BY {order}"
    )


def _source(query: Query, terms: Terms) -> tuple[str, str]:
    """Tables of a search, and their column of the time."""
    return (_FROM_TERM, "t.at") if terms else (_FROM_WORDS if query.words else _FROM, "v.at")


def _indexed(query: Query, terms: Terms, values: Values) -> list[str]:
    """Conditions on the index of searches."""
    where = []
    for place, alternatives in enumerate(terms):
        names = {f"term_{place}_{number}": term for number, term in enumerate(alternatives)}
        marks = ", ".join(f":{name}" for name in names)  # one alternative alone keeps the order of the index
        values |= names
        other = f"EXISTS (SELECT 1 FROM terms o WHERE o.term IN ({marks}) AND o.at = t.at AND o.id = t.id)"  # noqa: S608 - names
        where.append(other if place else f"t.term IN ({marks})")
    if query.words:
        plain = max(PLAIN_MATCHES, 2 * query.limit)
        values |= _match(query) | {"examined": MAX_EXAMINED if _is_limited(query, terms) else plain}
        where.append(f"a.id IN ({_MATCHES} LIMIT :examined)")
    return where


def _match(query: Query) -> Values:
    """Parameters of `_MATCHES`."""
    phrases = " AND ".join(f'"{" ".join(phrase)}"' for phrase in query.words)
    last = min([bound for bound in (query.until, *(query.after or ())[:1]) if bound is not None], default=inf)
    return {"words": phrases, "first_id": first_id(query.since or 0.0), "last_id": first_id(last + 1.0)}


def _is_limited(query: Query, terms: Terms) -> bool:
    """Whether a search for words also has other filters, so that it looks at `MAX_EXAMINED` answers at most."""
    return bool(query.words and (terms or any(getattr(query, name) is not None for name in _OTHER_FILTERS)))
