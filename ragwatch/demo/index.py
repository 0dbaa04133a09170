"""Index: the retriever of the demo. BM25 over SQLite's full-text search, in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from ragwatch.demo import words
from ragwatch.demo.corpus import Passage
from ragwatch.errors import RagwatchError

_TITLE_WEIGHT, _TEXT_WEIGHT = 3.0, 1.0
_SCHEMA = "CREATE VIRTUAL TABLE passage USING fts5(title, body, tokenize='porter unicode61')"
_SEARCH = """SELECT rowid, -bm25(passage, ?, ?) AS score FROM passage WHERE passage MATCH ?
             ORDER BY score DESC, rowid LIMIT ?"""


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage that was found.

    Attributes:
        passage: What was found.
        score: BM25 (SQLite's, sign turned): higher is better, no upper bound.
    """

    passage: Passage
    score: float

    @property
    def id(self) -> str:
        """The passage's name."""
        return self.passage.id

    @property
    def text(self) -> str:
        """What the generator is given."""
        return self.passage.text


class PassageIndex:
    """Finds passages by the words of a question. Safe to use from several threads.

    Args:
        passages: What can be found.

    Raises:
        RagwatchError: This Python's SQLite was built without full-text search.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        self._gone: frozenset[str] = frozenset()
        self._lock = Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        try:
            self._connection.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise RagwatchError(f"the demo needs SQLite with full-text search (FTS5): {error}") from error
        self._fill()

    def __len__(self) -> int:
        return len(self._passages) - len(self._gone)

    def search(self, question: str, k: int = 5) -> list[Hit]:
        """The `k` best passages for the question, best first; none when it holds no word to look for."""
        match = query_of(question)
        if not match:
            return []
        with self._lock:
            rows = self._connection.execute(_SEARCH, (_TITLE_WEIGHT, _TEXT_WEIGHT, match, 2 * k)).fetchall()
        hits = [Hit(self._passages[rowid], round(score, 4)) for rowid, score in rows]
        named = set(words.identifiers(question))
        # Stemming makes json.load of json.loads; whoever writes the name out means exactly that one.
        return sorted(hits, key=lambda hit: hit.passage.title not in named)[:k]

    def remove(self, vanishes: Callable[[Passage], bool]) -> int:
        """Take every passage out for which `vanishes` holds; returns how many are gone."""
        self._gone = frozenset(passage.id for passage in self._passages if vanishes(passage))
        self._fill()
        return len(self._gone)

    def restore(self) -> None:
        """Put back whatever was removed."""
        if self._gone:
            self._gone = frozenset()
            self._fill()

    def close(self) -> None:
        """Give the memory back; the index finds nothing afterwards."""
        with self._lock:
            self._connection.close()

    def _fill(self) -> None:
        rows = [
            (number, *_columns(passage))
            for number, passage in enumerate(self._passages)
            if passage.id not in self._gone
        ]
        with self._lock:
            self._connection.execute("BEGIN")
            self._connection.execute("DELETE FROM passage")
            self._connection.executemany("INSERT INTO passage(rowid, title, body) VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")


def _columns(passage: Passage) -> tuple[str, str]:
    """Title and body to index. Only the first piece is found by its title: it says what the thing is."""
    title = " ".join(words.words(passage.title))
    return (title, passage.body) if passage.id.endswith("#0") else ("", f"{title} {passage.body}")


def query_of(question: str) -> str:
    """The question as an FTS5 expression: any of its words, and each dotted name as a phrase. Empty without words.

    Every term is quoted, so that nothing a user types is an operator.

    >>> query_of("What does os.path.join do?")
    '"os path join" OR "path" OR "join"'
    """
    names = [" ".join(words.words(name)) for name in words.identifiers(question)]
    single = [word for word in words.words(question) if len(word) > 2 and words.content(word)]
    return " OR ".join(f'"{term}"' for term in dict.fromkeys([*names, *single]))
