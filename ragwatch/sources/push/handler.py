"""Handles `POST /v1/samples` and `POST /v1/feedback`: answers with 202 once the records are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import orjson

from ragwatch.formats.record import Line
from ragwatch.ports import Rejection
from ragwatch.ports.receiving import IncomingRequest, Reply
from ragwatch.sources.push.records import as_feedback, records_of, waiting_size
from ragwatch.sources.requests.body import Body, ByteBudget
from ragwatch.sources.requests.queue import RefusedError, RequestQueue

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
    """What intake did with the records of one request.

    Attributes:
        rejections: Rejected records, by index.
        resent: How many were received before.
    """

    rejections: Sequence[tuple[int, Rejection]] = ()
    resent: int = 0


class PushHandler:
    """Reads requests, queues their records, and answers when these are stored.

    Args:
        budget: Bytes of all requests together.
    """

    def __init__(
        self,
        queue: RequestQueue[Line, Outcome],
        budget: ByteBudget,
        max_body_bytes: int,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._queue = queue
        self._budget = budget
        self._max_body_bytes = max_body_bytes
        self._deadline_seconds = deadline_seconds

    async def __call__(self, request: IncomingRequest) -> Reply:
        """Handle one request."""
        body = Body(request, self._max_body_bytes, self._budget, "send fewer records")
        try:
            lines = has_lines(request.headers.get("content-type", ""))
            records, size = await self._split(body, await body.read(), lines=lines, feedback=request.path == FEEDBACK)
            body.hold(size)
            outcome = Outcome()
            if records:
                outcome = await self._queue.stored(records, size, self._deadline_seconds, _LATE, keep=False)
        except RefusedError as error:
            reply = refused(error)
        else:
            reply = _reply(len(records), outcome)
        finally:
            body.free()
        await body.discard()
        return reply

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
