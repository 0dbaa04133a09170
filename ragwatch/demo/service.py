"""Retrieves, answers and writes the log, which is all that ragwatch reads of the service."""

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypedDict

from ragwatch.demo.answerer import Answerer, declined, spoken, with_inventions
from ragwatch.demo.corpus import CHUNK_WORDS, Passage, read_corpus
from ragwatch.demo.index import Hit, PassageIndex
from ragwatch.demo.questions import ROUTES, route_of
from ragwatch.demo.tokenizer import stable_hash

HEALTHY_RELEASE = "v1"
VANISHING_SHARE = 0.93


class Breakage(StrEnum):
    """A fault that a bad release brings."""

    VANISH = "vanish"
    INVENT = "invent"
    IGNORE_TOP = "ignore_top"

    @property
    def release(self) -> str:
        """Name of the bad release, as the log records it."""
        return _RELEASES[self][0]

    @property
    def announcement(self) -> str:
        """Message for the terminal when the release is deployed."""
        return f"release {self.release}: {_RELEASES[self][1]}"


_RELEASES = {
    Breakage.VANISH: ("v2-index", "a rebuilt index lost most of the documents that users ask for"),
    Breakage.INVENT: ("v3-model", "a new model adds to its answers what no document says"),
    Breakage.IGNORE_TOP: ("v4-prompt", "a new prompt makes the model ignore the top-ranked document"),
}


RECOVERED = f"release {HEALTHY_RELEASE} is restored: the service is healthy"


def vanishes(module: str) -> bool:
    """Whether `VANISH` removes the documents of this module."""
    return stable_hash(f"vanish {module}") % 1000 < VANISHING_SHARE * 1000


MAX_BYTES = 5_000_000
MAX_TRUTHS = 2000
KEPT_FILES = 2  # rotated files, without the current one


class RequestLog:
    """Appends records as JSON lines to a file, which the first one creates with its folder. Thread-safe.

    Before it grows larger than `max_bytes`, the file is renamed to `NAME.1`, and that one to `NAME.2`.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._lock = Lock()

    def append(self, record: Mapping[str, object]) -> None:
        """Writes one record as one line with one write, so that concurrent lines do not mix."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self._rotate(len(line))
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)

    def _rotate(self, size_of_line: int) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        size = self.path.stat().st_size if self.path.exists() else 0
        if not size or size + size_of_line <= self._max_bytes:
            return
        for number in range(KEPT_FILES, 0, -1):
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


DEFAULT_K = 5


class FoundContext(TypedDict):
    """A passage that was retrieved, as JSON values."""

    id: str
    text: str
    score: float
    updated_at: str


class Truth(NamedTuple):
    """What is known of an answer because the demo made it."""

    faithful: float  # share of its sentences that stand in the passage
    uses_first: bool  # whether it quotes the top-ranked passage


class Reply(TypedDict):
    """The response to a question, as JSON values; `contexts` has the best one first."""

    id: str
    answer: str
    contexts: list[FoundContext]
    trace_id: str


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class RagService:
    """A small RAG service over the docstrings of Python.

    To the log, one record per answer is appended, in the canonical JSONL of ragwatch. Documents are split into chunks
    of `chunk_words` words. `RagwatchError` if this Python has no docstrings, or its SQLite no full-text search.
    """

    def __init__(self, log_path: Path, *, chunk_words: int = CHUNK_WORDS) -> None:
        self.passages = read_corpus(chunk_words)
        self.index = PassageIndex(self.passages)
        self._indexed_at = _now()
        self._answerer = Answerer(self.passages)
        self._log = RequestLog(log_path)
        self._breakage: Breakage | None = None
        self._truths: dict[str, Truth] = {}

    @property
    def breakage(self) -> Breakage | None:
        """Current fault; None while healthy."""
        return self._breakage

    def break_it(self, kind: Breakage) -> None:
        """Deploys a bad release with this fault, after it has repaired any other."""
        self.mend()
        if kind is Breakage.VANISH:
            self.index.remove(lambda passage: vanishes(passage.module))
        self._breakage = kind

    def mend(self) -> None:
        """Deploys the healthy release again."""
        self.index.restore()
        self._breakage = None

    def search(self, question: str, k: int = DEFAULT_K) -> list[Hit]:
        """Retrieves without an answer, for canaries."""
        return self.index.search(question, k)

    def ask(self, question: str, route: str | None = None) -> Reply:
        """Answers one question and logs it. Raises `OSError` if the log cannot be written."""
        start = time.perf_counter()
        breakage = self._breakage
        hits = self.search(question)
        route = route if route in ROUTES else route_of(question)
        answer, truth = self._answer(question, route, [hit.passage for hit in hits], breakage)
        contexts: list[FoundContext] = [
            {"id": hit.id, "text": hit.text, "score": hit.score, "updated_at": self._indexed_at} for hit in hits
        ]
        reply: Reply = {
            "id": secrets.token_hex(8),
            "answer": answer,
            "contexts": contexts,
            "trace_id": secrets.token_hex(16),
        }
        if truth is not None:
            self._truths[reply["id"]] = truth
            while len(self._truths) > MAX_TRUTHS:
                del self._truths[next(iter(self._truths))]
        self._log.append(
            {
                "id": reply["id"],
                "at": _now(),
                "question": question,
                "contexts": contexts,
                "answer": answer,
                "route": route,
                "metadata": {
                    "trace_id": reply["trace_id"],
                    "latency_ms": round(1000 * (time.perf_counter() - start), 3),
                    "release": breakage.release if breakage else HEALTHY_RELEASE,
                },
            }
        )
        return reply

    def truth(self, reply_id: str) -> Truth | None:
        """What is known of an answer; None if it declines, or was long ago."""
        return self._truths.get(reply_id)

    def close(self) -> None:
        """Closes the index; the service cannot answer afterwards."""
        self.index.close()

    def _answer(
        self, question: str, route: str, passages: Sequence[Passage], breakage: Breakage | None
    ) -> tuple[str, Truth | None]:
        quote = self._answerer.answer(question, passages)
        if quote is None:
            return declined(question), None
        if breakage is Breakage.IGNORE_TOP:
            quote = self._answerer.quote(question, passages, self._answerer.wrong_rank(question, passages))
        said = quote.sentences
        if breakage is Breakage.INVENT:
            said = with_inventions(question, said)
        right = sum(sentence in quote.sentences for sentence in said) / len(said)
        return spoken(question, quote._replace(sentences=said), route), Truth(right, quote.rank == 0)
