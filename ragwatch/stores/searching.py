"""Searches for verdicts and answers: one statement for each `Query`, which the engines share but for the index."""

from collections.abc import Callable, Iterator, Sequence

from ragwatch.errors import StoreError, UnsearchableError
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.ports import AnswerQuery, PackedVerdict, Query, ScoreRow, StoredVerdict
from ragwatch.statistics.causes.traits import Traits
from ragwatch.stores.encryption import FIRST_SEGMENT_BYTES
from ragwatch.stores.engine import UNBIASED, Component, Row
from ragwatch.stores.rows import (
    SCORE_COLUMNS,
    VERDICT_COLUMNS,
    packed_verdict_of,
    raises_store_error,
    score_row,
    summary_of,
    verdict_of,
)
from ragwatch.stores.search_index import asked_terms
from ragwatch.stores.texts import unpack

_BODY = "NULLIF(s.body, DROPPED)"  # NULL where the texts are not kept
_HEAD = (
    f"SUBSTR(v.line, 1, CASE WHEN SUBSTR(v.line, 1, 1) = SEALED THEN {FIRST_SEGMENT_BYTES} ELSE 1024 END),"
    f" s.body <> DROPPED, SUBSTR(s.body, 1, {FIRST_SEGMENT_BYTES})"
)
ENTRY_BY_SEQ = (
    f"SELECT {VERDICT_COLUMNS}, v.line, {_BODY} FROM verdicts v LEFT JOIN samples s ON s.key = v.key"  # noqa: S608 - constants
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
Statement = tuple[str, Values]
"""A statement with its parameters."""


class Queries:
    """One search as a statement. Each engine says how it uses its index, and how it finds the worst scores.

    Building the statement adds to `values`, its parameters.
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
        return cls(query, terms, f"{VERDICT_COLUMNS}, v.line, {_BODY if query.texts else 'NULL'}").statement()

    @classmethod
    def summary(cls, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for lists, with only the first bytes of the texts; `summary_of` decodes the rows."""
        return cls(query, terms, f"{VERDICT_COLUMNS}, {_HEAD}").statement()

    @classmethod
    def seqs(cls, query: Query, terms: Terms = ()) -> Statement:
        """Return the statement for the sequence numbers of the verdicts alone."""
        return cls(query, terms, "v.seq").statement()

    def statement(self) -> Statement:
        """Return the statement of the search."""
        worst = self.query.worst and self.query.quantity is not None
        return self.worst() if worst else self.newest(), self.values

    def newest(self) -> str:
        """Return the statement that finds the newest verdicts."""
        raise NotImplementedError

    def worst(self) -> str:
        """Return the statement that finds the verdicts with the worst scores."""
        raise NotImplementedError

    def last_examined(self) -> Statement | None:
        """Return the statement of the seconds of the last answer that a limited search looks at, and of the next one.

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
    """Return the statement of a page of judged answers with their traits; `_answer_of` decodes the rows."""
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
    return ordered(f"{SCORE_COLUMNS}, t.body", source, where, NEWEST), values


class Searching(Component):
    """Finds verdicts."""

    queries: type[Queries]

    def find(self, query: Query) -> list[StoredVerdict]:
        return self._decoded_verdicts(verdict_of, self.queries.full(query, self._asked(query)))

    def summaries(self, query: Query) -> list[StoredVerdict]:
        return self._decoded_verdicts(summary_of, self.queries.summary(query, self._asked(query)))

    def examined_since(self, query: Query) -> float | None:
        limit = self.queries(query, self._asked(query), "").last_examined()
        seconds = [] if limit is None else self.engine.pages.rows(*limit)
        return float(seconds[0][0]) if len(seconds) > 1 else None

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """See `Store.entries`. Loads one verdict at a time, without holding a transaction."""
        return map(packed_verdict_of, self._rows_of(self.queries.seqs(query, self._asked(query))))

    def verdicts(self, query: Query) -> Iterator[StoredVerdict]:
        """Yield matching verdicts, newest first, one at a time in memory; those deleted meanwhile are left out."""
        for *columns, body in self._rows_of(self.queries.seqs(query, self._asked(query))):
            yield verdict_of((*columns, body if query.texts else None))

    def _rows_of(self, search: Statement) -> Iterator[Row]:
        pages = self.engine.pages
        for (seq,) in pages.rows(*search, planned_once=False):
            yield from pages.rows(ENTRY_BY_SEQ, {"seq": seq})

    def replies(self, seq: int) -> tuple[str, ...]:
        """See `Store.replies`. There are none if they are damaged."""
        try:
            rows = self.engine.pages.rows("SELECT body FROM replies WHERE seq = :seq", {"seq": seq})
            return tuple(str(text) for (body,) in rows for text in unpack(body)["replies"])
        except (StoreError, LookupError, TypeError):
            return ()

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        return list(map(_answer_of, self.engine.pages.rows(*answers_statement(query))))

    def _decoded_verdicts(self, decode: Callable[[Row], StoredVerdict], search: Statement) -> list[StoredVerdict]:
        verdicts: list[StoredVerdict] = []
        damaged: list[str] = []
        for row in self.engine.pages.rows(*search, planned_once=False):
            try:
                verdicts.append(decode(row))
            except StoreError:  # without a readable key
                damaged.append(f"seq {row[0]}")
        damaged += [stored.verdict.key for stored in verdicts if stored.damage is not None]
        for key in damaged:
            self.engine.damage.note("verdicts", key)
        return verdicts

    def _asked(self, query: Query) -> list[list[int]]:
        if query.words and self.rules.words_off is not None:
            raise UnsearchableError(f"text: cannot be searched for: {self.rules.words_off}; leave it out")
        return asked_terms(query, self.rules.cipher)


@raises_store_error
def _answer_of(row: Row) -> tuple[ScoreRow, Traits | None]:
    """Decode a row of `answers_statement`; damaged traits are None, as if there were none."""
    body, traits = row[-1], None
    if body is not None:
        try:
            traits = unpack(body)
        except StoreError:
            traits = None
    return score_row(row[:-1]), traits
