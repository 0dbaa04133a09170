"""Probe `http` against a real server on the loopback interface: replies, and every way to get none."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from support.programs import free_port
from support.retrievers import FaultyRetriever, asked, options, serving

from ragwatch.probes.http import HttpProbe, build
from ragwatch.statistics.canary.definition import CanaryMarks, Direction, Failure, Hit

HITS = (Hit("d1", "Cats purr.", 0.9), Hit("d2", "Dogs bark.", 0.4))


@pytest.fixture
async def probe(address: str) -> AsyncIterator[HttpProbe]:
    """A probe of the retriever; three seconds are long enough for a busy machine."""
    made = build(options(address, timeout=3.0, max_bytes=1_000_000, concurrency=64), name="docs")
    yield made
    await made.close()


async def test_a_reply(probe: HttpProbe, retriever: FaultyRetriever) -> None:
    """Passages in order, with the declared direction; k arrives as a number; odd replies are read as far as they go."""
    result = await probe.ask("cats", 5)
    assert (result.hits, result.direction, result.failure, result.detail) == (HITS, Direction.SIMILARITY, None, "")
    assert result.seconds > 0.0
    assert retriever.seen == [{"query": "cats", "k": 5}]
    for query, k, hits in (
        ("cats", 1, HITS[:1]),  # a retriever that ignores k cannot raise recall
        ("none", 5, ()),  # nothing found is no failure
        ("cut", 5, (Hit("a", "cut \ufffd", 1.0),)),  # half of a surrogate pair is replaced, and the document is there
    ):
        odd = await probe.ask(query, k)
        assert (odd.failure, odd.hits) == (None, hits)


async def test_questions_arrive_as_they_are(probe: HttpProbe, retriever: FaultyRetriever) -> None:
    """Whatever they hold: JSON is built, not pasted, and what is filled in is not filled in again."""
    queries = ['say "hi" {{ k }}', "a\nb\\c", "ünïcödé 日本 🦆", "}}{{ query }}"]
    for query in queries:
        assert (await probe.ask(query, 5)).failure is None
    assert [body["query"] for body in retriever.seen] == queries


async def test_a_query_that_cannot_be_sent_fails_alone(address: str, retriever: FaultyRetriever) -> None:
    """Half of a surrogate pair is no JSON and no part of a URL, and a URL has a largest length: counted, not raised."""
    by_url = {"method": "GET", "body": None, "params": {"query": "{{ query }}"}}
    for made in (build(options(address), name="docs"), build(options(address, **by_url), name="docs")):
        results = await asyncio.gather(*(made.ask(query, 5) for query in ("cats", "half \ud83d", "dogs")))
        assert [result.failure for result in results] == [None, Failure.UNSENDABLE, None]
        assert results[1].detail.startswith("no request can be made of the query: ")
        await made.close()
    result = await asked(build(options(address, **by_url), name="docs"), "x" * 100_000)
    assert (result.failure, result.detail) == (
        Failure.UNSENDABLE,
        "no request can be made of the query: InvalidURL: URL component 'query' too long",
    )
    assert len(retriever.seen) == 4


FAULTS = {
    "slow": Failure.TIMEOUT,
    "status": Failure.STATUS,
    "unauthorised": Failure.STATUS,
    "not_json": Failure.NOT_JSON,
    "torn": Failure.NOT_JSON,
    "nan": Failure.NOT_JSON,
    "empty": Failure.NOT_JSON,
    "gzip": Failure.NOT_JSON,
    "shape": Failure.SHAPE,
    "metadata": Failure.REDIRECT,
    "redirect": Failure.REDIRECT,
    "huge": Failure.TOO_LARGE,
}


@pytest.mark.costly
async def test_each_fault_is_a_counted_reason_and_leaves_others_unaffected(probe: HttpProbe) -> None:
    """A value, never an exception; no passage is invented, and a person is told what happened.

    All faults at once, with good questions between them.
    """
    queries = [query for fault in FAULTS for query in (fault, "cats")]
    results = dict(zip(queries, await asyncio.gather(*(probe.ask(query, 5) for query in queries)), strict=True))
    expected = {fault: (reason, (), True) for fault, reason in FAULTS.items()} | {"cats": (None, HITS, False)}
    assert {query: (one.failure, one.hits, bool(one.detail)) for query, one in results.items()} == expected


async def test_x6_redirects_are_not_followed(probe: HttpProbe, retriever: FaultyRetriever) -> None:
    """Nowhere, not even on the same server."""
    await probe.ask("redirect", 5)
    assert retriever.followed == 0


async def test_x6_a_large_reply_is_not_read_to_its_end(probe: HttpProbe) -> None:
    """At the cap of one megabyte the connection is closed: that the end never comes after two is not noticed."""
    assert (await probe.ask("stalled", 5)).failure is Failure.TOO_LARGE


async def test_nobody_listens() -> None:
    """A dead endpoint is `connect`, and so is a name that does not resolve (`.invalid` never does, RFC 2606)."""
    for host in (f"127.0.0.1:{free_port()}", "retriever.invalid"):
        result = await asked(build(options(f"http://{host}"), name="docs"))
        assert (result.failure, result.detail.split(":")[0]) == (Failure.CONNECT, "ConnectError"), host


async def test_x7_nothing_compressed_is_asked_for(address: str, retriever: FaultyRetriever) -> None:
    """What is small on the wire must not be large behind the cap."""
    await asked(build(options(address), name="docs"))
    assert retriever.headers["accept-encoding"] == "identity"


async def test_x26_canaries_are_marked(address: str, retriever: FaultyRetriever) -> None:
    """A service can tell our questions from those of its users, and leave them out of its log."""
    await asked(build(options(address), name="docs"))
    assert retriever.headers["x-ragwatch-canary"] == "docs"
    assert retriever.headers["user-agent"].startswith("ragwatch/")
    marks = CanaryMarks(b"secret")
    await asked(build(options(address), name="docs", mark=lambda: marks.mark("docs", 0.0)))
    assert marks.is_valid(retriever.headers["x-ragwatch-canary"], 0.0)


async def test_credentials_are_sent_and_never_shown(address: str, retriever: FaultyRetriever) -> None:
    """A bearer token and a header of one's own reach the server, and not the options' text."""
    made = options(address, bearer="s3cret", headers={"X-Api-Key": "k3y"})
    await asked(build(made, name="docs"))
    assert (retriever.headers["authorization"], retriever.headers["x-api-key"]) == ("Bearer s3cret", "k3y")
    assert not {"s3cret", "k3y"} & set(repr(made).replace("'", " ").split())


async def test_get_with_parameters(address: str, retriever: FaultyRetriever) -> None:
    """Parameters join those of the URL, escaped."""
    made = options(address, url=f"{address}/search?lang=en", method="GET", body=None, params={"query": "{{ query }}"})
    result = await asked(build(made, name="docs"), "cats & dogs?")
    assert (result.failure, retriever.seen) == (None, [{"lang": "en", "query": "cats & dogs?"}])


@pytest.mark.costly
async def test_as_many_at_a_time_as_allowed(address: str) -> None:
    """With one turn, a slow question makes the next wait, and waiting is not counted as its time."""
    made = build(options(address, concurrency=1, timeout=1.0), name="docs")
    slow, good = await asyncio.gather(made.ask("slow", 5), made.ask("cats", 5))
    await made.close()
    assert (slow.failure, good.failure) == (Failure.TIMEOUT, None)
    assert good.seconds < slow.seconds


async def test_no_cookie_is_kept() -> None:
    """Each question is that of a new user: a balancer's cookie would tie all of them to one healthy replica."""
    sent: list[str | None] = []

    async def search(request: Request) -> Response:
        sent.append(request.headers.get("cookie"))
        reply = JSONResponse({"hits": []})
        reply.set_cookie(f"replica-{len(sent)}", "a")
        return reply

    with serving(Route("/search", search, methods=["POST"])) as address:
        made = build(options(address), name="docs")
        for _ in range(2):
            assert (await made.ask("cats", 5)).failure is None
        await made.close()
    assert sent == [None, None]
