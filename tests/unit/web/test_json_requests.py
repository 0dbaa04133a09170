"""JSON requests that change something: labels, the erasure of a person, a second reading."""

import math
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from support.asked import Words, application, asking, bearer, by_token
from support.snapshots import small

from ragwatch.errors import ConfigError, StoreError
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Erased, Erasure
from ragwatch.statistics.labels.label import Label, from_record
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import ParameterError, RequestPolicy, Right
from ragwatch.web.json_requests import MAX_NOTE_CHARS, PAGE_BYTES, LabelRate
from ragwatch.web.json_values import MAX_VALUES

WORD = {"key": "0" * 32, "annotator": "ann", "at": 1.0, "scores": {"faithfulness": 1.0}}
ACCESS = by_token(ann={Right.PAGES, Right.WRITE}, bob={Right.PAGES, Right.WRITE}, reader={Right.PAGES})


def client(words: Words, refusals: list[str] | None = None) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """A client of the application that hands words on."""
    policy = RequestPolicy(lambda: frozenset({"localhost"}))
    if refusals is not None:
        policy = replace(policy, access=lambda: ACCESS, refused=refusals.append)
    return asking(application(small(), labels=lambda: words, policy=policy))


DEEP = "[" * 1_000 + "]" * 1_000  # orjson decodes it, and Python cannot show it


async def test_tasks_and_words_go_through() -> None:
    """What is asked is asked, what is given is kept, and what is kept can be had."""
    async with client(Words()) as made:
        asked = await made.post("/v1/labels/tasks", json={"annotator": "ann", "count": 3})
        assert asked.json() == {"tasks": [{"key": "ann", "count": 3}]}
        kept = await made.post("/v1/labels", json={"labels": [WORD]})
        assert (kept.status_code, kept.json()["new"]) == (200, 1)
        assert (await made.get("/api/v1/labels")).json()["labels"][0]["key"] == WORD["key"]
        assert (await made.get("/v1/labels")).status_code == 405


async def test_labels_come_page_by_page(store: SqliteStore) -> None:
    """What does not fit a response is behind its `next`, each label once; a made-up place is refused."""
    note = "x" * (MAX_NOTE_CHARS - 1)
    labels = [Label(f"{number:032x}", "ann", 1.0, {}, note=note) for number in range(PAGE_BYTES // MAX_NOTE_CHARS + 5)]
    store.add_labels(labels)
    rules = LabelRules({}, ())
    labelling = LabelTasks(rules, store=store, clock=lambda: 1.0, uniform=lambda: 0.5)
    path: str | None = "/api/v1/labels"
    keys: list[str] = []
    async with asking(application(labels=lambda: labelling)) as made:
        while path is not None:
            page = (await made.get(path)).json()
            keys += [label["key"] for label in page["labels"]]
            path = page.get("next")
        for place in ("x", "[1]", "7", '["x","y","z"]', "null", f"[1,{DEEP},2]"):
            refused = await made.get("/api/v1/labels", params={"after": place})
            assert (place, refused.status_code) == (place, 400)
    assert keys == [label.key for label in labels]


async def test_labels_have_the_name_of_who_sends_them() -> None:
    """A token labels, asks and takes back under its own name alone; without the right to write nothing is kept."""
    words, refusals = Words(), list[str]()
    async with client(words, refusals) as made:
        other = await made.post("/v1/labels", json={"labels": [WORD]}, headers=bearer("bob"))
        assert (other.status_code, other.text) == (
            403,
            "annotator: you are bob, and labels are stored under that name, not 'ann'; use --annotator bob",
        )
        tasks = await made.post("/v1/labels/tasks", json={"annotator": "ann", "count": 1}, headers=bearer("bob"))
        back = {"key": WORD["key"], "annotator": "ann"}
        revoke = await made.post("/v1/labels/revoke", json=back, headers=bearer("bob"))
        reader = await made.post("/v1/labels", json={"labels": [WORD]}, headers=bearer("reader"))
        nobody = await made.post("/v1/labels", json={"labels": [WORD]})
        refused = [response.status_code for response in (tasks, revoke, reader, nobody)]
        assert (refused, words.kept, words.revoked) == ([403, 403, 403, 401], [], [])
        assert (await made.post("/v1/labels", json={"labels": [WORD]}, headers=bearer("ann"))).status_code == 200
        own = await made.post("/v1/labels/revoke", json={"key": WORD["key"]}, headers=bearer("ann"))
        assert (own.json(), words.revoked) == ({"revoked": 1}, [(WORD["key"], "ann")])
    assert refusals == ["right", "credentials"]


async def test_whoever_is_not_asked_for_a_name_gives_one() -> None:
    """On loopback without credentials the name in the request stands, and nobody is counted."""
    words = Words()
    async with client(words) as made:
        for _ in range(3):
            assert (await made.post("/v1/labels", json={"labels": [WORD, WORD]})).status_code == 200
        await made.post("/v1/labels/revoke", json={"key": WORD["key"]})
    assert (len(words.kept), words.revoked) == (6, [(WORD["key"], None)])


async def test_an_annotator_has_a_limit_per_hour() -> None:
    """Labels beyond it are refused and counted, with the time to wait; those of others are not."""
    words, refusals = Words(), list[str]()
    async with client(words, refusals) as made:
        assert (await made.post("/v1/labels", json={"labels": [WORD] * 2}, headers=bearer("ann"))).status_code == 200
        more = await made.post("/v1/labels", json={"labels": [WORD] * 2}, headers=bearer("ann"))
        assert (more.status_code, 3590 <= int(more.headers["retry-after"]) <= 3600) == (429, True)
        assert "ann has sent 2 in the last hour" in more.text
        bob = WORD | {"annotator": "bob"}
        assert (await made.post("/v1/labels", json={"labels": [bob] * 3}, headers=bearer("bob"))).status_code == 200
    assert (len(words.kept), refusals) == (5, ["labels"])


def test_the_limit_is_of_the_last_hour() -> None:
    """What was sent longer ago does not count."""
    now, refusals = [0.0], list[str]()
    rate = LabelRate(refusals.append, lambda: now[0])
    rate.take("ann", 3, 3)
    for who, count in (("ann", 1), ("bob", 4)):
        with pytest.raises(HTTPException):
            rate.take(who, count, 3)
    now[0] = 3600.0
    rate.take("ann", 3, 3)
    assert refusals == ["labels", "labels"]


async def test_a_client_does_not_weigh_its_labels() -> None:
    """Probabilities, owners and the history come from us, whatever a request says."""
    words = Words()
    forged = WORD | {"probability": 1e-9, "owner": "x", "without": {"x": 1.0}, "revoked": 3.0, "earlier": [{}]}
    async with client(words) as made:
        await made.post("/v1/labels", json={"labels": [forged]})
    assert words.kept == [from_record(WORD).to_record()]


KEY = "0" * 32
ERASED = Erased((KEY,), frozenset({"a text of hers"}), pending=1, verdicts=2, labels=3, others=4, batched=5)
FORGET, REJUDGE = "/v1/forget", "/v1/rejudge"
BODIES: dict[str, dict[str, Any]] = {
    FORGET: {"ids": ["r1"]},
    REJUDGE: {"judge": "big", "of": "embedded", "keys": [KEY]},
    "/v1/labels/tasks": {"annotator": "a", "count": 1},
}


class Operations:
    """Notes what is to be erased and read again."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.wanted: list[Any] = []

    async def forget(self, erasure: Erasure, dry_run: bool) -> Erased:  # noqa: FBT001 - the signature of `Forget`
        """Erase."""
        self.note((erasure, dry_run))
        return ERASED

    async def rejudge(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read."""
        self.note(fields)
        return {"stored": 1}

    def note(self, wanted: object) -> None:
        """Keep what is wanted, and fail."""
        self.wanted.append(wanted)
        if self.error is not None:
            raise self.error


async def sent(called: Operations, path: str, body: Any, **parts: Any) -> httpx.Response:
    """The response to a request."""
    async with asking(application(forget=called.forget, rejudge=called.rejudge, **parts)) as client:
        return await client.post(path, **{"content" if isinstance(body, bytes) else "json": body})


async def test_counts_of_what_was_erased_come_back_and_no_text() -> None:
    """Ids, pairs and flags are handed on; the response has numbers, and the audit line keys, of what was erased."""
    eraser, lines = Operations(), list[dict[str, Any]]()
    body = {"ids": ["r1"], "metadata": [["user.id", "7"]], "with_scores": True}
    response = await sent(eraser, FORGET, body, audit=lambda **line: lines.append(line))
    counts = {"verdicts": 2, "labels": 3, "feedback": 0, "pending": 1, "batched": 5, "others": 4}
    assert response.json() == {"answers": 1, **counts, "complete": True}
    await sent(eraser, FORGET, {"ids": ["r1"], "dry_run": True}, audit=lambda **line: lines.append(line))
    wanted = Erasure(frozenset({"r1"}), frozenset({("user.id", "7")}), with_scores=True)
    assert eraser.wanted == [(wanted, False), (Erasure(frozenset({"r1"})), True)]
    assert [(line["action"], line["path"], line["keys"]) for line in lines] == [
        ("write", FORGET, [KEY]),
        ("write", FORGET, []),
    ]


async def test_fields_of_a_second_reading_are_handed_on() -> None:
    """With the whole as the share, and no end of the charts, where none is given; the audit line names the keys."""
    reader, lines = Operations(), list[dict[str, Any]]()
    response = await sent(reader, REJUDGE, BODIES[REJUDGE], audit=lambda **line: lines.append(line))
    assert (response.status_code, response.json()) == (200, {"stored": 1})
    await sent(reader, REJUDGE, {**BODIES[REJUDGE], "share": 0.5, "charted_before": 7})
    fixed = {**BODIES[REJUDGE], "keys": (KEY,)}
    assert reader.wanted == [
        {**fixed, "share": 1.0, "charted_before": math.inf},
        {**fixed, "share": 0.5, "charted_before": 7.0},
    ]
    assert (lines[0]["action"], lines[0]["path"], lines[0]["keys"]) == ("write", REJUDGE, [KEY])


LABELS, REVOKE, TASKS = "/v1/labels", "/v1/labels/revoke", "/v1/labels/tasks"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (LABELS, b"{", "body: not JSON"),
        (LABELS, [], "body: not an object"),
        (LABELS, {"labels": []}, "labels: not a list of 1 to"),
        (LABELS, {"labels": [1]}, "labels: not all are objects"),
        (LABELS, {"labels": [{"annotator": ""}]}, "annotator: not a name"),
        (LABELS, {"labels": [WORD | {"key": "k", "scores": {"faithfulness": 2}}]}, "labels:"),
        (LABELS, {"labels": [WORD | {"note": "x" * (MAX_NOTE_CHARS + 1)}]}, "labels: a note"),
        (LABELS, b'{"labels":[{"annotator":"a","note":%b}]}' % DEEP.encode(), "labels: a note"),
        (LABELS, b" " * (5 << 20), "body: more than"),
        (LABELS, b'{"labels":[' + b"[]," * (MAX_VALUES // 2) + b"[]]}", "body: more than"),
        (REVOKE, {"key": "x"}, "key: not the key of a sample"),
        (TASKS, {"annotator": "a\u001b", "count": 1}, "annotator: not a name"),
        (TASKS, {"annotator": "a", "count": True}, "count: not a whole number"),
        (TASKS, {"annotator": "a", "count": 1000}, "count: not a whole number"),
        (FORGET, [], "body: not an object"),
        (FORGET, {"ids": []}, "ids: is missing"),
        (FORGET, {"ids": "r1"}, "ids: not a list"),
        (FORGET, {"ids": [""]}, "ids: not a list"),
        (FORGET, {"ids": [7]}, "ids: not a list"),
        (FORGET, {"metadata": {"user": "7"}}, "metadata: not a list of pairs"),
        (FORGET, {"metadata": [["user"]]}, "metadata: not a list of pairs"),
        (FORGET, {"metadata": [["user", 7]]}, "metadata: not a list of pairs"),
        (FORGET, {"dry_run": 1}, "dry_run: is neither true nor false"),
        (FORGET, {"with_scores": "no"}, "with_scores: is neither true nor false"),
        (FORGET, {"user": "7"}, "user: is not known"),
        (REJUDGE, {"judge": ""}, "judge: is not"),
        (REJUDGE, {"of": 7}, "of: is not"),
        (REJUDGE, {"keys": []}, "keys: not a list"),
        (REJUDGE, {"keys": ["r1"]}, "keys: not a list"),
        (REJUDGE, {"keys": [KEY] * 101}, "keys: 101, at most 100"),
        (REJUDGE, {"share": 0}, "share: not a number"),
        (REJUDGE, {"share": True}, "share: not a number"),
        (REJUDGE, {"charted_before": "now"}, "charted_before: not a number"),
        (REJUDGE, {"colour": 1}, "colour: is not known"),
    ],
    ids=lambda part: part if isinstance(part, str) else "body",  # some have megabytes
)
async def test_x7_a_wrong_body_is_named(path: str, body: Any, message: str) -> None:
    """And nothing is kept, erased or read. Values are counted before they are made, and refused unread.

    A million empty lists would take a hundred megabytes and hold everything up.
    """
    called, words = Operations(), Words()
    whole = BODIES.get(path, {}) | body if isinstance(body, dict) else body
    response = await sent(called, path, whole, labels=lambda: words)
    status = 413 if message.startswith("body: more") else 400
    assert (response.status_code, called.wanted, words.kept, words.asked, words.revoked) == (status, [], [], [], [])
    assert response.json()["error"].startswith(message)


@pytest.mark.parametrize(
    ("path", "error", "status"),
    [
        (TASKS, StoreError("state: the disk is full"), 503),
        (TASKS, ConfigError("store.texts: is none"), 400),
        (FORGET, StoreError("state: cannot write: disk full"), 503),
        (REJUDGE, StoreError("state: full"), 503),
        (REJUDGE, ParameterError("of: unknown"), 400),
    ],
)
async def test_what_fails_is_told(path: str, error: Exception, status: int) -> None:
    """As JSON, with the reason; where texts are not kept, instead of no tasks."""
    response = await sent(Operations(error), path, BODIES[path], labels=lambda: Words(error))
    assert (response.status_code, response.json()) == (status, {"error": str(error)})
