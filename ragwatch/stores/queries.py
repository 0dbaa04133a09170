"""Translates a `Query` into one SQL statement with named parameters, of which the engines share all but the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.ports import AnswerQuery, Query
from ragwatch.stores.codec.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.decoding import VERDICT_COLUMNS
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
_BOUNDS = (("<", "below"), (">", "above"))
NEWEST = "v.at DESC, v.seq DESC"
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
    """One search as a statement. Each engine says how it uses its index, and how it finds the worst scores.

    Attributes:
        query: What is searched for.
        terms: Of which an answer must have one each.
        columns: What is returned.
        values: The parameters, to which building the statement adds.
    """

    def __init__(self, query: Query, terms: Terms, columns: str) -> None:
        self.query, self.terms, self.columns = query, terms, columns
        self.values: Values = {name: value for name in _VALUES if (value := getattr(query, name)) is not None}
        self.values |= {name: str(value) for name in _EQUALS if (value := getattr(query, name)) is not None}
        if query.quantity is not None:
            self.values["quantity"] = str(query.quantity)
        if query.after is not None:
            self.values["after_at"], self.values["after_seq"] = query.after

    @classmethod
    def full(cls, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for complete verdicts; `verdict_of` decodes the rows."""
        return cls(query, terms, f"{COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}").statement()

    @classmethod
    def summary(cls, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
        sql, values = cls(query, terms, f"{COLUMNS}, {_HEAD}").statement()
        return Statement(sql, {**values, "head": FIRST_SEGMENT_BYTES})

    @classmethod
    def seqs(cls, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for the sequence numbers of the verdicts alone."""
        return cls(query, terms, "v.seq").statement()

    def statement(self) -> Statement:
        """Return the statement of the search."""
        worst = self.query.worst and self.query.quantity is not None
        return Statement(self.worst() if worst else self.newest(), self.values)

    def newest(self) -> str:
        """Return the statement that finds the newest verdicts."""
        raise NotImplementedError

    def worst(self) -> str:
        """Return the statement that finds the verdicts with the worst scores."""
        raise NotImplementedError

    def last_examined(self) -> Statement | None:
        """Return the statement of the ids of the last answer that a limited search looks at, and of the next one.

        None if the search looks at all answers that have the words.
        """
        return None

    def others(self, *without: str) -> list[str]:
        """Conditions on other rows, and equalities of columns of the verdict."""
        asked = {name: wanted for name in _ON_OTHER_ROWS if (wanted := getattr(self.query, name)) is not None}
        return [
            *(
                _ON_OTHER_ROWS[name] if wanted else f"NOT {_ON_OTHER_ROWS[name]}"
                for name, wanted in asked.items()
                if name not in without
            ),
            *(f"v.{name} = :{name}" for name in _EQUALS if getattr(self.query, name) is not None),
        ]

    def bounds(self, score: str) -> list[str]:
        """Conditions that there is a score, within its bounds; none without a quantity."""
        if self.query.quantity is None:
            return []
        bounds = [f"{score} {sign} :{name}" for sign, name in _BOUNDS if getattr(self.query, name) is not None]
        return [f"{score} IS NOT NULL", *bounds]

    def times(self, at: str = "v.at", seq: str = "v.seq") -> list[str]:
        """Conditions on the time and the place in the order of the newest."""
        place = "CAST(:after_at AS double precision)"
        after = f"{at} <= {place} AND ({at}, {seq}) < ({place}, CAST(:after_seq AS bigint))"
        given = (f"{at} >= :since", self.query.since), (f"{at} < :until", self.query.until), (after, self.query.after)
        return [condition for condition, value in given if value is not None]

    @property
    def low_is_good(self) -> bool:
        """Whether low scores of the quantity are good."""
        return self.query.quantity in LOW_IS_GOOD

    @property
    def best(self) -> float:
        """The best score of the quantity."""
        return 0.0 if self.low_is_good else 1.0

    @property
    def best_is_within(self) -> bool:
        """Whether the best score is within the bounds."""
        below, above = self.query.below, self.query.above
        return (below is None or self.best < below) and (above is None or self.best > above)

    @property
    def order_of_worst(self) -> str:
        """The order of the worst scores, of rows `m`."""
        return f"m.score {'DESC' if self.low_is_good else 'ASC'}, m.at DESC, m.seq DESC"


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
    return Statement(ordered(f"{SCORE_COLUMNS}, t.body", source, where, NEWEST), values)
