"""A real PostgreSQL behind the probe: full text search, and the function that pgvector's guides define.

PostgREST, which puts functions of PostgreSQL on HTTP, is to be had from neither PyPI nor Debian. A route of ours stands
in for it: it calls a function with the members of the request's body, and replies with its rows as JSON, as PostgREST
does. pgvector's `vector` is an array of numbers here, its distance written out in SQL. Skipped where no PostgreSQL is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.postgres import shared_server
from support.retrievers import asked, serving

from ragwatch.core.canary.definition import Canary, Category, Direction, Expected, Failure
from ragwatch.core.canary.report import CanaryOutcome, evaluate
from ragwatch.probes.http import Options, build

pytestmark = pytest.mark.servers

SCHEMA = """
CREATE TABLE documents (id text PRIMARY KEY, content text NOT NULL, embedding float8[] NOT NULL);
INSERT INTO documents VALUES
    ('refunds', 'Refunds are paid within five days to the card that was used.', '{1, 0, 0}'),
    ('shipping', 'Shipping is free for orders above forty euros.', '{0, 1, 0}'),
    ('returns', 'Returned goods are refunded when the parcel has been opened and checked.', '{0.6, 0, 0.8}');
CREATE FUNCTION search_documents(query text, match_count int)
    RETURNS TABLE (id text, content text, similarity float4) LANGUAGE sql STABLE AS $$
    SELECT id, content, ts_rank(to_tsvector('english', content), wanted) AS similarity
    FROM documents, websearch_to_tsquery('english', query) wanted
    WHERE to_tsvector('english', content) @@ wanted ORDER BY similarity DESC, id LIMIT match_count $$;
CREATE FUNCTION match_documents(query_embedding float8[], match_count int)
    RETURNS TABLE (id text, content text, similarity float8) LANGUAGE sql STABLE AS $$
    SELECT id, content, (
        SELECT sum(x * y) / sqrt(sum(x * x) * sum(y * y)) FROM unnest(embedding, query_embedding) AS both_of(x, y)
    ) AS similarity
    FROM documents ORDER BY similarity DESC LIMIT match_count $$;
"""
CALLS = {
    "search_documents": "query text, match_count int",
    "match_documents": "query_embedding float8[], match_count int",
}


async def call(request: Request) -> Response:
    """`POST /rpc/FUNCTION`, as PostgREST has it."""
    name, body = request.path_params["name"], (await request.body()).decode()
    names = ", ".join(argument.split()[0] for argument in CALLS[name].split(", "))
    statement = (
        "SELECT coalesce(json_agg(found), '[]')"  # noqa: S608 - words of ours
        f" FROM json_to_record(:'body'::json) AS given({CALLS[name]}), LATERAL {name}({names}) AS found;"
    )
    try:
        reply = await run_in_threadpool(shared_server().sql, statement, body=body)
    except AssertionError as error:
        return JSONResponse({"message": str(error)}, status_code=400)
    return Response(reply, media_type="application/json")


@pytest.fixture(scope="module")
def filled() -> None:
    """A real server with a database of three documents."""
    shared_server().sql(SCHEMA)


@pytest.fixture
def address(filled: None) -> Iterator[str]:  # noqa: ARG001 - what is called
    """Where its functions can be called."""
    with serving(Route("/rpc/{name}", call, methods=["POST"])) as address:
        yield address


def full_text(address: str) -> Options:
    """Full text search: the preset's reply, another request."""
    body = {"query": "{{ query }}", "match_count": "{{ k }}"}
    return Options.model_validate({"preset": "postgrest", "url": f"{address}/rpc/search_documents", "body": body})


@pytest.mark.costly
async def test_full_text_search(address: str) -> None:
    """PostgreSQL ranks by its own stems; a canary finds its document, and a negative one finds nothing."""
    probe = build(full_text(address), name="docs")
    result = await probe.ask("refund paid", 5)
    nothing = await probe.ask("xylophones", 5)
    injected = await probe.ask("'; DROP TABLE documents; --", 5)
    several = await probe.ask("refund", 5)
    await probe.close()
    assert [hit.id for hit in result.hits] == ["refunds"]
    assert result.hits[0].text == "Refunds are paid within five days to the card that was used."
    assert result.direction is Direction.SIMILARITY
    assert {hit.id for hit in several.hits} == {"refunds", "returns"}
    assert (injected.failure, injected.hits) == (None, ())
    canary = Canary("refunds", "refund paid", (Expected("refunds"),), min_relevance_score=0.01)
    negative = Canary("nothing", "xylophones", category=Category.NEGATIVE)
    assert evaluate(canary, result, 5, at=0.0).outcome is CanaryOutcome.FOUND
    assert evaluate(negative, nothing, 5, at=0.0).outcome is CanaryOutcome.FOUND


async def test_the_preset_for_vectors(address: str) -> None:
    """`match_documents` is asked as the preset says, with the vector that the embedder gave."""

    async def embedded(request: Request) -> Response:
        words = (await request.json())["input"].split()
        return JSONResponse({"vector": [float(words.count(word)) for word in ("money", "parcel", "opened")]})

    with serving(Route("/embed", embedded, methods=["POST"])) as embedder:
        embed: dict[str, Any] = {"url": f"{embedder}/embed", "body": {"input": "{{ query }}"}, "vector": "vector"}
        whole = {"preset": "postgrest", "url": f"{address}/rpc/match_documents", "embed": embed}
        result = await asked(build(Options.model_validate(whole), name="docs"), "money money", 2)
    assert [hit.id for hit in result.hits] == ["refunds", "returns"]
    assert [hit.score for hit in result.hits] == pytest.approx([1.0, 0.6])


async def test_what_the_database_refuses_is_a_counted_reason(address: str) -> None:
    """A vector where a text is wanted: `status`, no score."""
    made = full_text(address).model_copy(update={"body": {"query": "{{ query }}", "match_count": "many"}})
    assert (await asked(build(made, name="docs"))).failure is Failure.STATUS
