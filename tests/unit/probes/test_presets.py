"""Presets: what is sent and read for well-known retrievers.

Chroma is asked for real where its server is installed (its wheel alone will do: `pip install --no-deps chromadb`).
The others are held against replies written by hand in the shape that their documentation records: no server of theirs
can be had from PyPI or Debian.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.patience import DEADLINE
from support.programs import free_port
from support.retrievers import LOOPBACK, asked, serving

from ragwatch.probes.http import PRESETS, Options, build
from ragwatch.statistics.canary.definition import Direction, Failure, Hit

QUESTION = "Do cats like fish?"
WORDS = ("cats", "dogs", "fish")
CHROMA = "/api/v2/tenants/default_tenant/databases/default_database/collections"
START_CHROMA = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(sys.argv[1:])"


async def embedded(request: Request) -> Response:
    """A question as a vector: how often it holds each word."""
    text = (await request.json())["input"].lower()
    return JSONResponse({"data": [{"embedding": [float(text.count(word)) for word in WORDS]}]})


class Recorded:
    """Replies with one recorded reply, beside an endpoint for embeddings; keeps what it was asked."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.asked: Any = None

    async def answer(self, request: Request) -> Response:
        """The recorded reply."""
        self.asked = await request.json()
        return JSONResponse(self.reply)

    def routes(self) -> tuple[Route, ...]:
        """The retriever and the embedder."""
        return Route("/search", self.answer, methods=["POST"]), Route("/embed", embedded, methods=["POST"])


def options(address: str, preset: str, **parts: Any) -> Options:
    """Options of a preset, with an embedder where it needs one."""
    whole: dict[str, Any] = {"url": f"{address}/search", "preset": preset} | parts
    if "{{ vector }}" in json.dumps(PRESETS[preset]["body"]):
        embed = {"url": f"{address}/embed", "body": {"input": "{{ query }}"}, "vector": "data[0].embedding"}
        whole = {"embed": embed} | whole
    return Options.model_validate(whole)


RECORDED: dict[str, tuple[Any, Any, tuple[Hit, ...], Direction | None]] = {
    "chroma": (
        {"ids": [["a", "b"]], "embeddings": None, "documents": [["Cats.", None]], "distances": [[0.01, 1.81]]},
        {"query_embeddings": [[1.0, 0.0, 1.0]], "n_results": 5, "include": ["documents", "distances"]},
        (Hit("a", "Cats.", 0.01), Hit("b", None, 1.81)),
        Direction.DISTANCE,
    ),
    "qdrant": (
        {
            "usage": None,
            "time": 0.001,
            "status": "ok",
            "result": {
                "points": [
                    {"id": 7, "version": 3, "score": 0.75, "payload": {"text": "Cats."}, "vector": None},
                    {"id": "5c56c793", "version": 3, "score": 0.5, "payload": {"page_content": "Dogs."}},
                ]
            },
        },
        {"query": [1.0, 0.0, 1.0], "limit": 5, "with_payload": True},
        (Hit("7", "Cats.", 0.75), Hit("5c56c793", "Dogs.", 0.5)),
        None,
    ),
    "opensearch": (
        {
            "took": 3,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {
                "total": {"value": 1, "relation": "eq"},
                "max_score": 1.3,
                "hits": [{"_index": "docs", "_id": "a", "_score": 1.3, "_source": {"text": "Cats."}}],
            },
        },
        {"size": 5, "query": {"match": {"text": QUESTION}}},
        (Hit("a", "Cats.", 1.3),),
        Direction.SIMILARITY,
    ),
    "postgrest": (
        [{"id": 12, "content": "Cats.", "similarity": 0.83, "metadata": {}}],
        {"query_embedding": [1.0, 0.0, 1.0], "match_count": 5},
        (Hit("12", "Cats.", 0.83),),
        Direction.SIMILARITY,
    ),
}


@pytest.mark.costly
@pytest.mark.parametrize("preset", PRESETS)
async def test_recorded_shape(preset: str) -> None:
    """The request that the documentation asks for, and its reply, written by hand, read into passages."""
    reply, request, hits, direction = RECORDED[preset]
    recorded = Recorded(reply)
    with serving(*recorded.routes()) as address:
        result = await asked(build(options(address, preset), name="docs"), QUESTION)
    assert (result.failure, recorded.asked, result.hits, result.direction) == (None, request, hits, direction)


async def test_the_configuration_wins_over_the_preset() -> None:
    """Another field and direction; where the embedder is dead, the retriever is not asked at all."""
    recorded = Recorded({"result": {"points": [{"id": 1, "score": 2.0, "payload": {"body": "Cats."}}]}})
    parts = {"contexts": "result.points[].{id: id, text: payload.body, score: score}", "score": "distance"}
    with serving(*recorded.routes()) as address:
        result = await asked(build(options(address, "qdrant", **parts), name="docs"), QUESTION)
    assert (result.hits, result.direction) == ((Hit("1", "Cats.", 2.0),), Direction.DISTANCE)
    recorded = Recorded({})
    with serving(*recorded.routes()) as address:
        dead = {"url": f"http://{LOOPBACK}:{free_port()}/", "body": "{{ query }}", "vector": "v"}
        result = await asked(build(options(address, "qdrant", embed=dead), name="docs"), QUESTION)
    assert (result.failure, recorded.asked) == (Failure.CONNECT, None)


def call(url: str, body: Any, *, tries: int = 1) -> Any:
    """What a server replies to JSON; one that is still starting is asked again."""
    request = UrlRequest(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=DEADLINE) as reply:
            return json.loads(reply.read())
    except HTTPError:
        raise
    except OSError:
        if tries == 1:
            raise
        time.sleep(0.2)  # another process: there is nothing to wait on
        return call(url, body, tries=tries - 1)


@pytest.fixture
def chroma(tmp_path: Path) -> Iterator[str]:
    """The URL of a collection of three documents in a real Chroma server."""
    if find_spec("chromadb_rust_bindings") is None:
        pytest.skip("Chroma's server is not installed: pip install --no-deps chromadb")
    port = free_port()
    words = [sys.executable, "-c", START_CHROMA, "chroma", "run", "--path", str(tmp_path), "--host", LOOPBACK]
    with subprocess.Popen(
        [*words, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            collections = f"http://{LOOPBACK}:{port}{CHROMA}"
            collection = call(collections, {"name": "docs", "configuration": {"hnsw": {"space": "cosine"}}}, tries=100)[
                "id"
            ]
            rows = {"ids": ["d0", "d1", "d2"], "documents": ["Cats.", "Dogs.", "Fish."]}
            call(f"{collections}/{collection}/add", rows | {"embeddings": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]})
            yield f"{collections}/{collection}/query"
        finally:
            server.kill()


async def test_chroma_for_real(chroma: str) -> None:
    """A real server ranks by the vector that the embedder gave, and its distances are distances."""
    with serving(Route("/embed", embedded, methods=["POST"])) as address:
        result = await asked(build(options(address, "chroma", url=chroma), name="docs"), "cats and cats and fish")
    assert [hit.id for hit in result.hits] == ["d0", "d2", "d1"]
    assert result.hits[0].text == "Cats."
    assert result.hits[0].score == pytest.approx(1 - 2 / 5**0.5, abs=1e-5)
    assert result.direction is Direction.DISTANCE
