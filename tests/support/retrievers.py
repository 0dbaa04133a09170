"""Retrievers on the loopback interface, for probes to ask: real HTTP by starlette and uvicorn, in a thread."""

import asyncio
import re
import socket
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from heapq import nsmallest
from math import log
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ragwatch.probes.http import HttpProbe, Options
from ragwatch.probes.rag import RagProbe
from support.patience import DEADLINE

LOOPBACK = "127.0.0.1"
HITS = [{"id": "d1", "text": "Cats purr.", "score": 0.9}, {"id": "d2", "text": "Dogs bark.", "score": 0.4}]
Handler = Callable[[Request], Awaitable[Response]]


@contextmanager
def serving(*routes: Route, **tls: Any) -> Iterator[str]:
    """The address (scheme, host and port) at which these routes are served."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else replies wait 40 ms, see `web.serve`
        config = uvicorn.Config(Starlette(routes=list(routes)), log_config=None, lifespan="off", ws="none", **tls)
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        thread = Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://{LOOPBACK}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(DEADLINE)


class FaultyRetriever:
    """A retriever that goes wrong as the question asks: `slow`, `status`, `not_json`, `redirect`, `huge` ...

    Attributes:
        seen: Decoded bodies of all requests.
        headers: Headers of the last one.
        followed: How often the target of its redirects was asked.
    """

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.headers: dict[str, str] = {}
        self.followed = 0

    def routes(self) -> tuple[Route, ...]:
        """`/search`, and where it redirects to."""
        return Route("/search", self.search, methods=["GET", "POST"]), Route("/elsewhere", self.elsewhere)

    async def search(self, request: Request) -> Response:
        """A reply, or a fault, by the question."""
        body = await request.json() if request.method == "POST" else dict(request.query_params)
        self.seen.append(body)
        self.headers = dict(request.headers)
        query = body["query"]
        if query == "slow":
            await request.receive()  # returns when whoever asked hangs up
        faults: dict[str, Callable[[], Response]] = {
            "status": lambda: JSONResponse({"hits": HITS}, status_code=500),
            "unauthorised": lambda: JSONResponse({"hits": HITS}, status_code=401),
            "not_json": lambda: Response("<html>oops</html>", media_type="text/html"),
            "torn": lambda: Response(b'{"hits": [{"id": ', media_type="application/json"),
            "nan": lambda: Response(b'{"hits": [{"id": "a", "score": NaN}]}', media_type="application/json"),
            "empty": lambda: Response(b""),
            "gzip": lambda: Response(b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"}),
            "shape": lambda: JSONResponse({"results": HITS}),
            "metadata": lambda: RedirectResponse("http://169.254.169.254/latest/meta-data/", status_code=307),
            "redirect": lambda: RedirectResponse("/elsewhere", status_code=302),
            "huge": lambda: StreamingResponse(self._huge(), media_type="application/json"),
            "stalled": lambda: StreamingResponse(self._stalled(request), media_type="application/json"),
            "none": lambda: JSONResponse({"hits": []}),
            "cut": lambda: Response(rb'{"hits": [{"id": "a", "text": "cut \ud83d", "score": 1}]}'),
        }
        return faults.get(query, lambda: JSONResponse({"hits": HITS}))()

    async def elsewhere(self, _: Request) -> Response:
        """Nobody should come here."""
        self.followed += 1
        return JSONResponse({"hits": HITS})

    async def _huge(self) -> AsyncIterator[bytes]:
        """Fifty megabytes of white space, and then a list."""
        for _ in range(500):
            yield b" " * 100_000
        yield b'{"hits": []}'

    @staticmethod
    async def _stalled(request: Request) -> AsyncIterator[bytes]:
        """Two megabytes, and no more until whoever asked hangs up."""
        for _ in range(20):
            yield b" " * 100_000
        await request.receive()


def options(address: str, **parts: Any) -> Options:
    """Options for the retriever."""
    whole = {
        "url": f"{address}/search",
        "body": {"query": "{{ query }}", "k": "{{ k }}"},
        "contexts": "hits[].{id: id, text: text, score: score}",
        "score": "similarity",
    }
    return Options.model_validate(whole | parts)


async def asked(made: HttpProbe | RagProbe, query: str = "cats", k: int = 5) -> Any:
    """One question, and the probe closed."""
    found = await made.ask(query, k)
    await made.close()
    return found


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
