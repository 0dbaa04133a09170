"""Service: retrieve, answer, write the log. What it logs is all that ragwatch ever sees of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragwatch.demo.answerer import ABSTENTION, Answerer
from ragwatch.demo.breakage import HEALTHY_RELEASE, Breakage, invented, vanishes
from ragwatch.demo.corpus import Passage, read_corpus
from ragwatch.demo.index import Hit, PassageIndex
from ragwatch.demo.journal import MOST_BYTES, Journal
from ragwatch.demo.questions import ROUTES, route_of

PASSAGES_GIVEN = 5


class RagService:
    """A small real RAG service over Python's documentation strings.

    Args:
        log_path: Where one record per answer is appended, in ragwatch's canonical JSONL.
        most_log_bytes: Size at which the log rotates.

    Raises:
        RagwatchError: This Python has no documentation strings, or its SQLite no full-text search.
    """

    def __init__(self, log_path: Path, most_log_bytes: int = MOST_BYTES) -> None:
        self.passages = read_corpus()
        self.index = PassageIndex(self.passages)
        self._answerer = Answerer(self.passages)
        self._journal = Journal(log_path, most_log_bytes)
        self._breakage: Breakage | None = None

    @property
    def breakage(self) -> Breakage | None:
        """What is broken now; None while healthy."""
        return self._breakage

    def break_it(self, kind: Breakage) -> None:
        """Deploy a release that is bad in this way; whatever was broken before is mended first."""
        self.mend()
        if kind is Breakage.VANISH:
            self.index.remove(lambda passage: vanishes(passage.module))
        self._breakage = kind

    def mend(self) -> None:
        """Deploy the healthy release again."""
        self.index.restore()
        self._breakage = None

    def search(self, question: str, k: int = PASSAGES_GIVEN) -> list[Hit]:
        """The retriever alone, as canaries ask it."""
        return self.index.search(question, k)

    def ask(self, question: str, route: str | None = None) -> dict[str, Any]:
        """Answer one question and log it.

        Returns:
            `id`, `answer`, `contexts` (each with `id`, `text`, `score`, best first) and `trace_id`.

        Raises:
            OSError: The log cannot be written.
        """
        began = time.perf_counter()
        breakage = self._breakage
        hits = self.search(question)
        answer = self._answer(question, [hit.passage for hit in hits], breakage)
        contexts = [{"id": hit.id, "text": hit.text, "score": hit.score} for hit in hits]
        reply = {"id": secrets.token_hex(8), "answer": answer, "contexts": contexts, "trace_id": secrets.token_hex(16)}
        self._journal.append(
            {
                "id": reply["id"],
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "question": question,
                "contexts": contexts,
                "answer": answer,
                "route": route if route in ROUTES else route_of(question),
                "metadata": {
                    "trace_id": reply["trace_id"],
                    "latency_ms": round(1000 * (time.perf_counter() - began), 3),
                    "release": breakage.release if breakage else HEALTHY_RELEASE,
                },
            }
        )
        return reply

    def close(self) -> None:
        """Give the index back; the service answers nothing afterwards."""
        self.index.close()

    def _answer(self, question: str, passages: Sequence[Passage], breakage: Breakage | None) -> str:
        answer = self._answerer.answer(question, passages)
        if answer == ABSTENTION or breakage in (None, Breakage.VANISH):
            return answer
        if breakage is Breakage.INVENT:
            name = answer.partition(": ")[0]
            return f"{name}: {invented(question)}"
        return self._answerer.quote(question, self._answerer.misfit(question, passages))
