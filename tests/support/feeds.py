"""Every kind of source with what feeds it: files, clients that send again until they are answered, brokers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from ragwatch.ports import Source, Store
from ragwatch.ports.capabilities import HoldsParts
from ragwatch.ports.sources import IncomingRequest
from ragwatch.sources import KINDS
from ragwatch.sources.otlp.options import Options as OtlpOptions
from ragwatch.sources.otlp.source import OtlpSource
from support.brokers import SOURCE, Worker
from support.joined_parts import options as join_options
from support.joined_parts import write
from support.kit import a_line
from support.queues import Queue
from support.spans import PROTOBUF, a_span, as_protobuf
from support.traces import OI, openinference


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
