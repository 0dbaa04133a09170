"""How SQLite uses its index of searches, and its index of scores that are not the best one (`flaws`)."""

from __future__ import annotations

from math import inf

from ragwatch.statistics.text.search_words import MAX_EXAMINED
from ragwatch.stores.queries import NEWEST, SCORE, Queries, Statement, Values, ordered
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


class SqliteQueries(Queries):
    """Searches in SQLite."""

    def newest(self) -> str:
        """See `Queries.newest`."""
        source, at = self._source()
        where = [*self._indexed(), *self.others(), *self.bounds(SCORE), *self.times(at)]
        return ordered(self.columns, source, where, f"{at} DESC, v.seq DESC")

    def worst(self) -> str:
        """See `Queries.worst`. By the index of scores, then, for as many as are missing, the newest best ones."""
        if self.terms or self.query.words:
            return self._worst_of_index()
        ranks = []  # bounds of the score as those of the rank
        for sign, opposite, name in (("<", ">", "below"), (">", "<", "above")):
            if getattr(self.query, name) is not None:
                ranks.append(f"x.rank {opposite} -:{name}" if self.low_is_good else f"x.rank {sign} :{name}")
        where = ["x.name = :quantity", *ranks, *self.times("x.at", "x.seq"), *self.others()]
        sql = ordered(self.columns, _FROM_FLAWS, where, "x.rank, x.at DESC, x.seq DESC")
        if self.best_is_within:
            best = [f"{SCORE} = {self.best}", *self.times(), *self.others()]
            rest = ordered(self.columns, _FROM, best, NEWEST)
            sql = f"SELECT * FROM ({sql}) UNION ALL SELECT * FROM ({rest}) LIMIT :limit"  # noqa: S608 - constants only
        return sql

    def last_examined(self) -> Statement | None:
        """See `Queries.last_examined`."""
        if not self._is_limited():
            return None
        values = self.values | self._match() | {"skipped": MAX_EXAMINED - 1}
        return Statement(f"{_MATCHES} LIMIT 2 OFFSET :skipped", values)

    def _worst_of_index(self) -> str:
        """The worst of what the index of searches finds: scores are decoded once, texts read of what is returned."""
        source, at = self._source()
        where, order = [*self._indexed(), *self.others(), *self.times(at)], self.order_of_worst
        matches = f"SELECT v.seq AS seq, {at} AS at, {SCORE} AS score FROM {source} WHERE {' AND '.join(where)}"  # noqa: S608 - constants only
        worst = ordered("m.*", "m", self.bounds("m.score"), order)
        return (
            f"SELECT {self.columns} FROM (WITH m AS MATERIALIZED ({matches}) {worst}) m"  # noqa: S608 - constants only
            f" CROSS JOIN verdicts v ON v.seq = m.seq LEFT JOIN samples s ON s.key = v.key ORDER BY {order}"
        )

    def _source(self) -> tuple[str, str]:
        """Tables of a search, and their column of the time."""
        return (_FROM_TERM, "t.at") if self.terms else (_FROM_WORDS if self.query.words else _FROM, "v.at")

    def _indexed(self) -> list[str]:
        """Conditions on the index of searches."""
        where = []
        for place, alternatives in enumerate(self.terms):
            names = {f"term_{place}_{number}": term for number, term in enumerate(alternatives)}
            marks = ", ".join(f":{name}" for name in names)  # one alternative alone keeps the order of the index
            self.values |= names
            other = f"EXISTS (SELECT 1 FROM terms o WHERE o.term IN ({marks}) AND o.at = t.at AND o.id = t.id)"  # noqa: S608 - names
            where.append(other if place else f"t.term IN ({marks})")
        if self.query.words:
            plain = max(PLAIN_MATCHES, 2 * self.query.limit)
            self.values |= self._match() | {"examined": MAX_EXAMINED if self._is_limited() else plain}
            where.append(f"a.id IN ({_MATCHES} LIMIT :examined)")
        return where

    def _match(self) -> Values:
        """Parameters of `_MATCHES`."""
        query = self.query
        phrases = " AND ".join(f'"{" ".join(phrase)}"' for phrase in query.words)
        last = min([bound for bound in (query.until, *(query.after or ())[:1]) if bound is not None], default=inf)
        return {"words": phrases, "first_id": first_id(query.since or 0.0), "last_id": first_id(last + 1.0)}

    def _is_limited(self) -> bool:
        """Whether a search for words also has other filters, so that it looks at `MAX_EXAMINED` answers at most."""
        filtered = any(getattr(self.query, name) is not None for name in _OTHER_FILTERS)
        return bool(self.query.words and (self.terms or filtered))
