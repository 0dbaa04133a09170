"""Translates a Query into one SQL statement with bound parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import inf

from ragwatch.core.search_words import MAX_EXAMINED
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.ports import AnswerQuery, Query
from ragwatch.stores import traits
from ragwatch.stores.decoding import VERDICT_COLUMNS
from ragwatch.stores.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.rows import conditions_of
from ragwatch.stores.sqlite.indexing import first_id
from ragwatch.stores.sqlite.retention import UNBIASED

_COLUMNS = ", ".join(f"v.{name}" for name in VERDICT_COLUMNS)
_FROM = "verdicts v LEFT JOIN samples s USING (key)"
_FROM_TERM = (  # in the order of the index of terms, which is that of time
    "terms t CROSS JOIN answer_index a ON a.id = t.id CROSS JOIN verdicts v ON v.key = a.key"
    " AND v.at = a.at LEFT JOIN samples s ON s.key = v.key"
)
_FROM_WORDS = (  # as far as the index of words says, then sorted
    "answer_index a CROSS JOIN verdicts v ON v.key = a.key AND v.at = a.at LEFT JOIN samples s ON s.key = v.key"
)
_FROM_FLAWS = "flaws x CROSS JOIN verdicts v ON v.seq = x.seq LEFT JOIN samples s ON s.key = v.key"
_MATCHES = "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC"
PLAIN_MATCHES = 1000  # of one without, whose first matches are its page
_OTHER_FILTERS = ("route", "judge", "stage", "outcome", "quantity", "labelled", "disputed")
_OTHER_TERM = "EXISTS (SELECT 1 FROM terms o WHERE o.term IN ({marks}) AND o.at = t.at AND o.id = t.id)"
_EQUALS = ("key", "route", "judge", "stage", "outcome")
_SCORE = "CASE WHEN json_valid(v.scores) THEN json_extract(v.scores, ?) END"  # a damaged row must not fail the search
_BODY = "NULLIF(s.body, x'00')"  # NULL where the texts are not kept: see `dropping`
ENTRY_BY_SEQ = (
    f"SELECT {_COLUMNS}, v.line, {_BODY} FROM verdicts v LEFT JOIN samples s USING (key)"  # noqa: S608 - constants only
    " WHERE v.seq = ?"
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
    line = "SUBSTR(v.line, 1, CASE WHEN SUBSTR(v.line, 1, 1) = x'02' THEN ?1 ELSE 1024 END)"
    head = f"{line}, s.body <> x'00', SUBSTR(s.body, 1, ?1)"
    sql, parameters = _select(query, f"{_COLUMNS}, {head}", terms)
    return sql, [FIRST_SEGMENT_BYTES, *parameters]


def seq_statement(query: Query, terms: Terms = ()) -> tuple[str, list[object]]:
    """Return SQL and parameters for the sequence numbers of the verdicts alone."""
    return _select(query, "v.seq", terms)


def answers_statement(query: AnswerQuery) -> tuple[str, list[object]]:
    """Return SQL and parameters of a page of judged answers with their traits; `traits.answer_of` decodes the rows."""
    return traits.answers_statement(query, mark="?", scores="v.scores", place="?, ?", unbiased=UNBIASED)


def _of_index(query: Query, terms: Terms) -> tuple[list[str], list[object]]:
    """Conditions on the index of searches, with their parameters."""
    marks = [", ".join("?" * len(alternatives)) for alternatives in terms]
    where = [_OTHER_TERM.format(marks=some) if place else f"t.term IN ({some})" for place, some in enumerate(marks)]
    parameters: list[object] = [term for alternatives in terms for term in alternatives]
    if query.words:
        plain = max(PLAIN_MATCHES, 2 * query.limit)
        where.append(f"a.id IN ({_MATCHES} LIMIT ?)")
        parameters += [*_match(query), MAX_EXAMINED if is_limited(query, terms) else plain]
    return where, parameters


def _match(query: Query) -> list[object]:
    """Parameters of `_MATCHES`."""
    phrases = " AND ".join(f'"{" ".join(phrase)}"' for phrase in query.words)
    last = min([bound for bound in (query.until, *(query.after or ())[:1]) if bound is not None], default=inf)
    return [phrases, first_id(query.since or 0.0), first_id(last + 1.0)]


def is_limited(query: Query, terms: Terms) -> bool:
    """Whether a search for words also has other filters, so that it looks at `MAX_EXAMINED` answers at most."""
    return bool(query.words and (terms or any(getattr(query, name) is not None for name in _OTHER_FILTERS)))


def last_examined_statement(query: Query) -> tuple[str, list[object]]:
    """Return SQL and parameters of the ids of the last answer that a limited search looks at, and of the next one."""
    return f"{_MATCHES} LIMIT 2 OFFSET ?", [*_match(query), MAX_EXAMINED - 1]


def _select(query: Query, columns: str, terms: Terms) -> tuple[str, list[object]]:
    if query.worst and query.quantity is not None:
        if terms or query.words:
            return _worst_of_index(query, query.quantity, columns, terms)
        return _worst_first(query, query.quantity, columns)
    source, at = _source(query, terms)
    indexed, parameters = _of_index(query, terms)
    where = ["1", *indexed, *conditions_of(query)]
    _add(where, parameters, _equalities(query), _scores(query), _times(query, at, "v.seq"))
    return _ordered(columns, source, where, f"{at} DESC, v.seq DESC"), [*parameters, query.limit]


def _source(query: Query, terms: Terms) -> tuple[str, str]:
    """Tables of a search, and their column of the time."""
    return (_FROM_TERM, "t.at") if terms else (_FROM_WORDS if query.words else _FROM, "v.at")


def _worst_of_index(query: Query, quantity: Quantity, columns: str, terms: Terms) -> tuple[str, list[object]]:
    """The worst of what the index of searches finds: scores are decoded once, and texts read of what is returned."""
    source, at = _source(query, terms)
    indexed, parameters = _of_index(query, terms)
    where = [*indexed, *conditions_of(query)]
    _add(where, parameters, _equalities(query), _times(query, at, "v.seq"))
    bounds, values = ["m.score IS NOT NULL"], list[object]()
    _add(bounds, values, ((f"m.score {operator} ?", [bound]) for operator, bound in _bounds(query)))
    order = f"m.score {'DESC' if quantity in LOW_IS_GOOD else 'ASC'}, m.at DESC, m.seq DESC"
    matches = f"SELECT v.seq AS seq, {at} AS at, {_SCORE} AS score FROM {source} WHERE {' AND '.join(where)}"  # noqa: S608 - constants only
    sql = (
        f"SELECT {columns} FROM (WITH m AS MATERIALIZED ({matches}) {_ordered('m.*', 'm', bounds, order)}) m"  # noqa: S608 - constants only
        f" CROSS JOIN verdicts v ON v.seq = m.seq LEFT JOIN samples s ON s.key = v.key ORDER BY {order}"
    )
    return sql, [f"$.{quantity}", *parameters, *values, query.limit]


def _worst_first(query: Query, quantity: Quantity, columns: str) -> tuple[str, list[object]]:
    """The scores that are not the best one by their index, then, for as many as are missing, the newest best ones."""
    low = quantity in LOW_IS_GOOD
    where, parameters = ["x.name = ?"], list[object]([str(quantity)])
    _add(where, parameters, _ranks(query, low=low), _times(query, "x.at", "x.seq"), _equalities(query))
    sql = _ordered(columns, _FROM_FLAWS, [*where, *conditions_of(query)], "x.rank, x.at DESC, x.seq DESC")
    parameters.append(query.limit)
    best = 0.0 if low else 1.0
    if (query.below is None or best < query.below) and (query.above is None or best > query.above):
        where = [f"{_SCORE} = {best}"]
        parameters.append(f"$.{quantity}")
        _add(where, parameters, _equalities(query), _times(query, "v.at", "v.seq"))
        rest = _ordered(columns, _FROM, [*where, *conditions_of(query)], "v.at DESC, v.seq DESC")
        sql = f"SELECT * FROM ({sql}) UNION ALL SELECT * FROM ({rest}) LIMIT ?"  # noqa: S608 - constants only
        parameters += [query.limit, query.limit]
    return sql, parameters


def _ordered(columns: str, source: str, where: Sequence[str], order: str) -> str:
    return f"SELECT {columns} FROM {source} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"  # noqa: S608 - constants only


Conditions = Iterator[tuple[str, Sequence[object]]]
"""Each with its parameters."""


def _add(where: list[str], parameters: list[object], *conditions: Conditions) -> None:
    for condition, values in chain(*conditions):
        where.append(condition)
        parameters += values


def _equalities(query: Query) -> Conditions:
    for name in _EQUALS:
        if (value := getattr(query, name)) is not None:
            yield f"v.{name} = ?", [value]


def _scores(query: Query) -> Conditions:
    if query.quantity is None:
        return
    path = f"$.{query.quantity}"
    yield f"{_SCORE} IS NOT NULL", [path]
    for operator, bound in _bounds(query):
        yield f"{_SCORE} {operator} ?", [path, bound]


def _ranks(query: Query, *, low: bool) -> Conditions:
    """Bounds of the score as those of the rank."""
    for operator, bound in _bounds(query):
        opposite = ">" if operator == "<" else "<"
        yield f"x.rank {opposite if low else operator} ?", [-bound if low else bound]


def _bounds(query: Query) -> Iterator[tuple[str, float]]:
    return ((operator, bound) for operator, bound in (("<", query.below), (">", query.above)) if bound is not None)


def _times(query: Query, at: str, seq: str) -> Conditions:
    for operator, bound in ((">=", query.since), ("<", query.until)):
        if bound is not None:
            yield f"{at} {operator} ?", [bound]
    if query.after is not None:
        yield f"{at} <= ? AND ({at}, {seq}) < (?, ?)", [query.after[0], *query.after]
