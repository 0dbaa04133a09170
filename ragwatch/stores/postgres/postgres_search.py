"""Searches in PostgreSQL: an array of terms and a vector of words for each answer, and the statements that use them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragwatch.stores.dropping import MAX_ROWS_PER_STEP
from ragwatch.stores.engine import Writer
from ragwatch.stores.search_index import Entry
from ragwatch.stores.searching import NEWEST, SCORE, Queries, ordered

_INSERT = (
    "INSERT INTO answer_index (key, terms, words) VALUES (%s, %b::bigint[], %s::tsvector) ON CONFLICT (key)"
    " DO UPDATE SET words = excluded.words WHERE answer_index.words IS NULL AND excluded.words IS NOT NULL"
)
_DROP_WORDS = (
    "UPDATE answer_index SET words = NULL WHERE key = ANY(ARRAY("
    "SELECT key FROM answer_index WHERE words IS NOT NULL LIMIT %s))"
)
_GAP = 8  # between the positions of the last word of the question and the first one of the answer

_FROM = "verdicts v"
_FROM_INDEX = "verdicts v JOIN answer_index a ON a.key = v.key"
_DISPUTED = (  # as `queries` says: of two stages of one answer, each judge named one
    "v.stage IS NOT NULL AND v.key IN"
    " (SELECT o.key FROM verdicts o WHERE {times} GROUP BY o.key HAVING min(o.stage) <> max(o.stage))"
)


class PostgresIndex:
    """Implements `SearchIndex`. Entries go with the keys of their samples."""

    def add(self, writer: Writer, entries: Mapping[str, Entry]) -> None:
        rows = [
            (key, list(entry.terms), None if entry.words is None else words_vector(*entry.words))
            for key, entry in sorted(entries.items())
        ]
        writer.executemany(_INSERT, rows)

    def remove(self, writer: Writer, keys: Sequence[str]) -> None:
        writer.execute("DELETE FROM answer_index WHERE key = LIST(:keys)", {"keys": list(keys)})

    def remove_words(self, writer: Writer, keys: Sequence[str]) -> None:
        """See `SearchIndex.remove_words`. A trigger does it, also for workers of earlier versions."""

    def set_terms(self, writer: Writer, terms: Mapping[str, Sequence[int]]) -> None:
        rows = [(list(terms[key]), key) for key in sorted(terms)]
        writer.executemany("UPDATE answer_index SET terms = %b::bigint[], words = NULL WHERE key = %s", rows)


def words_vector(question: Sequence[str], answer: Sequence[str]) -> str:
    """Return the words of question and answer with their positions, as PostgreSQL reads them.

    >>> words_vector(["is", "tea", "tea"], ["yes"])
    'is:1 tea:2,3 yes:12'
    """
    places: dict[str, list[str]] = {}
    for texts, start in ((question, 1), (answer, len(question) + 1 + _GAP)):
        for place, word in enumerate(texts, start):
            places.setdefault(word, []).append(str(place))
    return " ".join(f"{word}:{','.join(where)}" for word, where in places.items())


def drop_words(writer: Writer) -> int:
    """Delete the words of a limited number of answers, because they are no longer indexed. Returns the number."""
    return writer.execute(_DROP_WORDS, (MAX_ROWS_PER_STEP,))


class PostgresQueries(Queries):
    """Searches in PostgreSQL."""

    def newest(self) -> str:
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
