"""Source `push` over HTTP: what is acknowledged is stored once, and all else is refused with the right status."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from support.asked import application
from support.kit import AT, JUDGE, Clock, a_sample
from support.patience import DEADLINE

from ragwatch.daemon.loops import Loop, StopSignal, repeat
from ragwatch.errors import FormatError, StoreError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import Parse, parse
from ragwatch.formats.selection import line_parser
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import LoopContext
from ragwatch.sources.push import Options, PushSource, build
from ragwatch.sources.push.records import MAX_RECORDS, ContentHashes, as_feedback, records_of
from ragwatch.sources.requests import RefusedError
from ragwatch.statistics.sampling import SamplingPlan, key_of
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry
from ragwatch.web import RequestPolicy
from ragwatch.web.access import Access, Right, Token

JSON, LINES = "application/json", "application/x-ndjson"
Send = Callable[..., Any]


class Receiver:
    """A source with its intake behind the HTTP server."""

    def __init__(self, store: SqliteStore, source: PushSource, client: httpx.AsyncClient) -> None:
        self.store = store
        self.source = source
        self.client = client

    async def send(self, body: bytes, kind: str = JSON, path: str = "/v1/samples", **headers: str) -> httpx.Response:
        """Send a body."""
        return await self.client.post(path, content=body, headers={"Content-Type": kind, **headers})

    def seen(self) -> float:
        """Number of records that count as seen."""
        return self.store.tallies()[Tally.SEEN, ("app",)]


@asynccontextmanager
async def receiving(
    store: SqliteStore,
    *,
    max_pending: int = 1000,
    deadline: float = DEADLINE,
    access: Access | None = None,
    **options: Any,
) -> AsyncIterator[Receiver]:
    """Runs a source, its intake and the application."""
    source = PushSource(Options(name="app", **options), deadline)
    rules = IntakeRules(SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, max_pending)
    telemetry, stop = Telemetry(), StopSignal()
    intake = IntakeLoop(source, LogReader(RecordRules()), rules, LoopContext(store, telemetry, Clock(AT)))
    loop = asyncio.create_task(repeat(Loop("push", intake.step, 0.02, wake=source.wake), stop, telemetry, {}))
    receivers = {path: {"app": handler} for path, handler in source.handlers.items()}
    policy = RequestPolicy() if access is None else RequestPolicy(access=lambda: access)
    app = application(receivers=lambda: receivers, policy=policy)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=DEADLINE) as client:
            yield Receiver(store, source, client)
    finally:
        stop.set()
        await loop
        source.close()


def record(name: str | None = "a", **parts: Any) -> dict[str, Any]:
    """A record in the canonical format; without an id if the name is None."""
    fields = a_sample(name or "a").to_record() | parts
    return {key: value for key, value in fields.items() if key != "id" or name is not None}


def lines(*records: dict[str, Any]) -> bytes:
    """JSONL."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


@pytest.mark.parametrize(
    ("body", "kind", "count"),
    [
        (json.dumps(record()).encode(), JSON, 1),
        (json.dumps(record(), indent=2).encode(), "application/json; charset=utf-8", 1),
        (json.dumps([record("a"), record("b")]).encode(), JSON, 2),
        (b" [ ] ", JSON, 0),
        (lines(record("a"), record("b")) + b"\r\n\n", LINES, 2),
        (lines(record("a"), record("b")), "application/jsonl", 2),
        (lines(record("a"), record("b")), JSON, 2),
    ],
)
async def test_every_shape_of_body(store: SqliteStore, body: bytes, kind: str, count: int) -> None:
    """An object, an array and JSONL, plain and compressed: accepted when stored, and duplicates when sent again."""
    async with receiving(store) as receiver:
        first = await receiver.send(body, kind)
        assert (first.status_code, receiver.seen()) == (202, count)
        again = await receiver.send(gzip.compress(body), kind, **{"Content-Encoding": "gzip"})
    assert first.json() == {"accepted": count, "duplicates": 0, "rejected": 0}
    assert (again.status_code, again.json()) == (202, {"accepted": 0, "duplicates": count, "rejected": 0})
    assert store.pending() == ({JUDGE: count} if count else {})


async def test_errors_name_the_record_and_the_field(store: SqliteStore) -> None:
    """Of several records the good ones are stored; the others are listed by index; with none the status is 400."""
    bad = record("b", answer=5)
    async with receiving(store) as receiver:
        mixed = await receiver.send(json.dumps([record("a"), bad, "text", record("c")]).encode())
        none = await receiver.send(b'{"id": "x", "score": NaN}\n{', LINES)
    assert (mixed.status_code, mixed.json()["accepted"], mixed.json()["rejected"]) == (202, 2, 2)
    assert [(one["index"], one["field"], one["reason"]) for one in mixed.json()["errors"]] == [
        (1, "answer", "wrong_type"),
        (2, None, "not_an_object"),
    ]
    assert "answer: must be text, not a number" in mixed.text
    assert (none.status_code, [one["reason"] for one in none.json()["errors"]]) == (400, ["not_finite", "torn_json"])


async def test_a_record_without_an_id_is_recognised_by_its_content(store: SqliteStore) -> None:
    """Sent again in any batch it is a duplicate; another content is another record."""
    async with receiving(store) as receiver:
        first = await receiver.send(json.dumps([record(None), record(None, answer="Other.")]).encode())
        again = await receiver.send(json.dumps([record(None, answer="Third."), record(None)]).encode())
    assert first.json() == {"accepted": 2, "duplicates": 0, "rejected": 0}
    assert again.json() == {"accepted": 1, "duplicates": 1, "rejected": 0}


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status", "says"),
    [
        (b"", JSON, {}, 400, "the body is empty"),
        (b" \n", LINES, {}, 400, "the body is empty"),
        (b"{}", "text/plain", {}, 415, "Content-Type must be"),
        (b"{}", "", {}, 415, "Content-Type must be"),
        (b"{}", JSON, {"Content-Encoding": "br"}, 415, "use gzip, zstd, deflate or none"),
        (b"{}", JSON, {"Content-Encoding": "gzip"}, 400, "not valid gzip"),
        (gzip.compress(b"{}")[:-4], JSON, {"Content-Encoding": "gzip"}, 400, "cut off"),
        (zstandard.compress(b"{}")[:-4], JSON, {"Content-Encoding": "zstd"}, 400, "the zstd body is cut off"),
        ((zstandard.compress(b"{}") * 2)[:-8], JSON, {"Content-Encoding": "zstd"}, 400, "the zstd body is cut off"),
        (gzip.compress(b"{}") * 150 + b"\x1f", JSON, {"Content-Encoding": "gzip"}, 400, "cut off"),
        (b"{" + b" " * 5000, JSON, {}, 413, "larger than 4096 bytes"),
        (gzip.compress(b"{" + b" " * 5000), JSON, {"Content-Encoding": "gzip"}, 413, "larger than 4096 bytes"),
        (b"[1,", JSON, {}, 400, "the array is not JSON"),
        (b"[NaN 2]", JSON, {}, 400, "a comma or ] is missing at character 5"),
        (b"[1] 2", JSON, {}, 400, "text after the array"),
        (b"[" * 4000, JSON, {}, 400, "nested too deeply"),
        (b'{"a":' * 800, JSON, {}, 400, "torn_json"),
        (b"{}", JSON, {}, 400, "unknown_format"),
        (b"5", JSON, {}, 400, "not_an_object"),
    ],
)
async def test_what_cannot_be_read(  # noqa: PLR0917 - the columns of the table
    store: SqliteStore, body: bytes, kind: str, headers: dict[str, str], status: int, says: str
) -> None:
    """Each fault has its status and says what to change; nothing is stored, and the next request is served."""
    async with receiving(store, max_body_bytes=4096) as receiver:
        reply = await receiver.send(body, kind, **headers)
        assert (reply.status_code, says in reply.text) == (status, True), reply.text
        assert (await receiver.send(json.dumps(record()).encode())).status_code == 202
    assert store.pending() == {JUDGE: 1}


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (b'{"id": "x", "score": NaN}', "not_finite"),
        (b'{"id": "x", "score": 1e999}', "not_finite"),
        (b'{"id": "x", "score": ' + b"9" * 5000 + b"}", "number_too_large"),
        (b'{"id": "\\ud800"}', "unknown_format"),
    ],
)
async def test_x9_x10_one_bad_element_spoils_no_other(store: SqliteStore, element: bytes, reason: str) -> None:
    """An element that is no strict JSON is rejected with its reason, and the others of the array are stored."""
    body = b"[" + json.dumps(record("a")).encode() + b", " + element + b" ,\n" + json.dumps(record("b")).encode() + b"]"
    async with receiving(store) as receiver:
        reply = await receiver.send(body)
    assert (reply.status_code, reply.json()["accepted"]) == (202, 2)
    assert [(one["index"], one["reason"]) for one in reply.json()["errors"]] == [(1, reason)]


async def test_x7_records_with_too_many_values(store: SqliteStore) -> None:
    """What would take much memory when decoded is refused before it is."""
    many = b"[" + b"[]," * 600_000 + b"1]"
    async with receiving(store) as receiver:
        array = await receiver.send(many)
        several = await receiver.send(b'{"a": %b}\n' % many + lines(record("a")), LINES)
        one = await receiver.send(b'{"a":\n%b}' % many)
        feedback = await receiver.send(b'{"a": %b}' % many, path="/v1/feedback")
        counts = [await receiver.send(b"{}\n" * count, LINES) for count in (10_001, 30_000)]
    assert [reply.status_code for reply in (array, *counts)] == [413, 413, 413]
    assert (several.status_code, several.json()["errors"][0]["reason"]) == (202, "line_too_long")
    assert (one.status_code, feedback.status_code) == (400, 400)


async def test_feedback(store: SqliteStore) -> None:
    """`POST /v1/feedback` names the answer by id; it joins the sample, and a bad item is named by index."""
    items = [
        {"id": "a", "thumbs": "up"},
        {"feedback_for": "zz", "user_score": 1},
        {"thumbs": "up"},
        {"id": "a", "score": "meh"},
        4,
    ]
    async with receiving(store) as receiver:
        await receiver.send(json.dumps(record("a")).encode())
        reply = await receiver.send(json.dumps(items).encode(), path="/v1/feedback")
        torn = await receiver.send(b"{", path="/v1/feedback")
    assert (reply.status_code, reply.json()["accepted"]) == (202, 2)
    errors = [(one["index"], one["field"], one["reason"]) for one in reply.json()["errors"]]
    assert errors == [(2, "feedback_for", "missing_field"), (3, "score", "wrong_type"), (4, None, "not_an_object")]
    assert store.feedback_of(key_of("app", "a")) == (1.0, AT)
    assert torn.status_code == 400


async def test_a_full_queue_is_429(store: SqliteStore) -> None:
    """While judging is behind, requests wait; those that find no room are told when to come again, and none is lost."""
    body = json.dumps(record("a", answer="x" * 600)).encode()
    async with receiving(store, max_pending=0, deadline=0.3, queue_bytes=1000) as receiver:
        replies = await asyncio.gather(receiver.send(body), receiver.send(body))
        assert receiver.source.lag().size == 0
    assert sorted(reply.status_code for reply in replies) == [429, 503]
    assert {reply.headers["Retry-After"] for reply in replies} == {"5"}
    assert store.tallies() == {}


class FailingStore(SqliteStore):
    """A store whose disk is full the first times."""

    failures = 1

    def admit(self, admission: Any) -> int:
        """Refuse at first."""
        if self.failures:
            self.failures -= 1
            raise StoreError("state: cannot write: disk full")
        return super().admit(admission)


async def test_a_store_that_cannot_be_written_is_503(tmp_path: Path) -> None:
    """The client is told at the next attempt to send its records again; that counts them once."""
    store = FailingStore(tmp_path / "state")
    async with receiving(store) as receiver:
        reply = await receiver.send(json.dumps(record()).encode())
        again = await receiver.send(json.dumps(record()).encode())
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
    assert "the state cannot be written" in reply.text
    assert (again.status_code, store.pending()) == (202, {JUDGE: 1})
    store.close()


async def test_closing_answers_those_who_wait(store: SqliteStore) -> None:
    """When the source is closed, a request that waits and one that comes later are told to come again."""
    async with receiving(store, max_pending=0) as receiver:
        waiting = asyncio.create_task(receiver.send(json.dumps(record()).encode()))
        while not receiver.source.lag().size:  # noqa: ASYNC110 - the source has no event for it
            await asyncio.sleep(0)
        receiver.source.close()
        late = await receiver.send(json.dumps(record()).encode())
        assert [(await waiting).status_code, late.status_code] == [503, 503]


async def test_closing_while_a_batch_is_stored() -> None:
    """Clients whose batch is being stored are told to send it again, which does no harm; a late commit is ignored."""
    source = build(Options(name="app"))
    source.resume({})
    one = source._queue.put([b"{}"], 2)
    batch = source.read()
    assert batch is not None
    source.close()
    source.commit(batch)
    with pytest.raises(Exception, match="send it again"):
        await one.stored
    assert source.read() is None


async def test_x19_a_body_is_not_read_without_the_right(store: SqliteStore) -> None:
    """Who may not ingest is refused before the body is read."""
    token = Token("app", sha256(b"0123456789abcdef").digest(), frozenset({Right.INGEST}))
    access = Access(tokens=(token,), anonymous=frozenset())
    chunks: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        for chunk in (b'{"question": null,', b'"contexts": [], "answer": "so"}'):
            chunks.append(chunk)
            yield chunk

    async with receiving(store, access=access) as receiver:
        headers = {"Content-Type": JSON}
        refused = await receiver.client.post("/v1/samples", content=body(), headers=headers)
        assert (refused.status_code, chunks) == (401, [])
        headers["Authorization"] = "Bearer 0123456789abcdef"
        allowed = await receiver.client.post("/v1/samples", content=body(), headers=headers)
    assert allowed.status_code == 202


FILLER = "The old mill stands by the river. " * 20
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.text(max_size=9), st.just("\x00")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
ELEMENTS = st.lists(st.one_of(st.dictionaries(st.sampled_from(["id", "event", "text"]), VALUES), VALUES), max_size=4)


def read(line: bytes | dict[str, Any], parser: Parse) -> object:
    """What intake makes of an element."""
    try:
        return parser(line)
    except FormatError as error:
        return str(error)


@given(ELEMENTS, st.booleans())
def test_decoded_or_not(elements: list[Any], long: bool) -> None:
    """Elements of an array with much text stay objects; they are read, selected and refused as their own lines are."""
    padded = [{**one, "padding": FILLER} if long and isinstance(one, dict) else one for one in elements]
    records = records_of(json.dumps(padded).encode(), lines=False)
    for parser in (parse, line_parser(where="event")):
        for record, one in zip(records, padded, strict=True):
            assert read(record, parser) == read(json.dumps(one).encode(), parser)


def test_lines_are_bounded_before_they_are_split() -> None:
    """Blank lines count, so that a body of line ends takes little memory."""
    assert records_of(b"{}\r\n\n \n{}\n", lines=True) == [b"{}", b"{}"]
    assert len(records_of(b"{}\n" * MAX_RECORDS, lines=True)) == MAX_RECORDS
    for body in (b"{}\n" * (MAX_RECORDS + 1), b"{}" + b"\n" * (2 * MAX_RECORDS) + b"{}"):
        with pytest.raises(RefusedError, match=f"more than {MAX_RECORDS} records"):
            records_of(body, lines=True)


def test_a_hash_is_that_of_the_content() -> None:
    """Equal records have one hash, decoded or not; others have others, however deeply their fields are nested."""
    one, other = {"question": FILLER}, {"question": "Why?"}
    hashes = ContentHashes([one, orjson.dumps(one), other, other | {"deep": json.loads("[" * 500 + "]" * 500)}])
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("body", "comment"),
    [
        (b'{\n  "id": "r1",\n  "comment": "\\ud83d"\n}', "\ufffd"),
        (b'\xef\xbb\xbf{\r\n  "id": "r1",\r\n  "comment": "caf\xe9"\r\n}', "caf\ufffd"),
        (b'{"id": "r1", "comment": "a\\u0000b"}', "a\ufffdb"),
        (b'{"id": "r1", "comment": "\\ud83d"}', "\ufffd"),
        (b'{"id": "r1", "comment": "caf\xe9"}', "caf\ufffd"),
        (b'\xef\xbb\xbf{"id": "r1", "comment": "a"}', "a"),
        (b'[{"id": "r1", "comment": "a\\u0000b"}]', "a\ufffdb"),
        (b'[{"id": "r1", "comment": "\\ud83d"}]', "\ufffd"),
    ],
)
def test_feedback_is_repaired_as_in_a_log(body: bytes, comment: str) -> None:
    """A character that cannot be stored makes feedback no unknown answer."""
    (record,) = records_of(body, lines=False)
    assert as_feedback(record) == {"feedback_for": "r1", "comment": comment}


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        ({"feedback_for": None, "id": "r1"}, "r1"),
        ({"feedback_for": "", "id": "", "request_id": 7}, 7),
        ({"feedback_for": "r1", "id": "f9"}, "r1"),
        ({"feedback_for": None}, ""),
        ({}, ""),
    ],
)
def test_feedback_is_for_the_first_id_that_is_one(sent: dict[str, Any], given: object) -> None:
    """Null and empty columns hide no id; feedback without any is still feedback, and is refused as such."""
    named = as_feedback(orjson.dumps(sent))
    assert isinstance(named, dict)
    assert named["feedback_for"] == given
