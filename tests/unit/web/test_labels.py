"""The API for labels, through an HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from support.snapshots import small

from ragwatch.board import Board
from ragwatch.core.labels.label import Label, from_record
from ragwatch.errors import StoreError
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import RequestPolicy, build_app
from ragwatch.web.labels import MAX_NOTE_CHARS, MAX_VALUES, PAGE_BYTES

WORD = {"key": "0" * 32, "annotator": "ann", "at": 1.0, "scores": {"faithfulness": 1.0}}


class Words:
    """Keeps words in a list."""

    def __init__(self, error: Exception | None = None) -> None:
        self.kept: list[Mapping[str, Any]] = []
        self.error = error

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """One task, which says who asked for how many."""
        if self.error is not None:
            raise self.error
        return [{"key": annotator, "count": count}]

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Keep what is a label."""
        labels = [from_record(record).to_record() for record in records]
        self.kept += labels
        return {"new": len(labels), "replaced": 0, "unmatched": 0}

    def labels(self) -> list[dict[str, Any]]:
        """What was kept."""
        return [dict(label) for label in self.kept]

    def pruned_until(self) -> float | None:
        """Nothing was taken."""
        return None


@asynccontextmanager
async def client(words: Words | None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application that hands words on."""
    board = Board()
    board.publish(small())
    app = build_app(
        board=board,
        render=lambda *_: (b"", ""),
        labels=None if words is None else lambda: words,
        policy=RequestPolicy(lambda: frozenset({"localhost"})),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as made:
        yield made


async def test_tasks_and_words_go_through() -> None:
    """What is asked is asked, what is given is kept, and what is kept can be had."""
    async with client(Words()) as made:
        asked = await made.post("/v1/labels/tasks", json={"annotator": "ann", "count": 3})
        assert asked.json() == {"tasks": [{"key": "ann", "count": 3}]}
        kept = await made.post("/v1/labels", json={"labels": [WORD]})
        assert (kept.status_code, kept.json()["new"]) == (200, 1)
        assert (await made.get("/api/v1/labels")).json()["labels"][0]["key"] == WORD["key"]
        assert (await made.get("/v1/labels")).status_code == 405


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/v1/labels", b"{", "body: not JSON"),
        ("/v1/labels", b"[]", "body: not an object"),
        ("/v1/labels", b'{"labels": []}', "labels: not a list of 1 to"),
        ("/v1/labels", b'{"labels": [1]}', "labels: not all are objects"),
        ("/v1/labels", b'{"labels": [{"annotator": ""}]}', "annotator: not a name"),
        (
            "/v1/labels",
            b'{"labels": [{"annotator": "a", "key": "k", "at": 1, "scores": {"faithfulness": 2}}]}',
            "labels:",
        ),
        ("/v1/labels/tasks", b'{"annotator": "a\\u001b", "count": 1}', "annotator: not a name"),
        ("/v1/labels/tasks", b'{"annotator": "a", "count": true}', "count: not a whole number"),
        ("/v1/labels/tasks", b'{"annotator": "a", "count": 1000}', "count: not a whole number"),
        ("/v1/labels", b" " * (5 << 20), "body: more than"),
    ],
)
async def test_what_is_wrong_is_named(path: str, body: bytes, why: str) -> None:
    """A bad request is refused with the reason, and nothing is kept."""
    words = Words()
    async with client(words) as made:
        response = await made.post(path, content=body)
    assert response.status_code == 400
    assert response.json()["error"].startswith(why)
    assert words.kept == []


async def test_other_sites_cannot_label() -> None:
    """A page of another site, or under another name, is refused before its words are read."""
    words = Words()
    async with client(words) as made:
        other = await made.post("/v1/labels", json={"labels": [WORD]}, headers={"Origin": "http://evil.example"})
        name = await made.post("/v1/labels", json={"labels": [WORD]}, headers={"Host": "evil.example"})
    assert (other.status_code, name.status_code, words.kept) == (403, 403, [])


async def test_a_store_that_cannot_be_used_is_told() -> None:
    """What the store says reaches the client."""
    async with client(Words(StoreError("state: the disk is full"))) as made:
        response = await made.post("/v1/labels/tasks", json={"annotator": "a", "count": 1})
    assert (response.status_code, response.json()) == (503, {"error": "state: the disk is full"})


async def test_where_nobody_takes_words_there_is_no_door() -> None:
    """Without labelling there are no such endpoints."""
    async with client(None) as made:
        assert (await made.post("/v1/labels", json={"labels": [WORD]})).status_code == 404


async def test_labels_come_page_by_page(store: SqliteStore) -> None:
    """What does not fit a response is behind its `next`, each label once; a made-up place is refused."""
    note = "x" * (MAX_NOTE_CHARS - 1)
    labels = [Label(f"{number:032x}", "ann", 1.0, {}, note=note) for number in range(PAGE_BYTES // MAX_NOTE_CHARS + 5)]
    store.add_labels(labels)
    rules = LabelRules({}, ())
    labelling = LabelTasks(rules, store=store, clock=lambda: 1.0, uniform=lambda: 0.5)
    app = build_app(board=Board(), render=lambda *_: (b"", ""), labels=lambda: labelling)
    path: str | None = "/api/v1/labels"
    keys: list[str] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as made:
        while path is not None:
            page = (await made.get(path)).json()
            keys += [label["key"] for label in page["labels"]]
            path = page.get("next")
        for place in ("x", "[1]", "7", '["x","y","z"]', "null"):
            refused = await made.get("/api/v1/labels", params={"after": place})
            assert (place, refused.status_code) == (place, 400)
    assert keys == [label.key for label in labels]


async def test_long_notes_are_refused() -> None:
    """A note is a remark, not a document: what is longer is the caller's error."""
    async with client(Words()) as made:
        text = await made.post("/v1/labels", json={"labels": [WORD | {"note": "x" * (MAX_NOTE_CHARS + 1)}]})
    assert (text.status_code, "note" in text.json()["error"]) == (400, True)


async def test_values_are_counted_before_they_are_made() -> None:
    """A body of a million empty lists would take a hundred megabytes and hold everything up: it is refused unread."""
    body = b'{"labels":[' + b"[]," * (MAX_VALUES // 2) + b"[]]}"
    async with client(Words()) as made:
        text = await made.post("/v1/labels", content=body)
    assert (text.status_code, text.json()["error"].startswith("body: more than")) == (400, True)
