"""Index of judged answers for searches: written with their verdicts, and deleted with their texts and samples.

Answers that were judged by earlier versions are added in small transactions after the start, the newest first.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from ragwatch.core.verdict import Verdict
from ragwatch.stores.answer_terms import TERM_BYTES, Rules, stored_terms, terms_of_sample

MAX_ROWS_PER_STEP = 200
NEWEST = (9e999, 0)
STATE = "search index"  # saved once all answers are in the index
_SLOT_BITS = 20
_MAX_SECOND = 1 << 42
_KNOWN = "SELECT id, at, terms, words FROM answer_index WHERE key = ?"
_BEHIND = (
    "SELECT v.at, v.seq, v.key, a.key FROM verdicts v LEFT JOIN answer_index a ON a.key = v.key"
    " WHERE (v.at, v.seq) < (?, ?) ORDER BY v.at DESC, v.seq DESC LIMIT ?"
)
_STORED = "SELECT s.at, NULLIF(s.body, x'00'), t.body FROM samples s LEFT JOIN traits t USING (key) WHERE s.key = ?"

Place = tuple[float, int]


def add(writer: sqlite3.Connection, verdicts: Iterable[Verdict], rules: Rules) -> None:
    """Add judged answers, unless they are in the index, within the transaction that stores their verdicts."""
    for verdict in verdicts:
        draw = verdict.draw
        if draw.damage is None and writer.execute(_KNOWN, (draw.key,)).fetchone() is None:
            _insert(writer, draw.key, draw.at, terms_of_sample(draw.sample, rules))


def _insert(writer: sqlite3.Connection, key: str, at: float, terms: Sequence[int]) -> None:
    identity = first_id(at) + (zlib.crc32(key.encode("utf-8", "replace")) & ((1 << _SLOT_BITS) - 1))
    while writer.execute("SELECT 1 FROM answer_index WHERE id = ?", (identity,)).fetchone() is not None:
        identity += 1
    writer.execute("INSERT INTO answer_index VALUES (?, ?, ?, ?, 0)", (identity, key, at, _packed(terms)))
    _insert_terms(writer, identity, at, terms)


def _insert_terms(writer: sqlite3.Connection, identity: int, at: float, terms: Sequence[int]) -> None:
    writer.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", [(term, at, identity) for term in terms])


def first_id(at: float) -> int:
    """Return the lowest id of answers of the second of an instant; ids of later seconds are higher."""
    return int(min(max(at, 0.0), _MAX_SECOND)) << _SLOT_BITS


def _packed(terms: Iterable[int]) -> bytes:
    return b"".join(term.to_bytes(TERM_BYTES, "big", signed=True) for term in terms)


def _unpacked(packed: bytes) -> list[int]:
    starts = range(0, len(packed), TERM_BYTES)
    return [int.from_bytes(packed[start : start + TERM_BYTES], "big", signed=True) for start in starts]


def remove(writer: sqlite3.Connection, key: str) -> None:
    """Remove an answer."""
    known = writer.execute(_KNOWN, (key,)).fetchone()
    if known is not None:
        _delete_terms(writer, known)
        writer.execute("DELETE FROM answer_index WHERE id = ?", known[:1])


def _delete_terms(writer: sqlite3.Connection, known: tuple[Any, ...]) -> None:
    identity, at, packed, _ = known
    terms = [(term, at, identity) for term in _unpacked(packed)]
    writer.executemany("DELETE FROM terms WHERE term = ? AND at = ? AND id = ?", terms)


def reduce(writer: sqlite3.Connection, key: str, traits: bytes | None, rules: Rules) -> None:
    """Leave only the terms of the traits that are kept of an answer whose texts are deleted."""
    known = writer.execute(_KNOWN, (key,)).fetchone()
    if known is None:
        return
    kept = stored_terms(traits, None, rules)
    if (packed := _packed(kept)) != known[2]:
        _delete_terms(writer, known)
        _insert_terms(writer, known[0], known[1], kept)
        writer.execute("UPDATE answer_index SET terms = ? WHERE id = ?", (packed, known[0]))


def behind(rows: Iterable[tuple[Any, ...]]) -> tuple[list[str], Place | None]:
    """Return the answers that are not in the index, and the place to go on from: None at the end."""
    place, keys = None, dict[str, None]()
    for at, seq, key, indexed in rows:
        place = (at, seq)
        if indexed is None:
            keys[key] = None
    return list(keys), place


def behind_statement(place: Place) -> tuple[str, tuple[object, ...]]:
    """Return SQL and parameters of a page of verdicts, the newest first, and whether their answers are in the index."""
    return _BEHIND, (*place, MAX_ROWS_PER_STEP)


def add_stored(writer: sqlite3.Connection, keys: Sequence[str], rules: Rules) -> None:
    """Add stored answers."""
    for key in keys:
        stored = writer.execute(_STORED, (key,)).fetchone()
        if stored is not None and writer.execute(_KNOWN, (key,)).fetchone() is None:
            at, body, traits = stored
            if rules.cipher is not None:
                body, traits = rules.cipher.open(body), rules.cipher.open(traits)
            _insert(writer, key, at, stored_terms(traits, body, rules))
