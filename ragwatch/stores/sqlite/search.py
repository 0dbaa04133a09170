"""Translates a Query into one SQL statement with bound parameters."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ragwatch.core.scores import LOW_IS_GOOD
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
    " LEFT JOIN samples s ON s.key = v.key"
)
_FROM_WORDS = (  # as far as the index of words says, then sorted
    "answer_index a CROSS JOIN verdicts v ON v.key = a.key LEFT JOIN samples s ON s.key = v.key"
)
_BY_WORDS = (
    "a.id IN (SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC LIMIT ?)"
)
MAX_MATCHES = 20_000  # of a search for words with other filters: the newest answers of its time
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


def statement(query: Query, terms: Terms = ()) -> tuple[str, list[Any]]:
    """Return SQL and parameters for complete verdicts; `verdict_of` decodes the rows.

    >>> statement(Query(route="search", limit=5))[1]
    ['search', 5]
    """
    return _select(query, f"{_COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}", terms)


def summary_statement(query: Query, terms: Terms = ()) -> tuple[str, list[Any]]:
    """Return SQL and parameters for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
    line = "SUBSTR(v.line, 1, CASE WHEN SUBSTR(v.line, 1, 1) = x'02' THEN ?1 ELSE 1024 END)"
    head = f"{line}, s.body <> x'00', SUBSTR(s.body, 1, ?1)"
    sql, parameters = _select(query, f"{_COLUMNS}, {head}", terms)
    return sql, [FIRST_SEGMENT_BYTES, *parameters]


def seq_statement(query: Query, terms: Terms = ()) -> tuple[str, list[Any]]:
    """Return SQL and parameters for the sequence numbers of the verdicts alone."""
    return _select(query, "v.seq", terms)


def answers_statement(query: AnswerQuery) -> tuple[str, list[Any]]:
    """Return SQL and parameters of a page of judged answers with their traits; `traits.answer_of` decodes the rows."""
    return traits.answers_statement(query, mark="?", scores="v.scores", place="?, ?", unbiased=UNBIASED)


def _of_index(query: Query, terms: Terms) -> tuple[list[str], list[Any]]:
    """Conditions on the index of searches, with their parameters."""
    marks = [", ".join("?" * len(alternatives)) for alternatives in terms]
    where = [_OTHER_TERM.format(marks=some) if place else f"t.term IN ({some})" for place, some in enumerate(marks)]
    parameters: list[Any] = [term for alternatives in terms for term in alternatives]
    if query.words:
        phrases = " AND ".join(f'"{" ".join(phrase)}"' for phrase in query.words)
        last = min([bound for bound in (query.until, *(query.after or ())[:1]) if bound is not None], default=inf)
        where.append(_BY_WORDS)
        parameters += [phrases, first_id(query.since or 0.0), first_id(last + 1.0), _matches(query, terms)]
    return where, parameters


def _matches(query: Query, terms: Terms) -> int:
    """The number of answers that are looked up in the index of words."""
    filtered = terms or any(getattr(query, name) is not None for name in _OTHER_FILTERS)
    return MAX_MATCHES if filtered else max(PLAIN_MATCHES, 2 * query.limit)


def _select(query: Query, columns: str, terms: Terms) -> tuple[str, list[Any]]:
    source, at = (_FROM_TERM, "t.at") if terms else (_FROM_WORDS if query.words else _FROM, "v.at")
    indexed, parameters = _of_index(query, terms)
    where = ["1", *conditions_of(query), *indexed]
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
            where.append(f"{at} {operator} ?")
            parameters.append(bound)
    if query.after is not None:
        where.append(f"{at} <= ? AND ({at}, v.seq) < (?, ?)")
        parameters += (query.after[0], *query.after)
    order = f"{at} DESC, v.seq DESC"
    if query.worst and query.quantity is not None:
        order = f"{_SCORE} {'DESC' if query.quantity in LOW_IS_GOOD else 'ASC'}, {order}"
        parameters.append(f"$.{query.quantity}")
    sql = (
        f"SELECT {columns} FROM {source}"  # noqa: S608 - constants only
        f" WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    )
    return sql, [*parameters, query.limit]
