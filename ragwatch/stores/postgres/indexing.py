"""Index of judged answers for searches: written with their verdicts, and deleted with their texts and samples.

Answers that workers of earlier versions have judged are added in small transactions after the start, the newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ragwatch.core.verdict import Verdict
from ragwatch.stores.answer_terms import (
    Rules,
    fails,
    sample_words,
    stored_terms,
    stored_words,
    terms_of_sample,
)
from ragwatch.stores.postgres.connections import Writer

MAX_ROWS_PER_STEP = 200
NEWEST = (float("inf"), 0)
_BEHIND = (
    "SELECT v.at, v.seq, v.key, CASE WHEN a.key IS NOT NULL THEN a.words IS NOT NULL END,"
    " v.outcome = 'judged' AND v.stage NOT IN ('none') FROM verdicts v LEFT JOIN answer_index a ON a.key = v.key"
    " WHERE (v.at, v.seq) < (%s::float8, %s::bigint) ORDER BY v.at DESC, v.seq DESC LIMIT %s"
)
_STORED = (
    r"SELECT s.key, NULLIF(s.body, '\x00'), t.body, EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key"
    " AND v.outcome = 'judged' AND v.stage NOT IN ('none')) FROM samples s LEFT JOIN traits t USING (key)"
    " JOIN sample_keys k USING (key) WHERE s.key = ANY(%b::text[]) ORDER BY s.key FOR SHARE OF s"  # waits for erasures
)
_INSERT = (
    "INSERT INTO answer_index (key, terms, words) VALUES (%s, %b::bigint[], %s::tsvector) ON CONFLICT (key)"
    " DO UPDATE SET words = excluded.words WHERE answer_index.words IS NULL AND excluded.words IS NOT NULL"
)
_DROP_WORDS = (
    "UPDATE answer_index SET words = NULL WHERE key = ANY(ARRAY("
    "SELECT key FROM answer_index WHERE words IS NOT NULL LIMIT %s))"
)
_GAP = 8  # between the positions of the last word of the question and the first one of the answer

Place = tuple[float, int]
Cell = Callable[[bytes | None], bytes | None]
Entry = tuple[Sequence[int], str | None]
"""Terms of an answer, and its words if they are indexed."""


def add(writer: Writer, verdicts: Iterable[Verdict], rules: Rules) -> None:
    """Add judged answers, unless they are in the index, within the transaction that stores their verdicts."""
    entries: dict[str, Entry] = {}
    for verdict in verdicts:
        draw = verdict.draw
        _, vector = entries.get(draw.key, (None, None))
        if draw.damage is None:
            kept = vector is None and rules.keeps_words(fails=fails(verdict))
            vector = words_vector(*sample_words(draw.sample)) if kept else vector
            entries[draw.key] = (terms_of_sample(draw.sample, rules), vector)
    _insert(writer, entries)


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


def _insert(writer: Writer, entries: Mapping[str, Entry]) -> None:
    if entries:
        writer.executemany(_INSERT, [(key, list(entries[key][0]), entries[key][1]) for key in sorted(entries)])


def drop_words(writer: Writer) -> int:
    """Delete the words of a limited number of answers, because they are no longer indexed. Returns the number."""
    return writer.execute(_DROP_WORDS, (MAX_ROWS_PER_STEP,)).rowcount


def remove(writer: Writer, keys: Sequence[str]) -> None:
    """Remove answers."""
    writer.execute("DELETE FROM answer_index WHERE key = ANY(%b::text[])", (list(keys),))


def reduce(writer: Writer, traits: Mapping[str, bytes], rules: Rules) -> None:
    """Leave only the terms of the traits that are kept, by key of answers whose texts are deleted."""
    kept = [(stored_terms(traits[key], None, rules), key) for key in sorted(traits)]
    if kept:
        writer.executemany("UPDATE answer_index SET terms = %b::bigint[], words = NULL WHERE key = %s", kept)


def behind_statement(place: Place) -> tuple[str, tuple[object, ...]]:
    """Return SQL and parameters of a page of verdicts whose answers are not in the index, the newest first."""
    return _BEHIND, (*place, MAX_ROWS_PER_STEP)


def add_stored(writer: Writer, keys: Sequence[str], rules: Rules, unseal: Cell) -> None:
    """Add stored answers."""
    entries: dict[str, Entry] = {}
    for key, body, traits, failing in writer.execute(_STORED, (list(keys),)).fetchall():
        text = unseal(body)
        words = stored_words(text) if rules.keeps_words(fails=failing) else None
        vector = None if words is None else words_vector(*words)
        entries[key] = (stored_terms(unseal(traits), text, rules), vector)
    _insert(writer, entries)
