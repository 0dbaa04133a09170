"""What decoders of a request return, and how requests are answered: over HTTP and gRPC, in protobuf or JSON."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragwatch.formats.traces.span import EARLIEST, EVENT_OF, Event, Span
from ragwatch.ports.sources import Reply
from ragwatch.sources.requests import RefusedError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_TYPES = MappingProxyType({PROTOBUF: PROTOBUF, "application/protobuf": PROTOBUF, JSON: JSON})
_CODES = MappingProxyType({400: 3, 413: 8, 415: 3, 429: 8, 503: 14})
"""Codes of google.rpc.Status."""
_MAX_MESSAGE = 1_000
_RETRY_INFO = b"type.googleapis.com/google.rpc.RetryInfo"
MAX_VALUE_DEPTH = 24
MAX_SPANS = 50_000
"""Spans of one request; each takes about a kilobyte until it is stored, whatever it says."""
MAX_NUMBERS = 64
HAS_REMOTE, IS_REMOTE = 0x100, 0x200
FAILED = 2
_LATEST = 4_102_444_800 * 10**9  # the year 2100
_UNITS = (1, 10**3, 10**6, 10**9)  # of nanoseconds, microseconds, milliseconds and seconds
_GENERATIONS = "gen_ai."
_BULKY = ("embedding.embeddings.", "llm.tools.", "gen_ai.tool.definitions", "ai.prompt.tools", "exception.stacktrace",
          "db.query.embeddings", "ai.embedding", "ai.values")  # fmt: skip
Origin = tuple[str, Mapping[str, object]]
"""Name of the instrumentation, and attributes of the process."""


@dataclass(slots=True)
class Received:
    """The spans of one request."""

    spans: list[Span] = field(default_factory=list)
    rejected: int = 0  # how many spans are invalid
    problem: str = ""  # what is wrong with the first of those
    # spans by what is wrong with their times: `unit`, which was corrected, or `unknown`
    times: Counter[str] = field(default_factory=Counter)

    def span_times(self, start: int, end: int) -> tuple[int, int]:
        """Return the times of a span in nanoseconds, and count a span whose times are in another unit, or none.

        What is no time since 2000 in any unit is left as it is: it still says what came first.
        """
        factor = next((unit for unit in _UNITS if EARLIEST <= start * unit < _LATEST), 0)
        if factor > 1:
            self.times["unit"] += 1
            return start * factor, end * factor
        if not factor and start:
            self.times["unknown"] += 1
        return start, end

    def add_event(self, ids: tuple[str, str], at: int, event: Event, origin: Origin) -> None:
        """Add an event of a generation that was sent as a log record of a span; other log records are left out.

        The ids are those of trace and span; `at` is in nanoseconds.
        """
        trace_id, span_id = ids
        if not event.name.startswith(_GENERATIONS):
            return
        if not is_id(trace_id, 32) or not is_id(span_id, 16):
            self.reject("a GenAI event without a valid traceId and spanId: which request it belongs to is unknown")
            return
        own_id = blake2b(orjson.dumps([*ids, at, *event]), digest_size=8).hexdigest()
        start, end = self.span_times(at, at)
        self.spans.append(
            Span(
                trace_id=trace_id,
                span_id=own_id,
                parent_id=span_id,
                name=event.name,
                start=start,
                end=end,
                attributes={EVENT_OF: span_id},
                events=(event,),
                remote=False,
                scope=origin[0],
                resource=origin[1],
            )
        )

    def reject(self, problem: str) -> None:
        """Count an invalid span."""
        self.rejected += 1
        self.problem = self.problem or problem


def too_many_spans() -> RefusedError:
    """The answer to a request with more than `MAX_SPANS`."""
    return RefusedError(413, f"the request has more than {MAX_SPANS} spans; send fewer at a time")


def body_fields(body: object) -> dict[str, object]:
    """Return the body of a log record as fields of an event: those of an object, or its text as `content`."""
    if isinstance(body, dict):
        return body
    return {} if body is None else {"content": body}


def is_wanted(key: str) -> bool:
    """Whether an attribute is kept: vectors, definitions of tools and stack traces never say what was asked."""
    return not key.startswith(_BULKY)


def without_vectors(values: list[object]) -> list[object] | None:
    """Return a list, or None for a long one of numbers: an embedding."""
    return None if len(values) > MAX_NUMBERS and isinstance(values[0], (int, float)) else values


def remote_of(flags: int) -> bool | None:
    """Return whether the parent is in another process; None if the flags do not say.

    >>> [remote_of(flags) for flags in (0x000, 0x101, 0x300)]
    [None, False, True]
    """
    return bool(flags & IS_REMOTE) if flags & HAS_REMOTE else None


def is_id(digits: str, length: int) -> bool:
    """Return whether a text is a valid id: `length` hexadecimal digits, not all of them 0."""
    if len(digits) != length or digits.strip("0") == "":
        return False
    return all(digit in "0123456789abcdef" for digit in digits)


def content_type(header: str) -> str:
    """Return the content type of a request, without parameters.

    >>> content_type("application/json; charset=utf-8")
    'application/json'

    Raises:
        RefusedError: 415: any other type.
    """
    kind = _TYPES.get(header.partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedError(415, f"Content-Type must be {PROTOBUF} or {JSON}")
    return kind


def accepted(kind: str, rejected: int = 0, problem: str = "", *, logs: bool = False) -> Reply:
    """Return the reply to a request whose spans or log records are stored, but for `rejected` invalid ones.

    In protobuf both replies are the same bytes.
    """
    if kind == JSON:
        partial = {"rejectedLogRecords" if logs else "rejectedSpans": str(rejected), "errorMessage": problem}
        return Reply(200, orjson.dumps({"partialSuccess": partial} if rejected else {}), JSON)
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = problem
    return Reply(200, response.SerializeToString(), PROTOBUF)


def refused(kind: str, error: RefusedError) -> Reply:
    """Return the reply to a request that failed: a google.rpc.Status, with RetryInfo where it may be sent again."""
    code, message = _CODES.get(error.status, 2), error.message[:_MAX_MESSAGE]
    if kind != PROTOBUF:
        body = orjson.dumps({"code": code, "message": message})
        return Reply(error.status, body, JSON, error.headers, message)
    status = b"\x08" + _varint(code) + _field(2, message.encode())
    if error.retry_seconds is not None:
        delay = _field(1, b"\x08" + _varint(error.retry_seconds))  # a google.protobuf.Duration
        status += _field(3, _field(1, _RETRY_INFO) + _field(2, delay))
    return Reply(error.status, status, PROTOBUF, error.headers, message)


def _field(number: int, content: bytes) -> bytes:
    r"""A text or a message in the encoding of protobuf.

    >>> _field(2, b"full")
    b'\x12\x04full'
    """
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    r"""A number in the encoding of protobuf.

    >>> _varint(300)
    b'\xac\x02'
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
