"""The audit log of requests: who was shown which samples, who changed what, and no texts."""

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from support.asked import Words, application, asking, judged
from support.kit import a_draw, an_evidence
from support.snapshots import small

from ragwatch.errors import ConfigError, StoreError
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.access import INGEST_PATHS
from ragwatch.web.audit_trail import USER

DRAWS = [a_draw(str(number), question="SECRET") for number in range(2)]
KEYS = sorted(draw.key for draw in DRAWS)


class Lines:
    """Keeps what is recorded; a full disk refuses it."""

    def __init__(self, *, full: bool = False) -> None:
        self.kept: list[dict[str, Any]] = []
        self.full = full

    def record(self, **line: Any) -> None:
        """One line."""
        if self.full:
            raise StoreError("audit.file: cannot be written")
        self.kept.append(line)


def as_user(inner: ASGIApp, name: str) -> ASGIApp:
    """An application whose client has been authenticated."""

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        await inner({**scope, USER: name}, receive, send)

    return outer


@pytest.fixture
def answers(store: SqliteStore) -> SqliteStore:
    """A store of two answers that failed."""
    for draw in DRAWS:
        judged(store, draw, an_evidence((0, 0)))
    return store


async def test_reading_is_recorded(answers: SqliteStore) -> None:
    """Every page and address with texts records the samples that it shows, before they are sent."""
    of_search = ("/samples?route=search", "/samples.csv?route=search", "/samples.jsonl?route=search")
    of_all = (*of_search, "/api/v1/samples", "/api/v1/samples?texts=true", "/", "/api/v1/snapshot")
    shown = {f"{place}/{KEYS[0]}": KEYS[:1] for place in ("/samples", "/api/v1/samples")}
    for path, keys in (shown | dict.fromkeys(of_all, KEYS) | {"/api/v1/labels": []}).items():
        lines = Lines()
        made = application(small(), store=answers, audit=lines.record, labels=Words)
        async with asking(as_user(made, "anna")) as client:
            assert (path, (await client.get(path)).status_code) == (path, 200)
        assert sorted({key for line in lines.kept for key in line["keys"]}) == keys, path
        who = {(line["actor"], line["action"], line["address"]) for line in lines.kept}
        assert (path, who) == (path, {("anna", "read", "127.0.0.1")})
        assert {line["path"] for line in lines.kept} == {"/samples" if KEYS[0] in path else path.partition("?")[0]}
        assert (lines.kept[0]["parameters"] == {"route": "search"}) is ("route" in path)


async def test_scrapes_and_traffic_are_not_recorded() -> None:
    """They would fill the log, and a full disk of the log must not refuse answers that services send."""
    lines = Lines(full=True)
    async with asking(application(small(), audit=lines.record)) as client:
        for path in ("/metrics", "/-/healthy", "/static/ragwatch.css", "/canaries"):
            assert (path, (await client.get(path)).status_code) == (path, 200)
        for path in INGEST_PATHS:  # no source receives them here
            assert (path, (await client.post(path, content=b"{}")).status_code) == (path, 404)
    assert lines.kept == []


async def test_changes_are_recorded_without_texts() -> None:
    """Each POST is a line, with the parameters that are no free text, its status, and the keys of labelled samples."""

    async def act(parameters: Mapping[str, str]) -> str:
        if not parameters:
            raise ConfigError("no")
        return "done"

    lines = Lines()
    made = application(audit=lines.record, labels=Words, actions={"/-/events": act})
    label = {"key": KEYS[0], "annotator": "a", "at": 1.0, "scores": {}, "note": "SECRET"}
    async with asking(made) as client:
        await client.post("/-/events?kind=deploy&detail=SECRET")
        await client.post("/-/events")
        await client.post("/v1/labels", json={"labels": [label, {**label, "key": "SECRET"}]})
        await client.post("/v1/labels/tasks", json={"annotator": KEYS[1], "count": 1})
        await client.put("/SECRET")
        await client.post("/-/events?" + "&".join("a=b" for _ in range(60)))
    seen = [(line["action"], line["path"], line["status"], line["keys"], line["parameters"]) for line in lines.kept]
    assert seen == [
        ("write", "/-/events", 200, [], {"kind": "deploy"}),
        ("write", "/-/events", 500, [], None),
        ("write", "/v1/labels", 200, [KEYS[0]], None),
        ("read", "/v1/labels/tasks", 200, [KEYS[1]], None),
        ("write", "other", 404, [], None),
        ("write", "/-/events", 200, [], None),
    ]
    assert {line["actor"] for line in lines.kept} == {"anonymous"}
    assert "SECRET" not in str(lines.kept)


async def test_without_a_log_nothing_is_shown(answers: SqliteStore) -> None:
    """While the log cannot be written, the answer is a 503 that says so, without any text."""
    lines = Lines(full=True)
    async with asking(application(small(), store=answers, audit=lines.record)) as client:
        for path in ("/samples", f"/samples/{KEYS[0]}", "/api/v1/samples", "/"):
            response = await client.get(path)
            assert (path, response.status_code, response.text) == (path, 503, "audit.file: cannot be written\n")


async def test_a_stream_ends_where_the_log_does(answers: SqliteStore) -> None:
    """A response that has begun is cut before it shows a sample that could not be recorded."""
    lines = Lines()

    def record(**line: Any) -> None:
        lines.record(**line)
        lines.full = True

    async with asking(application(store=answers, audit=record)) as client:
        response = await client.get("/api/v1/samples?texts=true")
    assert "SECRET" not in response.text
