"""Index of judged answers for searches: written with their verdicts, and deleted with their texts and samples.

Answers that were judged by earlier versions are added in small transactions after the start, the newest first.

Words are in a full-text index without a copy of the texts: to delete an answer from it, its words are given again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

from ragwatch.core.verdict import Verdict
from ragwatch.stores.answer_terms import (
    TERM_BYTES,
    Rules,
    fails,
    sample_words,
    stored_terms,
    stored_words,
    terms_of_sample,
)
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

MAX_ROWS_PER_STEP = 200
NEWEST = (9e999, 0)
STATE = "search index"  # saved once all answers are in the index
_HASH_BITS, _SLOT_BITS = 19, 20  # ids that are taken are counted on, within the second
_MAX_SECOND = 1 << 42
_KNOWN = "SELECT id, at, terms, words FROM answer_index WHERE key = ?"
_BEHIND = (
    "SELECT v.at, v.seq, v.key, a.words, v.outcome = 'judged' AND v.stage NOT IN ('none')"
    " FROM verdicts v LEFT JOIN answer_index a ON a.key = v.key"
    " WHERE (v.at, v.seq) < (?, ?) ORDER BY v.at DESC, v.seq DESC LIMIT ?"
)
_STORED = "SELECT s.at, NULLIF(s.body, x'00'), t.body FROM samples s LEFT JOIN traits t USING (key) WHERE s.key = ?"
_MAKE_WORDS = "CREATE VIRTUAL TABLE words USING fts5(question, answer, content='', columnsize=0, tokenize='ascii')"
_HAS_WORDS = "SELECT 1 FROM sqlite_master WHERE name = 'words'"
_HAS_FTS5 = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
NO_FTS5 = "this SQLite is built without FTS5"

Place = tuple[float, int]
Words = tuple[list[str], list[str]]


def add(writer: SqliteWriter, verdicts: Iterable[Verdict], rules: Rules) -> None:
    """Add judged answers, unless they are in the index, within the transaction that stores their verdicts."""
    for verdict in verdicts:
        draw = verdict.draw
        if draw.damage is not None:
            continue
        if writer.execute(_KNOWN, (draw.key,)).fetchone() is None:
            _insert(writer, draw.key, draw.at, terms_of_sample(draw.sample, rules))
        if rules.keeps_words(fails=fails(verdict)):
            _insert_words(writer, draw.key, sample_words(draw.sample))


def _insert_words(writer: SqliteWriter, key: str, words: Words) -> None:
    identity, *_, has_words = writer.execute(_KNOWN, (key,)).fetchone()
    if not has_words:
        writer.execute("INSERT INTO words (rowid, question, answer) VALUES (?, ?, ?)", (identity, *_joined(words)))
        writer.execute("UPDATE answer_index SET words = 1 WHERE id = ?", (identity,))


def _joined(words: Words) -> tuple[str, str]:
    return " ".join(words[0]), " ".join(words[1])


def remove_words(writer: SqliteWriter, key: str) -> None:
    """Remove the words of an answer, while its text is still stored.

    If that is damaged, all words are removed: retention adds those of the other answers again.
    """
    known = writer.execute(_KNOWN, (key,)).fetchone()
    if known is None or not known[3]:
        return
    stored = writer.execute(_STORED, (key,)).fetchone()
    if not delete_words(writer, known[0], None if stored is None else stored[1]):
        writer.execute("INSERT INTO words (words) VALUES ('delete-all')")
        writer.execute("UPDATE answer_index SET words = 0")
        writer.execute("DELETE FROM states WHERE name = ?", (STATE,))
    writer.execute("UPDATE answer_index SET words = 0 WHERE id = ?", known[:1])


def delete_words(writer: SqliteWriter, identity: int, body: bytes | None) -> bool:
    """Delete the entries of the words of a text. Returns False if it is damaged."""
    words = stored_words(body)
    if words is None:
        return False
    row = (identity, *_joined(words))
    writer.execute("INSERT INTO words (words, rowid, question, answer) VALUES ('delete', ?, ?, ?)", row)
    return True


def prepare_words(writer: SqliteWriter, rules: Rules) -> None:
    """Make the index of words, or delete it if words are no longer indexed. Writes nothing if nothing changes."""
    if writer.execute(_HAS_FTS5).fetchone() is None:
        return
    exists = writer.execute(_HAS_WORDS).fetchone() is not None
    if rules.words_off is None and not exists:
        writer.execute(_MAKE_WORDS)
    elif rules.words_off is not None and exists:
        writer.execute("DROP TABLE words")
        writer.execute("UPDATE answer_index SET words = 0 WHERE words = 1")


def without_fts5(writer: SqliteWriter, rules: Rules) -> Rules:
    """Return what can be indexed."""
    missing = rules.words_off is None and writer.execute(_HAS_FTS5).fetchone() is None
    return rules._replace(words_off=NO_FTS5) if missing else rules


def merge_words(writer: SqliteWriter) -> None:
    """Write the index of words again, without what was deleted from it."""
    if writer.execute(_HAS_WORDS).fetchone() is not None:
        writer.execute("INSERT INTO words (words) VALUES ('optimize')")


def _insert(writer: SqliteWriter, key: str, at: float, terms: Sequence[int]) -> None:
    identity = first_id(at) + (zlib.crc32(key.encode("utf-8", "replace")) & ((1 << _HASH_BITS) - 1))
    while writer.execute("SELECT 1 FROM answer_index WHERE id = ?", (identity,)).fetchone() is not None:
        identity += 1
    writer.execute("INSERT INTO answer_index VALUES (?, ?, ?, ?, 0)", (identity, key, at, _packed(terms)))
    _insert_terms(writer, identity, at, terms)


def _insert_terms(writer: SqliteWriter, identity: int, at: float, terms: Sequence[int]) -> None:
    writer.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", [(term, at, identity) for term in terms])


def first_id(at: float) -> int:
    """Return the lowest id of answers of the second of an instant; ids of later seconds are higher."""
    return int(min(max(at, 0.0), _MAX_SECOND)) << _SLOT_BITS


def second_of(identity: int) -> float:
    """Return the second of the answer with an id.

    >>> second_of(first_id(7.5))
    7.0
    """
    return float(identity >> _SLOT_BITS)


def _packed(terms: Iterable[int]) -> bytes:
    return b"".join(term.to_bytes(TERM_BYTES, "big", signed=True) for term in terms)


def _unpacked(packed: bytes) -> list[int]:
    starts = range(0, len(packed), TERM_BYTES)
    return [int.from_bytes(packed[start : start + TERM_BYTES], "big", signed=True) for start in starts]


def remove(writer: SqliteWriter, key: str, body: bytes | None = None) -> None:
    """Remove an answer; with its words, if it had any and its text is given."""
    known = writer.execute(_KNOWN, (key,)).fetchone()
    if known is not None:
        if known[3]:
            delete_words(writer, known[0], body)
        _delete_terms(writer, known)
        writer.execute("DELETE FROM answer_index WHERE id = ?", known[:1])


def _delete_terms(writer: SqliteWriter, known: tuple[int, float, bytes, int]) -> None:
    identity, at, packed, _ = known
    terms = [(term, at, identity) for term in _unpacked(packed)]
    writer.executemany("DELETE FROM terms WHERE term = ? AND at = ? AND id = ?", terms)


def reduce(writer: SqliteWriter, key: str, traits: bytes | None, rules: Rules) -> None:
    """Leave only the terms of the traits that are kept of an answer whose texts are deleted."""
    known = writer.execute(_KNOWN, (key,)).fetchone()
    if known is None:
        return
    kept = stored_terms(traits, None, rules)
    if (packed := _packed(kept)) != known[2]:
        _delete_terms(writer, known)
        _insert_terms(writer, known[0], known[1], kept)
        writer.execute("UPDATE answer_index SET terms = ? WHERE id = ?", (packed, known[0]))


def behind_statement(place: Place) -> tuple[str, tuple[object, ...]]:
    """Return SQL and parameters of a page of verdicts, the newest first, and whether their answers are in the index."""
    return _BEHIND, (*place, MAX_ROWS_PER_STEP)


def add_stored(writer: SqliteWriter, keys: Sequence[str], rules: Rules) -> None:
    """Add stored answers."""
    for key in keys:
        stored = writer.execute(_STORED, (key,)).fetchone()
        if stored is None:
            continue
        at, body, traits = stored
        if rules.cipher is not None:
            body, traits = rules.cipher.open(body), rules.cipher.open(traits)
        if writer.execute(_KNOWN, (key,)).fetchone() is None:
            _insert(writer, key, at, stored_terms(traits, body, rules))
        words = stored_words(body)
        if words is not None and rules.keeps_words(fails=_fails(writer, key)):
            _insert_words(writer, key, words)


def _fails(writer: SqliteWriter, key: str) -> bool:
    sql = "SELECT 1 FROM verdicts WHERE key = ? AND outcome = 'judged' AND stage NOT IN ('none')"
    return writer.execute(sql, (key,)).fetchone() is not None
