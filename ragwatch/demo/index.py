"""Retrieves passages for the demo: BM25 over SQLite full-text search, in memory."""

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from ragwatch.demo import tokenizer
from ragwatch.demo.corpus import Passage
from ragwatch.errors import RagwatchError

_TITLE_WEIGHT, _TEXT_WEIGHT = 3.0, 1.0
_SCHEMA = "CREATE VIRTUAL TABLE passage USING fts5(title, body, tokenize='porter unicode61')"
_SEARCH = """SELECT rowid, -bm25(passage, ?, ?) AS score FROM passage WHERE passage MATCH ?
             ORDER BY score DESC, rowid LIMIT ?"""


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved passage."""

    passage: Passage
    score: float  # BM25 (SQLite's, sign turned): higher is better, no upper bound

    @property
    def id(self) -> str:
        """Id of the passage."""
        return self.passage.id

    @property
    def text(self) -> str:
        """Text for the generator."""
        return self.passage.text


class PassageIndex:
    """Full-text index of passages. Thread-safe. `RagwatchError` if this SQLite was built without full-text search."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        self._removed: frozenset[str] = frozenset()
        self._lock = Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        try:
            self._connection.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise RagwatchError(f"the demo needs SQLite with full-text search (FTS5): {error}") from error
        self._fill()

    def __len__(self) -> int:
        return len(self._passages) - len(self._removed)

    def search(self, question: str, k: int = 5) -> list[Hit]:
        """Returns the `k` best passages for the question, best first; none if it has no search term."""
        match = query_of(question)
        if not match:
            return []
        with self._lock:
            rows = self._connection.execute(_SEARCH, (_TITLE_WEIGHT, _TEXT_WEIGHT, match, 2 * k)).fetchall()
        hits = [Hit(self._passages[rowid], round(score, 4)) for rowid, score in rows]
        named = set(tokenizer.identifiers(question))
        # Stemming maps json.loads to json.load; a name written in full is an exact match.
        return sorted(hits, key=lambda hit: hit.passage.title not in named)[:k]

    def remove(self, vanishes: Callable[[Passage], bool]) -> int:
        """Removes every passage for which `vanishes` is true; returns their number."""
        self._removed = frozenset(passage.id for passage in self._passages if vanishes(passage))
        self._fill()
        return len(self._removed)

    def restore(self) -> None:
        """Restores all removed passages."""
        if self._removed:
            self._removed = frozenset()
            self._fill()

    def close(self) -> None:
        """Closes the database; the index cannot be searched afterwards."""
        with self._lock:
            self._connection.close()

    def _fill(self) -> None:
        rows = [
            (number, *_columns(passage))
            for number, passage in enumerate(self._passages)
            if passage.id not in self._removed
        ]
        with self._lock:
            self._connection.execute("BEGIN")
            self._connection.execute("DELETE FROM passage")
            self._connection.executemany("INSERT INTO passage(rowid, title, body) VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")


def _columns(passage: Passage) -> tuple[str, str]:
    """Title and body to index. Only the first chunk has a title, because it defines the term."""
    title = " ".join(tokenizer.words(passage.title))
    return (title, passage.body) if passage.id.endswith("#0") else ("", f"{title} {passage.body}")


def query_of(question: str) -> str:
    """Builds an FTS5 expression: any word of the question, and each dotted name as a phrase. Empty without words.

    Every term is quoted, so that user input cannot contain operators.

    >>> query_of("What does os.path.join do?")
    '"os path join" OR "path" OR "join"'
    """
    names = [" ".join(tokenizer.words(name)) for name in tokenizer.identifiers(question)]
    single = [word for word in tokenizer.words(question) if len(word) > 2 and tokenizer.content(word)]
    return " OR ".join(f'"{term}"' for term in dict.fromkeys([*names, *single]))
