"""Index of judged answers for searches: written with their verdicts, and deleted with their texts and samples.

Answers that workers of earlier versions have judged are added in small transactions after the start, the newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ragwatch.core.verdict import Verdict
from ragwatch.stores.answer_terms import Rules, stored_terms, terms_of_sample
from ragwatch.stores.postgres.connections import Writer

MAX_ROWS_PER_STEP = 200
NEWEST = (float("inf"), 0)
_BEHIND = (
    "SELECT v.at, v.seq, v.key FROM verdicts v WHERE (v.at, v.seq) < (%s::float8, %s::bigint)"
    " AND NOT EXISTS (SELECT 1 FROM answer_index a WHERE a.key = v.key) ORDER BY v.at DESC, v.seq DESC LIMIT %s"
)
_STORED = (
    r"SELECT s.key, NULLIF(s.body, '\x00'), t.body FROM samples s LEFT JOIN traits t USING (key)"
    " JOIN sample_keys k USING (key) WHERE s.key = ANY(%s::text[]) ORDER BY s.key FOR SHARE OF s"  # waits for erasures
)
_INSERT = "INSERT INTO answer_index (key, terms) VALUES (%s, %s::bigint[]) ON CONFLICT DO NOTHING"

Place = tuple[float, int]
Cell = Callable[[Any], Any]


def add(writer: Writer, verdicts: Iterable[Verdict], rules: Rules) -> None:
    """Add judged answers, unless they are in the index, within the transaction that stores their verdicts."""
    draws = {one.draw.key: one.draw for one in verdicts if one.draw.damage is None}
    _insert(writer, {key: terms_of_sample(draws[key].sample, rules) for key in sorted(draws)})


def _insert(writer: Writer, terms: Mapping[str, Sequence[int]]) -> None:
    if terms:
        writer.executemany(_INSERT, [(key, list(terms[key])) for key in sorted(terms)])


def remove(writer: Writer, keys: Sequence[str]) -> None:
    """Remove answers."""
    writer.execute("DELETE FROM answer_index WHERE key = ANY(%s::text[])", (list(keys),))


def reduce(writer: Writer, traits: Mapping[str, bytes], rules: Rules) -> None:
    """Leave only the terms of the traits that are kept, by key of answers whose texts are deleted."""
    kept = [(stored_terms(traits[key], None, rules), key) for key in sorted(traits)]
    if kept:
        writer.executemany("UPDATE answer_index SET terms = %s::bigint[], words = NULL WHERE key = %s", kept)


def behind(rows: Sequence[tuple[Any, ...]]) -> tuple[list[str], Place | None]:
    """Return the answers that are not in the index, and the place to go on from: None at the end."""
    place = (rows[-1][0], rows[-1][1]) if rows else None
    return list(dict.fromkeys(key for _, _, key in rows)), place


def behind_statement(place: Place) -> tuple[str, tuple[object, ...]]:
    """Return SQL and parameters of a page of verdicts whose answers are not in the index, the newest first."""
    return _BEHIND, (*place, MAX_ROWS_PER_STEP)


def add_stored(writer: Writer, keys: Sequence[str], rules: Rules, unseal: Cell) -> None:
    """Add stored answers."""
    terms: dict[str, list[int]] = {}
    for key, body, traits in writer.execute(_STORED, (list(keys),)).fetchall():
        terms[key] = stored_terms(unseal(traits), unseal(body), rules)
    _insert(writer, terms)
