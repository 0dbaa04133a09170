"""Translates a `Query` into one SQL statement with named parameters, of which the engines share all but the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.ports import AnswerQuery, Query
from ragwatch.stores.decoding import VERDICT_COLUMNS
from ragwatch.stores.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.engine import UNBIASED
from ragwatch.stores.rows import SCORE_COLUMNS

COLUMNS = ", ".join("CAST(v.scores AS text)" if name == "scores" else f"v.{name}" for name in VERDICT_COLUMNS)
_BODY = "NULLIF(s.body, DROPPED)"  # NULL where the texts are not kept
_HEAD = (
    "SUBSTR(v.line, 1, CASE WHEN SUBSTR(v.line, 1, 1) = SEALED THEN :head ELSE 1024 END), s.body <> DROPPED,"
    " SUBSTR(s.body, 1, :head)"
)
ENTRY_BY_SEQ = (
    f"SELECT {COLUMNS}, v.line, {_BODY} FROM verdicts v LEFT JOIN samples s ON s.key = v.key"  # noqa: S608 - constants
    " WHERE v.seq = :seq"
)
SCORE = "SCORE(v.)"
_EQUALS = ("key", "route", "judge", "stage", "outcome")
_VALUES = ("quantity", "below", "above", "since", "until", "limit")
_ON_OTHER_ROWS = {
    "labelled": "EXISTS (SELECT 1 FROM labels l WHERE l.key = v.key)",
    "disputed": "EXISTS (SELECT 1 FROM verdicts o WHERE o.at = v.at AND o.key = v.key"
    " AND o.judge <> v.judge AND o.stage <> v.stage)",
}
"""What a search asks of other rows, by field of `Query`; each is looked up by the key of the sample."""

Terms = Sequence[Sequence[int]]
"""See `asked_terms`."""
Values = dict[str, object]


class Statement(NamedTuple):
    """A statement with its parameters."""

    sql: str
    values: Values


class Queries:
    """Statements of searches. Each engine says how it uses its index of searches, and how it finds the worst scores."""

    def full(self, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for complete verdicts; `verdict_of` decodes the rows."""
        return self._select(query, f"{COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}", terms)

    def summary(self, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
        sql, values = self._select(query, f"{COLUMNS}, {_HEAD}", terms)
        return Statement(sql, {**values, "head": FIRST_SEGMENT_BYTES})

    def seqs(self, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for the sequence numbers of the verdicts alone."""
        return self._select(query, "v.seq", terms)

    def _select(self, query: Query, columns: str, terms: Terms) -> Statement:
        values = values_of(query)
        select = self.worst if query.worst and query.quantity is not None else self.newest
        return Statement(select(query, columns, terms, values), values)

    def newest(self, query: Query, columns: str, terms: Terms, values: Values) -> str:
        """Return the statement that finds the newest verdicts; adds what it needs to `values`."""
        raise NotImplementedError

    def worst(self, query: Query, columns: str, terms: Terms, values: Values) -> str:
        """Return the statement that finds the verdicts with the worst scores; adds what it needs to `values`."""
        raise NotImplementedError

    def last_examined(self, query: Query, terms: Terms) -> Statement | None:  # noqa: ARG002 - of one engine
        """Return the statement of the ids of the last answer that a limited search looks at, and of the next one.

        None if the search looks at all answers that have the words.
        """
        return None


def values_of(query: Query) -> Values:
    """Return the parameters of a search by name.

    >>> values_of(Query(route="search", limit=5))
    {'limit': 5, 'route': 'search'}
    """
    values = {name: value for name in _VALUES if (value := getattr(query, name)) is not None}
    values |= {name: str(value) for name in _EQUALS if (value := getattr(query, name)) is not None}
    if query.quantity is not None:
        values["quantity"] = str(query.quantity)
    if query.after is not None:
        values["after_at"], values["after_seq"] = query.after
    return values


def conditions_of(query: Query) -> list[str]:
    """Conditions of a search on other rows."""
    asked = {name: wanted for name in _ON_OTHER_ROWS if (wanted := getattr(query, name)) is not None}
    return [_ON_OTHER_ROWS[name] if wanted else f"NOT {_ON_OTHER_ROWS[name]}" for name, wanted in asked.items()]


def equalities_of(query: Query) -> list[str]:
    """Conditions on columns of the verdict."""
    return [f"v.{name} = :{name}" for name in _EQUALS if getattr(query, name) is not None]


def bounds_of(query: Query, score: str) -> list[str]:
    """Conditions on the score."""
    bounds = (("<", "below"), (">", "above"))
    return [f"{score} {operator} :{name}" for operator, name in bounds if getattr(query, name) is not None]


def scores_of(query: Query) -> list[str]:
    """Conditions that the verdict has the score, within its bounds."""
    return [] if query.quantity is None else [f"{SCORE} IS NOT NULL", *bounds_of(query, SCORE)]


def times_of(query: Query, at: str = "v.at", seq: str = "v.seq") -> Iterator[str]:
    """Conditions on the time and the place in the order of the newest."""
    if query.since is not None:
        yield f"{at} >= :since"
    if query.until is not None:
        yield f"{at} < :until"
    if query.after is not None:
        place = "CAST(:after_at AS double precision)"
        yield f"{at} <= {place} AND ({at}, {seq}) < ({place}, CAST(:after_seq AS bigint))"


def best_of(query: Query) -> float:
    """The best score of the quantity."""
    return 0.0 if query.quantity in LOW_IS_GOOD else 1.0


def order_of_worst(query: Query) -> str:
    """The order of the worst scores, of rows `m`."""
    return f"m.score {'DESC' if query.quantity in LOW_IS_GOOD else 'ASC'}, m.at DESC, m.seq DESC"


def best_is_within(query: Query) -> bool:
    """Whether the best score is within the bounds."""
    best = best_of(query)
    return (query.below is None or best < query.below) and (query.above is None or best > query.above)


def ordered(columns: str, source: str, where: Sequence[str], order: str) -> str:
    """Return a statement that selects, in an order, as many rows as the query asks for."""
    return f"SELECT {columns} FROM {source} WHERE {' AND '.join(where or ['TRUE'])} ORDER BY {order} LIMIT :limit"  # noqa: S608 - constants


def answers_statement(query: AnswerQuery) -> Statement:
    """Return the statement of a page of judged answers with their traits; `traits.answer_of` decodes the rows."""
    values: Values = {"since": query.since, "until": query.until, "limit": query.limit}
    where = ["v.at >= :since", "v.at < :until", "v.outcome = 'judged'", UNBIASED]
    for name in ("route", "judge"):
        if (value := getattr(query, name)) is not None:
            where.append(f"v.{name} = :{name}")
            values[name] = value
    if query.before is not None:
        where.append("(v.at, v.seq) < (CAST(:before_at AS double precision), CAST(:before_seq AS bigint))")
        values["before_at"], values["before_seq"] = query.before
    source = "verdicts v LEFT JOIN traits t ON t.key = v.key"
    return Statement(ordered(f"{SCORE_COLUMNS}, t.body", source, where, "v.at DESC, v.seq DESC"), values)
