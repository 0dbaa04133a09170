"""What every kind of source promises: see `ports.Source`. What only brokers promise is in `test_brokers`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.all_brokers import Brokers
from support.brokers import SOURCE, Worker, books, counted, names, once
from support.joined_parts import options as join_options
from support.joined_parts import write
from support.kit import a_line
from support.patience import DEADLINE
from support.queues import Queue
from support.spans import OI, PROTOBUF, a_span, as_protobuf, openinference

from ragwatch.ports import Source, Store
from ragwatch.ports.capabilities import HoldsParts
from ragwatch.ports.sources import IncomingRequest
from ragwatch.sources import KINDS
from ragwatch.sources.otlp.options import Options as OtlpOptions
from ragwatch.sources.otlp.source import OtlpSource
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore


class Feed:
    """What feeds a source, and survives its processes. Records of one named `wrong` cannot be read.

    Attributes:
        refusal: Reason and field with which `wrong` is rejected.
        keeps_batches: Whether a batch is the same until it is committed.
    """

    keeps_batches = True
    refusal = ("wrong_type", "answer")

    def __init__(self) -> None:
        self.source: Source | None = None

    def build(self) -> Source:
        """A source as a new process builds it."""
        raise NotImplementedError

    def add(self, *names: str) -> None:
        """Add a record for each name."""
        raise NotImplementedError

    def start(self, store: Store, max_pending: int = 1_000_000) -> Worker:
        """A new process: a source that goes on where the store has it."""
        self.source = self.build()
        worker = Worker(self.source, store, max_pending=max_pending)
        if isinstance(self.source, HoldsParts):
            self.source.restore(store.parts(SOURCE))
        return worker

    def kill(self, worker: Worker) -> None:
        """End a process without a word."""
        worker.source.close()

    async def end(self) -> None:
        """Close, and wait for clients."""
        if self.source is not None:
            self.source.close()


def line_of(name: str) -> bytes:
    """A record of this name."""
    return a_line(name, **({"answer": 5} if name == "wrong" else {}))


class TailFeed(Feed):
    """A log file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / "app.jsonl"

    def build(self) -> Source:
        """A tail of it, which reads some lines at once."""
        module: Any = KINDS["tail"]
        options = {"name": SOURCE, "path": str(self._path), "start": "beginning", "scan_seconds": 0, "read_bytes": 400}
        source: Source = module.build(module.Options.model_validate(options))
        return source

    def add(self, *names: str) -> None:
        """Append lines."""
        with self._path.open("ab") as file:
            file.writelines(line_of(name) + b"\n" for name in names)


class JoinFeed(Feed):
    """Two log files, with a part of each record."""

    refusal = ("missing_field", "by")

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._options = join_options(folder)

    def build(self) -> Source:
        """A join of both."""
        module: Any = KINDS["join"]
        source: Source = module.build(self._options)
        return source

    def add(self, *names: str) -> None:
        """Append a line to both files."""
        for name in names:
            whole = orjson.loads(line_of(name))
            asked = {key: whole[key] for key in ("question", "contexts", "route", "ts") if key in whole}
            write(self._folder, "asked", asked if name == "wrong" else {"request_id": name, **asked})
            if name == "wrong":
                continue
            write(self._folder, "answered", {"request_id": name, "answer": whole["answer"]})


class RequestFeed(Feed):
    """Clients that send a record until it is accepted, or until they learn that it never will be."""

    path: str
    content_type: str

    def __init__(self) -> None:
        super().__init__()
        self._clients: list[asyncio.Task[None]] = []
        self._ended = False

    def body(self, name: str) -> bytes:
        """The body of the request with a record."""
        raise NotImplementedError

    def add(self, *names: str) -> None:
        """Start a client for each."""
        for name in names:
            self._clients.append(asyncio.ensure_future(self._send(self.body(name))))

    async def _send(self, body: bytes) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            yield body

        headers = {"content-type": self.content_type, "content-length": str(len(body))}
        while not self._ended:
            source: Any = self.source
            reply = await source.handlers[self.path](IncomingRequest(self.path, headers, chunks()))
            if reply.status not in (429, 503):
                return
            await asyncio.sleep(0.01)

    async def end(self) -> None:
        """Let clients give up."""
        self._ended = True
        await super().end()
        await asyncio.gather(*self._clients)


class PushFeed(RequestFeed):
    """Clients of the API, which are refused when their batch could not be stored, and send it again."""

    keeps_batches = False
    path, content_type = "/v1/samples", "application/json"

    def build(self) -> Source:
        """A source that receives them."""
        module: Any = KINDS["push"]
        source: Source = module.build(module.Options(name=SOURCE))
        return source

    def body(self, name: str) -> bytes:
        """A JSON object."""
        return line_of(name)


class OtlpFeed(RequestFeed):
    """Clients that export traces, whose seconds pass in milliseconds."""

    path, content_type = "/v1/traces", PROTOBUF
    refusal = ("no_content", "answer")

    def build(self) -> Source:
        """A source that receives them."""
        return OtlpSource(OtlpOptions(name=SOURCE), clock=lambda: 1000 * time.monotonic())

    def body(self, name: str) -> bytes:
        """A trace of several spans; or of one without texts."""
        wrong = [a_span("m", attributes={OI: "LLM", "llm.model_name": "m"})]
        trace_id, resource = blake2b(name.encode(), digest_size=16).hexdigest(), {"service.name": "search"}
        spans = wrong if name == "wrong" else openinference()
        return as_protobuf([span._replace(trace_id=trace_id, resource=resource) for span in spans])


class QueueFeed(Feed):
    """A queue of a broker."""

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self._queue = queue

    def build(self) -> Source:
        """A source that reads some records at once."""
        return self._queue.source(batch_records=2)

    def add(self, *names: str) -> None:
        """Add messages."""
        self._queue.add(*map(line_of, names))

    def kill(self, worker: Worker) -> None:
        """End it."""
        self._queue.kill(worker)


FEEDS: dict[str, Callable[[Path], Feed]] = {
    "tail": TailFeed,
    "join": JoinFeed,
    "push": lambda _: PushFeed(),
    "otlp": lambda _: OtlpFeed(),
}
SERVED = [pytest.param(kind, marks=pytest.mark.servers) for kind in ("redis_streams", "nats", "sqs")]
KAFKA = pytest.param("kafka", marks=[pytest.mark.servers, pytest.mark.costly])
pytestmark = pytest.mark.parametrize("kind", [*FEEDS, *SERVED, KAFKA])


@pytest.fixture
async def feed(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Feed]:
    """What feeds a source of one kind."""
    if kind in FEEDS:
        feed = FEEDS[kind](tmp_path)
        yield feed
        await feed.end()
        return
    brokers: Brokers = request.getfixturevalue("brokers")
    queue = brokers.queue(kind)
    yield QueueFeed(queue)
    queue.close()


async def read_until(worker: Worker, holds: Callable[[], object], what: str) -> None:
    """Step until a condition holds; clients get their turn."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"never happened: {what}"
        await worker.intake.step()
        await asyncio.sleep(0.002)


async def arrived(worker: Worker) -> Any:
    """The next batch."""
    end = time.monotonic() + DEADLINE
    while (batch := await asyncio.to_thread(worker.source.read)) is None:
        assert time.monotonic() < end
        await asyncio.sleep(0.002)
    return batch


def is_done(store: SqliteStore, count: int) -> bool:
    """Whether so many records are stored, and no part of a record waits."""
    return counted(store, Tally.SEEN) >= count and not list(store.parts(SOURCE))


@pytest.mark.parametrize("stored", [False, True])
async def test_killed_between_reading_and_acknowledging(feed: Feed, store: SqliteStore, *, stored: bool) -> None:
    """Whether a batch was stored or not when the process ended: nothing is lost, and every record counts once.

    It ends within its grace, also if it is closed once more.
    """
    killed = feed.start(store)
    feed.add(*names(6))
    for _ in range(2):
        batch = await arrived(killed)
        if stored:
            killed.admit(batch)
        start = time.monotonic()
        feed.kill(killed)
        killed.source.close()
        assert time.monotonic() - start < 5
        killed = feed.start(store)
    await read_until(killed, lambda: is_done(store, 6), "all is read")
    for _ in range(3):
        await killed.intake.step()
        await asyncio.sleep(0.01)
    assert books(store) == once(6)


async def test_commits_are_in_order_and_once(feed: Feed, store: SqliteStore) -> None:
    """A batch is the same until it is committed; to commit an earlier one once more does nothing to it."""
    worker = feed.start(store)
    feed.add(*names(6))
    first = await arrived(worker)
    worker.admit(first)
    worker.source.commit(first)
    while not is_done(store, 6):
        batch = await asyncio.to_thread(worker.source.read)
        if batch is not None:
            with contextlib.suppress(ValueError):
                worker.source.commit(first)
            assert not feed.keeps_batches or worker.source.read() is batch
            worker.admit(batch)
            worker.source.commit(batch)
        await asyncio.sleep(0.002)
    assert books(store) == once(6)


async def test_nothing_is_read_while_too_much_waits_to_be_judged(feed: Feed, store: SqliteStore) -> None:
    """What is behind the limit stays where it is, its lag is known, and it is read when there is room."""
    worker = feed.start(store, max_pending=2)
    feed.add(*names(4))
    await read_until(worker, lambda: sum(store.pending().values()) >= 2, "the limit is reached")
    feed.add(*[f"later{number}" for number in range(3)])
    seen = counted(store, Tally.SEEN)
    await read_until(
        worker, lambda: worker.intake.lag and (worker.intake.lag.size or worker.intake.lag.records), "a lag is known"
    )
    assert counted(store, Tally.SEEN) == seen < 7
    worker.intake.rules = replace(worker.intake.rules, max_pending=1_000_000)
    await read_until(worker, lambda: is_done(store, 7), "the rest is read")
    assert books(store) == once(7)
    await read_until(
        worker,
        lambda: worker.intake.lag and not (worker.intake.lag.size or worker.intake.lag.records),
        "no lag is left",
    )


async def test_what_cannot_be_read_is_counted(feed: Feed, store: SqliteStore) -> None:
    """One wrong record is rejected with its reason and the name of the field, and costs no other."""
    worker = feed.start(store)
    feed.add("r0", "wrong", "r1")
    reason, field = feed.refusal
    await read_until(worker, lambda: books(store)["drawn"] == 2 and books(store)["rejected"], "all is read")
    assert counted(store, Tally.REJECTED, reason) == 1
    first = worker.intake.first_rejected
    assert first is not None
    assert (str(first.reason), first.field) == (reason, field)
