"""The endpoints, through an HTTP client."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette
from support.asked import application, asking
from support.kit import a_stored_line
from support.patience import DEADLINE
from support.snapshots import AT, JUDGE, KEY, ROUTES, small

from ragwatch.board import Board
from ragwatch.core.verdict_line import parse_verdict_line
from ragwatch.errors import ConfigError, StoreError
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.ports import PackedVerdict, Query, StoredVerdict
from ragwatch.stores.rows import pack
from ragwatch.stores.texts import PackedText
from ragwatch.telemetry import Telemetry
from ragwatch.web import PageScope, ParameterError

SCOPE = PageScope(("app",), ROUTES, (JUDGE,), ("1h",), {"faithfulness": 0.7})


class Shelf:
    """The part of a store that the web reads: a list of verdicts."""

    def __init__(self, verdicts: Sequence[StoredVerdict] = (), error: Exception | None = None) -> None:
        self.verdicts = verdicts
        self.error = error
        self.asked: list[Query] = []

    def find(self, query: Query) -> list[StoredVerdict]:
        """Verdicts by key and stage."""
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        matching = [
            stored
            for stored in self.verdicts
            if query.key in (None, stored.verdict.key) and query.stage in (None, stored.verdict.stage)
        ]
        return matching[: query.limit]

    summaries = find

    def trends(self, _: object) -> list[object]:
        """No sums of scores."""
        return []

    def feedback_of(self, key: str) -> tuple[float, float] | None:
        """What the user of one answer said."""
        return (0.75, AT) if any(stored.verdict.key == key for stored in self.verdicts) else None

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """The same, packed."""
        for stored in self.find(query):
            sample = None if stored.sample is None else PackedText(pack(stored.sample))
            yield PackedVerdict(0, stored.verdict, stored.line, stored.line, PackedText(pack({"id": "r1"})), sample)


def verdict(number: int = 0, stage: str = "retrieval", question: str | None = "Why?") -> StoredVerdict:
    """A stored verdict."""
    line = a_stored_line(key=f"{number:032x}", at=AT + number, stage=stage)
    return StoredVerdict(parse_verdict_line(line), line, None if question is None else {"question": question})


def app(shelf: Shelf | None = None, **parts: Any) -> Starlette:
    """The application over the small Snapshot."""
    board = Board()
    board.publish(small())
    render = Exporter(board, Telemetry(), AllowedLabels(sources=["app"], routes=ROUTES, judges=[JUDGE])).render
    return application(small(), **{"store": shelf, "render": render, "scope": lambda: SCOPE, **parts})


async def test_metrics_negotiates_and_filters() -> None:
    """The Accept header chooses the format, `name[]` the samples."""
    async with asking(app()) as client:
        text = await client.get("/metrics", headers={"Accept-Encoding": "identity"})
        openmetrics = await client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
        one = await client.get("/metrics", params={"name[]": ["ragwatch_samples_pending", "process_open_fds"]})
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "content-encoding" not in text.headers
    assert openmetrics.text.endswith("# EOF\n")
    names = {line.split()[0] for line in one.text.splitlines() if not line.startswith("#")}
    assert names == {"ragwatch_samples_pending", "process_open_fds"}
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


async def test_reload_is_a_post() -> None:
    """POST loads the configuration, GET changes nothing."""
    times = 0

    async def reload(parameters: Mapping[str, str]) -> str:
        nonlocal times
        times += 1
        return f"done {parameters}"

    async with asking(app(actions={"/-/reload": reload})) as client:
        refused = await client.get("/-/reload")
        assert times == 0
        done = await client.post("/-/reload")
    assert (refused.status_code, refused.text) == (405, "This endpoint requires a POST request.\n")
    assert refused.headers["allow"] == "POST"
    assert (done.status_code, done.text, times) == (200, "done {}\n", 1)


@pytest.mark.parametrize(
    ("error", "status"),
    [(ConfigError("web.listen: bad"), 500), (ParameterError("suite: 'x' is not known"), 400)],
)
async def test_why_an_action_fails_is_told(error: Exception, status: int) -> None:
    """A refused configuration, and parameters that are the caller's fault."""

    async def act(_: Mapping[str, str]) -> str:
        raise error

    async with asking(app(actions={"/-/act": act})) as client:
        response = await client.post("/-/act?suite=x")
    assert (response.status_code, str(error) in response.text) == (status, True)


async def test_the_page_and_its_json_agree() -> None:
    """`/api/v1/snapshot` is what `/` shows."""
    async with asking(app(Shelf([verdict()]))) as client:
        page = await client.get("/", params={"window": "1h"})
        view = (await client.get("/api/v1/snapshot", params={"window": "1h"})).json()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert view["headline"] in page.text
    assert view["routes"][0]["judges"][0]["figures"][0]["value"] == 0.6
    assert [row["question"] for row in view["failing"]] == ["Why?"]


async def test_the_newest_failing_answers_come_first() -> None:
    """Ten of all faulty stages, newest first; long questions are cut, forgotten ones are none."""
    stages = ("retrieval", "generation", "alignment", "none")
    verdicts = [verdict(number, stages[number % 4], "x" * 500) for number in range(20)]
    async with asking(app(Shelf([verdict(99, question=None), *verdicts]))) as client:
        failing = (await client.get("/api/v1/snapshot")).json()["failing"]
    assert [row["at"] - AT for row in failing] == [99, 18, 17, 16, 14, 13, 12, 10, 9, 8]
    assert (failing[0]["question"], len(failing[1]["question"])) == (None, 140)


async def test_samples_are_searched_and_shown_whole() -> None:
    """The search is passed on; a key shows every verdict of that sample."""
    shelf = Shelf([verdict(1), verdict(2, "none")])
    async with asking(app(shelf)) as client:
        listed = (await client.get("/api/v1/samples", params={"stage": "retrieval", "limit": 3})).json()
        one = (await client.get(f"/api/v1/samples/{1:032x}")).json()
        bad = await client.get("/api/v1/samples", params={"limit": "many"})
    assert shelf.asked[0] == Query(stage="retrieval", limit=3)
    assert [row["verdict"]["key"] for row in listed["samples"]] == [f"{1:032x}"]
    assert (one["verdicts"][0]["at"], one["sample"]) == (AT + 1, {"question": "Why?"})
    assert (bad.status_code, bad.json()["error"][:6]) == (400, "limit:")


@pytest.mark.parametrize("key", ["xyz", KEY.upper(), KEY[:31], KEY + "0", "..%2f..%2fetc", f"{7:032x}", KEY + "%0a"])
async def test_unknown_and_odd_keys_are_not_found(key: str) -> None:
    """Only 32 hex digits reach the store."""
    shelf = Shelf()
    async with asking(app(shelf)) as client:
        assert (await client.get(f"/api/v1/samples/{key}")).status_code == 404
    assert [query.key for query in shelf.asked] == ([key] if key == f"{7:032x}" else [])


async def test_without_a_store_there_are_no_samples() -> None:
    """The page and the search stand without a store."""
    async with asking(app()) as client:
        assert (await client.get("/api/v1/samples")).json() == {"samples": []}
        assert (await client.get("/api/v1/snapshot")).json()["failing"] == []


async def test_a_broken_store_is_named() -> None:
    """The page stands and says what is wrong; the search answers 503."""
    async with asking(app(Shelf(error=StoreError("disk is gone")))) as client:
        assert "the store cannot be read: disk is gone" in (await client.get("/")).text
        response = await client.get("/api/v1/samples")
    assert (response.status_code, response.json()) == (503, {"error": "disk is gone"})
