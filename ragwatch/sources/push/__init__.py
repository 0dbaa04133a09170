"""Source kind `push`: services send answers to `POST /v1/samples`, and what users say of them to `POST /v1/feedback`.

The body is a JSON object, an array of objects, or JSONL. A request is answered with 202 after its records are stored;
until then the client has them, and sends them again if no answer arrives. A record is recognised by its id when it is
sent again; one without an id by its content, so that two equal records without id and time count as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import orjson
from pydantic import Field

from ragwatch.formats.record import Line
from ragwatch.ports import Batch, BatchReport, Rejection
from ragwatch.ports.sources import Handler, IncomingRequest, Reply
from ragwatch.sources.push.records import ContentHashes, as_feedback, records_of, waiting_size
from ragwatch.sources.record_options import RecordOptions, Size
from ragwatch.sources.requests import (
    BUSY_SECONDS,
    Body,
    ByteBudget,
    Queued,
    RefusedError,
    RequestQueue,
    answer,
    stopping,
)
from ragwatch.statistics.snapshot import Lag

SAMPLES, FEEDBACK = "/v1/samples", "/v1/feedback"
DEADLINE_SECONDS = 20.0
_LATE = "not stored yet: judging is behind, or the state cannot be written; send it again"
MAX_ERRORS = 100  # in one response
_INLINE_BYTES = 64 << 10  # larger bodies are split in a thread

_LINES_BY_TYPE: Mapping[str, bool] = MappingProxyType(
    {
        "application/json": False,
        "application/x-ndjson": True,
        "application/ndjson": True,
        "application/jsonl": True,
        "application/x-jsonlines": True,
    }
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What intake did with the records of one request."""

    rejections: Sequence[tuple[int, Rejection]] = ()  # rejected records, by index
    resent: int = 0  # how many were received before


@dataclass(frozen=True, slots=True)
class PushHandler:
    """Reads requests, queues their records, and answers when these are stored.

    Args:
        budget: Bytes of all requests together.
    """

    queue: RequestQueue[Line, Outcome]
    budget: ByteBudget
    max_body_bytes: int
    deadline_seconds: float = DEADLINE_SECONDS

    async def __call__(self, request: IncomingRequest) -> Reply:
        """Handle one request."""
        body = Body(request, self.max_body_bytes, self.budget, "send fewer records")
        try:
            lines = has_lines(request.headers.get("content-type", ""))
            records, size = await self._split(body, await body.read(), lines=lines, feedback=request.path == FEEDBACK)
            body.hold(size)
            outcome = Outcome()
            if records:
                outcome = await self.queue.stored(records, size, self.deadline_seconds, _LATE, keep=False)
        except RefusedError as error:
            return refused(error)
        finally:
            body.free()
        return _reply(len(records), outcome)

    async def _split(self, body: Body, sent: bytes, *, lines: bool, feedback: bool) -> tuple[Sequence[Line], int]:
        """The records of a body, and its size; one large body at a time, because each takes many times its size."""

        def split() -> tuple[Sequence[Line], int]:
            plain = body.unpacked(sent)
            records = records_of(plain, lines=lines)
            size = waiting_size(records, plain)
            return list(map(as_feedback, records)) if feedback else records, size

        if len(sent) <= _INLINE_BYTES and not body.is_compressed:
            return split()
        return await body.decoded(split)


def _reply(count: int, outcome: Outcome) -> Reply:
    rejected = len(outcome.rejections)
    report: dict[str, object] = {
        "accepted": count - rejected - outcome.resent,
        "duplicates": outcome.resent,
        "rejected": rejected,
    }
    if rejected:
        report["errors"] = [
            {"index": index, "field": one.field or None, "reason": str(one.reason), "message": one.detail}
            for index, one in outcome.rejections[:MAX_ERRORS]
        ]
        report["errors_left_out"] = max(0, rejected - MAX_ERRORS)
    return Reply(400 if rejected == count > 0 else 202, orjson.dumps(report) + b"\n")


def refused(error: RefusedError) -> Reply:
    """Return the response to a request that is not accepted."""
    return Reply(error.status, orjson.dumps({"error": error.message}) + b"\n", headers=error.headers)


def has_lines(content_type: str) -> bool:
    """Return whether the body of a request is JSONL rather than JSON.

    >>> has_lines("application/x-ndjson"), has_lines("application/json; charset=utf-8")
    (True, False)

    Raises:
        RefusedError: 415 for any other type.
    """
    kind = _LINES_BY_TYPE.get(content_type.partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedError(
            415, "Content-Type must be application/json (an object or an array) or application/x-ndjson (JSONL)"
        )
    return kind


BATCH_BYTES = 4 << 20


class Options(RecordOptions):
    """Options of a source of kind `push`."""

    max_body_bytes: Size = Field(8 << 20, gt=0, description="Largest body, as sent and after decompression; else 413.")
    queue_bytes: Size = Field(
        16 << 20, gt=0, description="Bytes of bodies that are received or wait to be stored; above that 429."
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """A batch that is not committed, with the requests that its records come from."""

    batch: Batch
    requests: Sequence[Queued[Line, Outcome]]
    report: BatchReport


class PushSource:
    """Receives records over HTTP; see `ports.Source` and `ports.capabilities.ReceivesRequests`.

    Args:
        deadline_seconds: How long a client waits until its records are stored.
    """

    recognises_resent = True

    def __init__(self, options: Options, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.name = options.name
        self._queue: RequestQueue[Line, Outcome] = RequestQueue()
        self.wake = self._queue.wake
        self._reading: _Reading | None = None
        limit = min(options.max_body_bytes, options.queue_bytes)
        handler = PushHandler(self._queue, ByteBudget(options.queue_bytes), limit, deadline_seconds)
        self.handlers: Mapping[str, Handler] = {SAMPLES: handler, FEEDBACK: handler}

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Nothing is left of an earlier process: clients have what was not stored."""

    def read(self) -> Batch | None:
        """Return the records of the oldest requests.

        A batch that is asked for again could not be stored: its clients get the answer to send it again.
        """
        if self._reading is not None:
            message = "the state cannot be written at present; the log of ragwatch says why; send it again"
            refused = RefusedError(503, message, BUSY_SECONDS)
            answer((one, refused) for one in self._reading.requests)
            self._reading = None
        requests = self._queue.take(BATCH_BYTES)
        if not requests:
            return None
        records, report = [record for one in requests for record in one.items], BatchReport()
        batch = Batch(
            stream="push",
            file=f"push {self.name}",
            lines=records,
            offsets=ContentHashes(records),  # what stands for the id of a record without one
            numbers=range(1, len(records) + 1),
            cursor="",
            report=report,
        )
        self._reading = _Reading(batch, requests, report)
        return batch

    def commit(self, batch: Batch) -> None:
        """Answer the clients whose records are stored."""
        if self._reading is not None and self._reading.batch is batch:
            answer(_outcomes(self._reading))
            self._reading = None

    def lag(self) -> Lag:
        """Bytes and age of what waits."""
        return Lag(*self._queue.lag())

    def close(self) -> None:
        """Tell the clients that wait to send their records again."""
        rest = self._queue.close()
        if self._reading is not None:
            rest += self._reading.requests
            self._reading = None
        answer((one, stopping()) for one in rest)


def build(options: Options) -> PushSource:
    """Build a source from its options."""
    return PushSource(options)


def _outcomes(reading: _Reading) -> list[tuple[Queued[Line, Outcome], Outcome]]:
    """What became of the records of each request."""
    rejections = {one.line: one for one in reading.report.rejections}
    resent = set(reading.report.resent)
    outcomes = []
    start = 1
    for one in reading.requests:
        numbers = range(start, start + len(one.items))
        start = numbers.stop
        rejected = tuple((number - numbers.start, rejections[number]) for number in numbers if number in rejections)
        outcomes.append((one, Outcome(rejected, sum(number in resent for number in numbers))))
    return outcomes
