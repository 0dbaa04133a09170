"""BM25 over a folder of documents, small and plain: a retriever for tests, served over HTTP by `retrievers.serving`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from heapq import nsmallest
from math import log

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

K1, B = 0.9, 0.4
Stem = Callable[[str], str]


def plain(word: str) -> str:
    """No stemming."""
    return word


def stem(word: str) -> str:
    """The commonest English endings off: enough for another ranking."""
    for ending in ("ing", "edly", "ed", "ies", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


class Bm25:
    """An index over documents by id (Robertson and Zaragoza 2009, with Lucene's idf, which is never negative)."""

    def __init__(self, documents: Mapping[str, str], stemmed: Stem = plain) -> None:
        self._stemmed = stemmed
        self.texts = dict(documents)
        self._fill()

    def _fill(self) -> None:
        counts = {name: Counter(self._words(text)) for name, text in self.texts.items()}
        lengths = {name: found.total() for name, found in counts.items()}
        mean = sum(lengths.values()) / len(lengths)
        self._norms = {name: K1 * (1 - B + B * length / mean) for name, length in lengths.items()}
        self._postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for name, found in counts.items():
            for word, count in found.items():
                self._postings[word].append((name, count))

    def _words(self, text: str) -> list[str]:
        return [self._stemmed(word) for word in re.findall(r"\w+", text.lower())]

    def delete(self, names: Collection[str]) -> None:
        """Forget documents, and index the rest anew."""
        self.texts = {name: text for name, text in self.texts.items() if name not in names}
        self._fill()

    def restore(self, documents: Mapping[str, str]) -> None:
        """Index these documents, and no others."""
        self.texts = dict(documents)
        self._fill()

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best k ids with their scores, best first, ties by id."""
        scores: dict[str, float] = defaultdict(float)
        for word in self._words(query):
            postings = self._postings.get(word, ())
            idf = log(1 + (len(self.texts) - len(postings) + 0.5) / (len(postings) + 0.5))
            for name, count in postings:
                scores[name] += idf * count / (count + self._norms[name])
        return nsmallest(k, scores.items(), key=lambda item: (-item[1], item[0]))

    def route(self) -> Route:
        """`POST /search` with `query` and `k`."""

        async def search(request: Request) -> Response:
            body = await request.json()
            hits = self.search(body["query"], body["k"])
            return JSONResponse(
                {"hits": [{"id": name, "text": self.texts[name], "score": score} for name, score in hits]}
            )

        return Route("/search", search, methods=["POST"])
