"""OTLP: encodes evaluations as requests, sends them over HTTP, and says what became of each.

Imported only where scores are sent: protobuf and httpx are heavy.
"""

import asyncio
import gzip
import json
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from ragwatch import __version__
from ragwatch.errors import ConfigError
from ragwatch.outgoing.client import async_client, retry_after
from ragwatch.pipeline.export.evaluation import Evaluation, ExportRules, ExportTarget, Result, Signal
from ragwatch.ports import Clock

EVENT = "gen_ai.evaluation.result"
_NANOSECONDS = 1_000_000_000
_TRACE_BYTES = 16
Value = str | float | None


def request_of(signal: Signal, evaluations: Sequence[Evaluation], rules: ExportRules, now: float) -> bytes:
    """Return the body of a request with these evaluations; none for a test of the endpoint."""
    at = int(now * _NANOSECONDS)
    own = Resource(
        attributes=_attributes({"service.name": "ragwatch", "service.version": __version__, **rules.resource})
    )
    scope = InstrumentationScope(name="ragwatch", version=__version__)
    if signal is Signal.LOGS:
        events = [_event(one, result, at) for one in evaluations for result in one.results]
        logs = [ResourceLogs(resource=own, scope_logs=[ScopeLogs(scope=scope, log_records=events)])]
        return ExportLogsServiceRequest(resource_logs=logs if events else ()).SerializeToString()
    spans = [_span(one, rules, at) for one in evaluations]
    traces = [ResourceSpans(resource=own, scope_spans=[ScopeSpans(scope=scope, spans=spans)])]
    return ExportTraceServiceRequest(resource_spans=traces if spans else ()).SerializeToString()


def records_in(signal: Signal, evaluations: Iterable[Evaluation]) -> int:
    """Number of log records or spans that stand for evaluations."""
    return sum(len(one.results) if signal is Signal.LOGS else 1 for one in evaluations)


def rejected_of(signal: Signal, body: bytes) -> tuple[int, str]:
    """Return how many records of a request were rejected, and why, from the reply; 0 if it does not say."""
    try:
        if signal is Signal.LOGS:
            logs = ExportLogsServiceResponse.FromString(body).partial_success
            return max(0, logs.rejected_log_records), logs.error_message
        spans = ExportTraceServiceResponse.FromString(body).partial_success
        return max(0, spans.rejected_spans), spans.error_message
    except DecodeError:
        return 0, ""


def _event(one: Evaluation, result: Result, at: int) -> LogRecord:
    """The event of one result, at the span of the model's call or, if that is not known, at that of the request."""
    return LogRecord(
        time_unix_nano=at,
        observed_time_unix_nano=at,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        event_name=EVENT,
        trace_id=bytes.fromhex(one.trace_id),
        span_id=bytes.fromhex(one.answer_span_id or one.span_id),
        attributes=_attributes(
            {
                "gen_ai.evaluation.name": result.name,
                "gen_ai.evaluation.score.value": result.score,
                "gen_ai.evaluation.score.label": result.label,
                "gen_ai.evaluation.explanation": result.explanation,
                "gen_ai.response.id": one.response_id or None,
                "error.type": result.error,
                **_own(one),
            }
        ),
    )


def _span(one: Evaluation, rules: ExportRules, at: int) -> Span:
    """The span of a verdict, with one link to the first span of the request that was judged, which is its parent, too.

    The link is what says which span was judged; the parent lets backends without links show both together.
    """
    judged_trace, judged_span = bytes.fromhex(one.trace_id), bytes.fromhex(one.span_id)
    scores = {result.name: result.score for result in one.results}
    attributes: dict[str, Value] = {
        "openinference.span.kind": "EVALUATOR",
        "output.value": None if one.error else json.dumps(scores),
        "output.mime_type": None if one.error else "application/json",
        "error.type": one.error,
        **_own(one),
    }
    for index, result in enumerate(one.results if one.error is None else ()):
        fields: dict[str, Value] = {
            "name": result.name,
            "score": result.score,
            "label": result.label,
            "explanation": result.explanation,
            "annotator_kind": one.annotator,
            "identifier": f"{one.verdict.judge}:{one.verdict.judge_version}",
        }
        attributes |= {f"evaluations.{index}.evaluation.{name}": value for name, value in fields.items()}
    failed = Status(code=Status.STATUS_CODE_ERROR, message=f"not judged: {one.error}")
    return Span(
        trace_id=judged_trace if rules.same_trace else one.identity[:_TRACE_BYTES],
        parent_span_id=judged_span if rules.same_trace else b"",
        span_id=one.identity[_TRACE_BYTES:],
        name=f"evaluate {one.verdict.judge}",
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=at - int((one.verdict.read_by.seconds or 0.0) * _NANOSECONDS),
        end_time_unix_nano=at,
        attributes=_attributes(attributes),
        links=[Span.Link(trace_id=judged_trace, span_id=judged_span)],
        status=Status(code=Status.STATUS_CODE_OK) if one.error is None else failed,
    )


def _own(one: Evaluation) -> dict[str, Value]:
    """Attributes without a convention."""
    return {
        "ragwatch.judge": one.verdict.judge,
        "ragwatch.judge.version": one.verdict.judge_version,
        "ragwatch.route": one.verdict.route,
        "ragwatch.stage": one.verdict.stage,
    }


def _attributes(values: Mapping[str, Value]) -> list[KeyValue]:
    """The attributes that have a value."""
    return [
        KeyValue(
            key=key,
            value=AnyValue(string_value=_text(value)) if isinstance(value, str) else AnyValue(double_value=value),
        )
        for key, value in values.items()
        if value is not None
    ]


def _text(value: str) -> str:
    """A text that protobuf can carry: a truncated escape in a log leaves half of a character."""
    return value.encode("utf-8", "replace").decode()


MAX_REPLY_BYTES = 1 << 16
MAX_MESSAGE_CHARS = 200
_SERVER_ERRORS = 500
_TOO_LARGE, _TOO_MANY, _TIMED_OUT = 413, 429, 408
_NOT_ALLOWED = frozenset({401, 403})


class Failure(StrEnum):
    """Why a request failed. The values are label values.

    REFUSED: what it holds is dropped; TOO_LARGE: it is sent in smaller parts. The others are repeated: UNAUTHORIZED
    until the credentials are corrected, so that no score is lost by then.
    """

    CONNECTION = "connection"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    UNAUTHORIZED = "unauthorized"
    TOO_LARGE = "too_large"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a request."""

    failure: Failure | None = None  # why it failed; None if it was accepted
    body: bytes = b""  # body of an accepted one
    why: str = ""  # what happened, as text for people
    wait: float | None = None  # seconds that the endpoint asks to wait (Retry-After); None if it does not


class OtlpClient:
    """Sends protobuf over HTTP to one endpoint. Redirects are not followed, because the headers hold secrets.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """

    def __init__(self, target: ExportTarget, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._client = _client(target)

    async def send(self, signal: Signal, body: bytes) -> Reply:
        """Send a request, compressed."""
        compressed = await asyncio.to_thread(gzip.compress, body, 1)
        try:
            async with asyncio.timeout(self._target.timeout_seconds):
                async with self._client.stream(
                    "POST", f"{self._target.endpoint}{signal.path}", content=compressed
                ) as response:
                    return self._reply_of(response, await _read(response))
        except TimeoutError:
            return Reply(Failure.TIMEOUT, why=f"no reply within {self._target.timeout_seconds:g} s")
        except (httpx.HTTPError, OSError) as error:
            why = " ".join(str(error).split())[:MAX_MESSAGE_CHARS]
            return Reply(Failure.CONNECTION, why=f"{type(error).__name__}: {why}")

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    def _reply_of(self, response: httpx.Response, body: bytes) -> Reply:
        status = response.status_code
        if response.is_success:
            return Reply(body=body)
        why = f"HTTP {status}"
        if status == _TOO_MANY:
            failure = Failure.RATE_LIMITED
        elif status >= _SERVER_ERRORS or status == _TIMED_OUT:
            failure = Failure.UNAVAILABLE
        elif status in _NOT_ALLOWED:
            failure = Failure.UNAUTHORIZED
        else:
            failure = Failure.TOO_LARGE if status == _TOO_LARGE else Failure.REFUSED
        return Reply(failure, why=why, wait=retry_after(response.headers, self._clock()))


async def _read(response: httpx.Response) -> bytes:
    """The body of a reply, as far as it is needed."""
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            return b""
    return bytes(content)


def _client(target: ExportTarget) -> httpx.AsyncClient:
    headers = {
        "User-Agent": f"ragwatch/{__version__}",
        **target.headers,
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
        "Accept-Encoding": "identity",  # so that a reply cannot grow beyond its limit
    }
    client: httpx.AsyncClient = async_client(httpx, headers=headers, verify=_tls(target), timeout=None)
    return client


def _tls(target: ExportTarget) -> ssl.SSLContext | bool:
    if not target.endpoint.startswith("https:"):
        return False
    try:
        return ssl.create_default_context(cafile=target.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"export.otlp.ca_file: {target.ca_file} cannot be read; give a file of PEM certificates"
        ) from error
