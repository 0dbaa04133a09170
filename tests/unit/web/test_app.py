"""The endpoints, and the requests with records that reach the source that receives them."""

import asyncio
import gzip
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette
from support.asked import application, asking, judged
from support.kit import a_draw, an_evidence
from support.patience import DEADLINE
from support.snapshots import AT, JUDGE, ROUTES, an_exporter, small

from ragwatch.errors import ConfigError
from ragwatch.model.evidence import Evidence
from ragwatch.ports import Erasure
from ragwatch.ports.sources import IncomingRequest, Reply
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope, ParameterError

SCOPE = PageScope(("app",), ROUTES, (JUDGE,), ("1h",), {"faithfulness": 0.7})


def app(**parts: Any) -> Starlette:
    """The application over the small Snapshot, with its series."""
    return application(small(), **{"render": an_exporter(small()).render, "scope": lambda: SCOPE, **parts})


async def test_metrics_negotiates_and_filters() -> None:
    """The Accept header chooses the format, `name[]` the samples."""
    async with asking(app()) as client:
        text = await client.get("/metrics", headers={"Accept-Encoding": "identity"})
        openmetrics = await client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
        one = await client.get("/metrics", params={"name[]": ["ragwatch_samples_drawn_total", "process_open_fds", "x"]})
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "content-encoding" not in text.headers
    assert openmetrics.text.endswith("# EOF\n")
    names = {re.split("[ {]", line)[0] for line in one.text.splitlines() if not line.startswith("#")}
    assert names == {"ragwatch_samples_drawn_total", "process_open_fds"}
    assert "content-encoding" not in one.headers


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("br", False),
    ],
)
async def test_large_scrapes_are_zipped_when_wanted(accepted: str, zipped: bool) -> None:  # noqa: FBT001 - of the table
    """Gzip is used only where it is accepted, and says so."""
    async with (
        asking(app()) as client,
        client.stream("GET", "/metrics", headers={"Accept-Encoding": accepted}) as response,
    ):
        body = b"".join([chunk async for chunk in response.aiter_raw()])
    assert (response.headers.get("content-encoding") == "gzip") is zipped
    assert b"ragwatch_build_info" in (gzip.decompress(body) if zipped else body)
    assert response.headers["vary"] == "Accept, Accept-Encoding"


async def test_a_slow_scrape_does_not_stop_the_loop() -> None:
    """While one scrape is being rendered, other requests are answered."""
    asked, released = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_: str, __: Sequence[str]) -> tuple[bytes, str]:
        loop.call_soon_threadsafe(asked.set)
        assert released.wait(DEADLINE)
        return b"done", "text/plain"

    async with asking(app(render=slow)) as client:
        scrape = asyncio.create_task(client.get("/metrics"))
        await asked.wait()
        assert (await client.get("/-/healthy")).text == "ragwatch is healthy\n"
        assert not scrape.done()
        released.set()
        assert (await scrape).text == "done"


async def test_ready_gives_its_reasons() -> None:
    """Not ready is 503 with one reason a line."""
    problems: list[str] = []
    async with asking(app(ready=lambda: tuple(problems))) as client:
        assert (await client.get("/-/ready")).status_code == 200
        problems += ["app cannot be read", "disk is full"]
        refused = await client.get("/-/ready")
        assert (await client.get("/-/healthy")).status_code == 200
    assert (refused.status_code, refused.text) == (503, "app cannot be read\ndisk is full\n")


async def test_an_action_is_a_post_and_says_why_it_failed() -> None:
    """GET does nothing; a refused configuration is ours, parameters are the caller's fault."""
    errors: list[Exception | None] = [None, ConfigError("web.listen: bad"), ParameterError("suite: not known")]

    async def act(parameters: Mapping[str, str]) -> str:
        if (error := errors.pop(0)) is not None:
            raise error
        return f"done {parameters}"

    async with asking(app(actions={"/-/reload": act})) as client:
        refused = await client.get("/-/reload")
        assert len(errors) == 3
        replies = [await client.post("/-/reload") for _ in range(3)]
    assert (refused.status_code, refused.text) == (405, "This endpoint requires a POST request.\n")
    assert refused.headers["allow"] == "POST"
    assert [reply.status_code for reply in replies] == [200, 500, 400]
    for reply, text in zip(replies, ("done {}\n", "web.listen: bad", "suite: not known"), strict=True):
        assert text in reply.text


async def test_the_page_and_its_json_show_the_newest_failing_answers(store: SqliteStore) -> None:
    """Ten of all faulty stages, newest first; long questions are cut, forgotten ones are none."""
    evidences = (an_evidence((1, 0), relevant=(False, False)), an_evidence((0, 0)), an_evidence((1, 0)))
    draws = [a_draw(f"r{number}", at=AT + number, question="x" * 500) for number in range(16)]
    for number, draw in enumerate(draws):
        judged(store, draw, evidences[number % 3])
    store.forget(Erasure(ids=frozenset({draws[-1].key})))
    async with asking(app(store=store)) as client:
        page = await client.get("/", params={"window": "1h"})
        view = (await client.get("/api/v1/snapshot", params={"window": "1h"})).json()
        for path in ("/", "/routes", "/api/v1/snapshot"):
            assert (await client.get(path, params={"window": "3h", "route": "search"})).status_code == 400
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert view["headline"] in page.text
    assert view["routes"][0]["judges"][0]["figures"][0]["value"] == 0.6
    failing = view["failing"]
    assert [row["at"] - AT for row in failing] == [15, 13, 12, 10, 9, 7, 6, 4, 3, 1]
    assert [row["stage"] for row in failing[:2]] == ["retrieval", "generation"]
    assert (failing[0]["question"], len(failing[1]["question"])) == (None, 140)


@pytest.mark.parametrize(
    ("evidence", "stage", "shown"),
    [
        (an_evidence((0, 0), relevant=(True, False)), "generation", ("faithfulness", 0.0)),
        (an_evidence(address="abstained"), "generation", (None, None)),
    ],
)
async def test_a_failing_answer_is_shown_with_a_score_of_its_stage(
    store: SqliteStore, evidence: Evidence, stage: str, shown: tuple[str | None, float | None]
) -> None:
    """A score of another stage says nothing about the fault: an abstention has none. The time is on the hover text."""
    judged(store, a_draw("r1", at=AT - 130.0), evidence)
    async with asking(app(store=store)) as client:
        (row,) = (await client.get("/api/v1/snapshot", params={"window": "1h"})).json()["failing"]
        page = (await client.get("/")).text
    assert (row["stage"], (row["quantity"], row["score"])) == (stage, shown)
    assert ('UTC">2 min ago</time>' in page, row["answer"] in page) == (True, True)


def receiver(name: str) -> Any:
    """A source that answers with its name and the size of the body."""

    async def handle(request: IncomingRequest) -> Reply:
        body = b"".join([chunk async for chunk in request.chunks])
        return Reply(202, f"{name} {len(body)} {request.headers['content-type']}".encode(), "text/plain", {"X-A": "b"})

    return handle


@pytest.mark.parametrize(
    ("path", "names", "query", "status", "says"),
    [
        *((path, "a", "", 202, "a 5 text/x") for path in ("/v1/samples", "/v1/traces", "/v1/feedback")),
        ("/v1/traces", "a", "?source=a", 202, "a 5 text/x"),
        ("/v1/samples", "ba", "?source=b", 202, "b 5 text/x"),
        ("/v1/samples", "ba", "", 400, "source: several are configured; add ?source=NAME, one of: a, b"),
        ("/v1/samples", "ba", "?source=c", 404, "source: 'c' does not receive requests; use one of: a, b"),
        ("/v1/samples", "ba", "?source=a&source=b", 400, "source: is given twice; name one source"),
        ("/v1/samples", "", "", 404, "sources: none of kind push is configured; add one"),
        ("/v1/traces", "", "", 404, "sources: none of kind otlp is configured; add one"),
        ("/v1/feedback", "", "", 404, "sources: none of kind push is configured; add one"),
    ],
)
async def test_which_source_receives(path: str, names: str, query: str, status: int, says: str) -> None:
    """The only source of a path receives, of several the one that is named; without one, the error says what to do."""
    receivers = {path: {name: receiver(name) for name in names}} if names else {}
    async with asking(application(receivers=lambda: receivers)) as client:
        reply = await client.post(f"{path}{query}", content=b"12345", headers={"Content-Type": "text/x"})
    if status == 202:
        assert (reply.status_code, reply.text, reply.headers["X-A"]) == (status, says, "b")
    else:
        assert (reply.status_code, reply.json()) == (status, {"error": says})


@pytest.mark.parametrize(
    ("path", "says"), [("/api/v1/nothing", "/api/v1/openapi.json"), ("/nothing", "/"), ("/static/nothing.css", "/")]
)
async def test_an_unknown_path_says_where_the_known_ones_are(path: str, says: str) -> None:
    """Programs get an error as JSON; people get a sentence. Both name a path that exists."""
    async with asking(application()) as client:
        reply, known = await client.get(path), await client.get(says)
    assert (reply.status_code, says in reply.text, known.status_code) == (404, True, 200)
    assert reply.headers["content-type"].startswith("application/json" if path.startswith("/api") else "text/plain")
