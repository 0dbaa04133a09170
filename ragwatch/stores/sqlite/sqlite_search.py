"""Searches in SQLite: terms in a table in the order of time, words in a full-text index, and statements that use them.

The full-text index has no copy of the texts: to delete an answer from it, its words are given again.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from ragwatch.statistics.text.search_words import MAX_EXAMINED
from ragwatch.stores.engine import Row, Writer
from ragwatch.stores.kept_texts import Rules
from ragwatch.stores.search_index import TERM_BYTES, Entry, Words, stored_words
from ragwatch.stores.searching import NEWEST, SCORE, Queries, Statement, Values, ordered

STATE = "search index"  # saved once all answers are in the index
_HASH_BITS, _SLOT_BITS = 19, 20  # ids that are taken are counted on, within the second
_MAX_SECOND = 1 << 42
_KNOWN = "SELECT id, at, terms, words FROM answer_index WHERE key = ?"
_BODY = "SELECT NULLIF(body, x'00') FROM samples WHERE key = ?"
_MAKE_WORDS = "CREATE VIRTUAL TABLE words USING fts5(question, answer, content='', columnsize=0, tokenize='ascii')"
HAS_WORDS = "SELECT 1 FROM sqlite_master WHERE name = 'words'"
_HAS_FTS5 = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
NO_FTS5 = "this SQLite is built without FTS5"

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


def indexable(writer: Writer, rules: Rules) -> Rules:
    """Return what can be indexed, and make the index of words, or delete it if words are no longer indexed.

    Writes nothing if nothing changes.
    """
    if not writer.rows(_HAS_FTS5):
        return rules._replace(words_off=NO_FTS5) if rules.words_off is None else rules
    exists = bool(writer.rows(HAS_WORDS))
    if rules.words_off is None and not exists:
        writer.execute(_MAKE_WORDS)
    elif rules.words_off is not None and exists:
        writer.execute("DROP TABLE words")
        writer.execute("UPDATE answer_index SET words = 0 WHERE words = 1")
    return rules


class SqliteIndex:
    """Implements `SearchIndex`."""

    def add(self, writer: Writer, entries: Mapping[str, Entry]) -> None:
        for key, entry in entries.items():
            known = _known(writer, key) or _insert(writer, key, entry)
            if entry.words is not None and not known[3]:
                row = (known[0], *_joined(entry.words))
                writer.execute("INSERT INTO words (rowid, question, answer) VALUES (?, ?, ?)", row)
                writer.execute("UPDATE answer_index SET words = 1 WHERE id = ?", (known[0],))

    def remove(self, writer: Writer, keys: Sequence[str]) -> None:
        self.remove_words(writer, keys)
        for key in keys:
            if (known := _known(writer, key)) is not None:
                _delete_terms(writer, known)
                writer.execute("DELETE FROM answer_index WHERE id = ?", known[:1])

    def remove_words(self, writer: Writer, keys: Sequence[str]) -> None:
        """See `SearchIndex.remove_words`.

        If a text is damaged, all words are removed: retention adds those of the other answers again.
        """
        for key in keys:
            known = _known(writer, key)
            if known is None or not known[3]:
                continue
            words = [stored_words(body) for (body,) in writer.rows(_BODY, (key,))]
            if words and words[0] is not None:
                row = (known[0], *_joined(words[0]))
                writer.execute("INSERT INTO words (words, rowid, question, answer) VALUES ('delete', ?, ?, ?)", row)
                writer.execute("UPDATE answer_index SET words = 0 WHERE id = ?", known[:1])
            else:
                writer.execute("INSERT INTO words (words) VALUES ('delete-all')")
                writer.execute("UPDATE answer_index SET words = 0")
                writer.execute("DELETE FROM states WHERE name = ?", (STATE,))

    def set_terms(self, writer: Writer, terms: Mapping[str, Sequence[int]]) -> None:
        for key, kept in terms.items():
            known = _known(writer, key)
            if known is not None and (packed := _packed(kept)) != known[2]:
                _delete_terms(writer, known)
                _insert_terms(writer, known[0], known[1], kept)
                writer.execute("UPDATE answer_index SET terms = ? WHERE id = ?", (packed, known[0]))


def _known(writer: Writer, key: str) -> Row | None:
    return next(iter(writer.rows(_KNOWN, (key,))), None)


def _joined(words: Words) -> tuple[str, str]:
    return " ".join(words[0]), " ".join(words[1])


def _insert(writer: Writer, key: str, entry: Entry) -> Row:
    identity = first_id(entry.at) + (zlib.crc32(key.encode("utf-8", "replace")) & ((1 << _HASH_BITS) - 1))
    while writer.rows("SELECT 1 FROM answer_index WHERE id = ?", (identity,)):
        identity += 1
    row = (identity, key, entry.at, _packed(entry.terms))
    writer.execute("INSERT INTO answer_index VALUES (?, ?, ?, ?, 0)", row)
    _insert_terms(writer, identity, entry.at, entry.terms)
    return (identity, entry.at, row[3], 0)


def _insert_terms(writer: Writer, identity: int, at: float, terms: Sequence[int]) -> None:
    writer.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", [(term, at, identity) for term in terms])


def _delete_terms(writer: Writer, known: Row) -> None:
    identity, at, packed, _ = known
    starts = range(0, len(packed), TERM_BYTES)
    terms = [int.from_bytes(packed[start : start + TERM_BYTES], "big", signed=True) for start in starts]
    writer.executemany(
        "DELETE FROM terms WHERE term = ? AND at = ? AND id = ?", [(term, at, identity) for term in terms]
    )


def _packed(terms: Iterable[int]) -> bytes:
    return b"".join(term.to_bytes(TERM_BYTES, "big", signed=True) for term in terms)


def first_id(at: float) -> int:
    """Return the lowest id of answers of the second of an instant; ids of later seconds are higher."""
    return int(min(max(at, 0.0), _MAX_SECOND)) << _SLOT_BITS


class SqliteQueries(Queries):
    """Searches in SQLite."""

    def newest(self) -> str:
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
        if not self._is_limited():
            return None
        values = self.values | self._match() | {"skipped": MAX_EXAMINED - 1}
        return f"SELECT rowid >> {_SLOT_BITS} FROM ({_MATCHES} LIMIT 2 OFFSET :skipped)", values  # noqa: S608 - constants

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
        query = self.query
        phrases = " AND ".join(f'"{" ".join(phrase)}"' for phrase in query.words)
        last = min([bound for bound in (query.until, *(query.after or ())[:1]) if bound is not None], default=inf)
        return {"words": phrases, "first_id": first_id(query.since or 0.0), "last_id": first_id(last + 1.0)}

    def _is_limited(self) -> bool:
        """Whether a search for words also has other filters, so that it looks at `MAX_EXAMINED` answers at most."""
        filtered = any(getattr(self.query, name) is not None for name in _OTHER_FILTERS)
        return bool(self.query.words and (self.terms or filtered))
