"""The index of searches in SQLite: terms in a table in the order of time, words in a full-text index.

The full-text index has no copy of the texts: to delete an answer from it, its words are given again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

from ragwatch.stores.engine import Row, Writer
from ragwatch.stores.search.answer_terms import TERM_BYTES, Rules, stored_words
from ragwatch.stores.search.indexing import Entry, Words

STATE = "search index"  # saved once all answers are in the index
_HASH_BITS, _SLOT_BITS = 19, 20  # ids that are taken are counted on, within the second
_MAX_SECOND = 1 << 42
_KNOWN = "SELECT id, at, terms, words FROM answer_index WHERE key = ?"
_BODY = "SELECT NULLIF(body, x'00') FROM samples WHERE key = ?"
_MAKE_WORDS = "CREATE VIRTUAL TABLE words USING fts5(question, answer, content='', columnsize=0, tokenize='ascii')"
HAS_WORDS = "SELECT 1 FROM sqlite_master WHERE name = 'words'"
_HAS_FTS5 = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
NO_FTS5 = "this SQLite is built without FTS5"


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
    """Implements `stores.indexing.SearchIndex`."""

    def add(self, writer: Writer, entries: Mapping[str, Entry]) -> None:
        """See `SearchIndex.add`."""
        for key, entry in entries.items():
            known = _known(writer, key) or _insert(writer, key, entry)
            if entry.words is not None and not known[3]:
                row = (known[0], *_joined(entry.words))
                writer.execute("INSERT INTO words (rowid, question, answer) VALUES (?, ?, ?)", row)
                writer.execute("UPDATE answer_index SET words = 1 WHERE id = ?", (known[0],))

    def remove(self, writer: Writer, keys: Sequence[str]) -> None:
        """See `SearchIndex.remove`."""
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
        """See `SearchIndex.set_terms`."""
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


def second_of(identity: int) -> float:
    """Return the second of the answer with an id.

    >>> second_of(first_id(7.5))
    7.0
    """
    return float(identity >> _SLOT_BITS)
