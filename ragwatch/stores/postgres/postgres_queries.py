"""How PostgreSQL uses its index of searches, and finds the worst scores and disputed answers."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.stores.queries import NEWEST, SCORE, Queries, ordered

_FROM = "verdicts v"
_FROM_INDEX = "verdicts v JOIN answer_index a ON a.key = v.key"
_DISPUTED = (  # as `queries` says: of two stages of one answer, each judge named one
    "v.stage IS NOT NULL AND v.key IN"
    " (SELECT o.key FROM verdicts o WHERE {times} GROUP BY o.key HAVING min(o.stage) <> max(o.stage))"
)


class PostgresQueries(Queries):
    """Searches in PostgreSQL."""

    def newest(self) -> str:
        """See `Queries.newest`."""
        where = [*self._indexed(), *self._others(), *self.bounds(SCORE), *self.times()]
        source = _FROM_INDEX if self.terms or self.query.words else _FROM
        if self.query.disputed:
            rows = ordered("v.seq, v.part, v.at", source, where, NEWEST)
            return _loaded(self.columns, rows, "m.at DESC, m.seq DESC")
        return ordered(self.columns, f"{source} LEFT JOIN samples s ON s.key = v.key", where, NEWEST)

    def worst(self) -> str:
        """See `Queries.worst`. Each score is decoded once (OFFSET 0).

        With a search of the index, those that are not the best one are sorted and looked up until there are enough; as
        many of the best ones are the newest that the index has.
        """
        order, best, bounds = self.order_of_worst, self.best, self.bounds("m.score")
        others = [*self._others(), *self.times()]
        scored = (
            f"SELECT v.key, v.seq, v.part, v.at, {SCORE} AS score FROM verdicts v"  # noqa: S608 - constants only
            f" WHERE {' AND '.join(others or ['TRUE'])} OFFSET 0"
        )
        indexed = self._indexed()
        if not indexed:
            return _loaded(self.columns, ordered("m.*", f"({scored}) m", bounds, order), order)
        flawed = f"SELECT m.* FROM ({scored}) m WHERE {' AND '.join(bounds)} AND m.score <> {best} ORDER BY {order}"  # noqa: S608 - constants only
        matching = f"({flawed} OFFSET 0) m JOIN answer_index a ON a.key = m.key"
        picked = ordered("m.seq, m.part, m.at, m.score", matching, indexed, order)
        within = [] if self.best_is_within else ["FALSE"]
        rest = ordered(
            f"v.seq, v.part, v.at, {SCORE} AS score",
            _FROM_INDEX,
            [*indexed, *others, f"{SCORE} = {best}", *within],
            NEWEST,
        )
        rows = f"SELECT * FROM (({picked}) UNION ALL ({rest})) m ORDER BY {order} LIMIT :limit"  # noqa: S608 - constants only
        return _loaded(self.columns, rows, order)

    def _indexed(self) -> list[str]:
        """Conditions on the index of searches."""
        self.values |= {f"terms_{place}": list(alternatives) for place, alternatives in enumerate(self.terms)}
        where = [f"a.terms && %(terms_{place})b::bigint[]" for place in range(len(self.terms))]
        if self.query.words:
            phrases = ("(" + " <-> ".join(f"'{word}'" for word in phrase) + ")" for phrase in self.query.words)
            self.values["words"] = " & ".join(phrases)
            where.append("a.words @@ CAST(:words AS tsquery)")
        return where

    def _others(self) -> list[str]:
        """Conditions on other rows. Disputed answers are few: they are read in one go instead of one by one."""
        if not self.query.disputed:
            return self.others()
        everywhere = PostgresQueries(replace(self.query, after=None), (), "")
        times = " AND ".join(["TRUE", *everywhere.times("o.at", "o.seq")])
        return [_DISPUTED.format(times=times), *self.others("disputed")]


def _loaded(columns: str, rows: str, order: str) -> str:
    """Statement that loads the texts of some rows only, and of no others that were compared."""
    tables = f"({rows}) m JOIN verdicts v ON v.seq = m.seq AND v.part = m.part LEFT JOIN samples s ON s.key = v.key"
    return f"SELECT {columns} FROM {tables} ORDER BY {order}"  # noqa: S608 - constants only
