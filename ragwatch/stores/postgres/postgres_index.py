"""The index of searches in PostgreSQL: an array of terms and a vector of words for each answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragwatch.stores.engine import Writer
from ragwatch.stores.search.indexing import MAX_ROWS_PER_STEP, Entry

_INSERT = (
    "INSERT INTO answer_index (key, terms, words) VALUES (%s, %b::bigint[], %s::tsvector) ON CONFLICT (key)"
    " DO UPDATE SET words = excluded.words WHERE answer_index.words IS NULL AND excluded.words IS NOT NULL"
)
_DROP_WORDS = (
    "UPDATE answer_index SET words = NULL WHERE key = ANY(ARRAY("
    "SELECT key FROM answer_index WHERE words IS NOT NULL LIMIT %s))"
)
_GAP = 8  # between the positions of the last word of the question and the first one of the answer


class PostgresIndex:
    """Implements `stores.indexing.SearchIndex`. Entries go with the keys of their samples."""

    def add(self, writer: Writer, entries: Mapping[str, Entry]) -> None:
        """See `SearchIndex.add`."""
        rows = [
            (key, list(entry.terms), None if entry.words is None else words_vector(*entry.words))
            for key, entry in sorted(entries.items())
        ]
        writer.executemany(_INSERT, rows)

    def remove(self, writer: Writer, keys: Sequence[str]) -> None:
        """See `SearchIndex.remove`."""
        writer.execute("DELETE FROM answer_index WHERE key = LIST(:keys)", {"keys": list(keys)})

    def remove_words(self, writer: Writer, keys: Sequence[str]) -> None:
        """See `SearchIndex.remove_words`. A trigger does it, also for workers of earlier versions."""

    def set_terms(self, writer: Writer, terms: Mapping[str, Sequence[int]]) -> None:
        """See `SearchIndex.set_terms`."""
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
    return writer.execute(_DROP_WORDS, (MAX_ROWS_PER_STEP,)).rowcount
