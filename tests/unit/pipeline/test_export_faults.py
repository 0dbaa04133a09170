"""Export of scores to a real server that fails: each verdict is sent once, or again, and nothing else waits."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsPartialSuccess, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from structlog.testing import LogCapture
from support.exporting import SPAN, TRACE, Exporting, traced
from support.kit import AT, a_draw, a_verdict
from support.otlp_backend import Fault, OtlpBackend, plain
from support.patience import DEADLINE

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.evaluation import ExportRules, Signal
from ragwatch.pipeline.export.loop import MAX_PAUSE_SECONDS
from ragwatch.ports import Retention
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import EventCount, GaugeLevel, Telemetry


async def test_each_verdict_once(exporting: Exporting, backend: OtlpBackend) -> None:
    """Over several requests and two processes each verdict is sent once, in the order of settlement."""
    rules = ExportRules(default=(Quantity.FAITHFULNESS,), batch=4)
    exporting.settle(*(traced(f"r{index}", response_id=f"r{index}") for index in range(10)))
    await exporting.run(rules=rules)
    exporting.settle(*(traced(f"r{index}", response_id=f"r{index}") for index in range(10, 13)))
    await exporting.run(rules=rules)
    await exporting.run(rules=rules)
    assert [plain(one.attributes)["gen_ai.response.id"] for one in backend.logs()] == [f"r{n}" for n in range(13)]
    assert len(backend.received) == 4
    assert exporting.counts(EventCount.EXPORT_RECORDS) == {"sent": 13}


async def test_a_process_that_ends_before_the_reply(exporting: Exporting, backend: OtlpBackend) -> None:
    """A request under way is sent again by the next process, with the same ids, so that a backend can tell."""
    exporting.settle(traced())
    backend.faults = [Fault(hangs=True)]
    loop = exporting.loop(Signal.SPANS)
    assert await loop.step() is False  # returns although there is no reply
    async with asyncio.timeout(DEADLINE):
        while not backend.received:  # noqa: ASYNC110 - a server in a thread has no event
            await asyncio.sleep(0.01)
    assert len(backend.received) == 1
    await loop.close()
    await exporting.run(Signal.SPANS)
    first, second = (ExportTraceServiceRequest.FromString(one.body) for one in backend.received)
    assert first == second


@pytest.mark.parametrize(
    ("fault", "reason", "wait"),
    [
        (Fault(503, {"Retry-After": "30"}), "unavailable", 30.0),
        (Fault(500), "unavailable", None),
        (Fault(408), "unavailable", None),
        (Fault(429, {"Retry-After": format_datetime(datetime.fromtimestamp(AT + 105, UTC))}), "rate_limited", 45.0),
        (Fault(429, {"Retry-After": "soon"}), "rate_limited", None),
        (Fault(401), "unauthorized", None),
        (Fault(resets=True), "connection", None),
    ],
    ids=lambda value: value.status if isinstance(value, Fault) else "",
)
async def test_failures_that_are_repeated(  # noqa: PLR0917 - the parameters of one case
    exporting: Exporting, backend: OtlpBackend, log: LogCapture, fault: Fault, reason: str, wait: float | None
) -> None:
    """Nothing is lost: it is sent again after Retry-After, or after a pause that doubles; it is logged once."""
    exporting.settle(traced())
    backend.faults = [fault, fault]
    loop = exporting.loop()
    pauses = []
    for _ in range(2):
        assert await loop.step() is False
        seen, start = len(backend.received), exporting.timer.now
        while len(backend.received) == seen:
            assert exporting.timer.now - start < MAX_PAUSE_SECONDS
            exporting.timer.now += 0.5
            await loop.step()
        pauses.append(exporting.timer.now - start)
    level = exporting.telemetry.levels()[GaugeLevel.EXPORT_WAITING, ("logs",)]
    await loop.step()
    await loop.close()
    assert len(backend.logs()) == 1
    assert exporting.counts(EventCount.EXPORT_FAILURES) == {reason: 2}
    assert (pauses == [wait, wait]) if wait else (1.0 <= pauses[0] <= 2.5 and 2.0 <= pauses[1] <= 4.5)
    assert level == 0.0
    assert [entry["reason"] for entry in log.entries] == [reason]


async def test_the_wait_is_told(exporting: Exporting, backend: OtlpBackend) -> None:
    """While the endpoint fails, the level says since when verdicts wait; then it is 0 again."""
    exporting.settle(traced())
    backend.faults = [Fault(503, {"Retry-After": "30"})]
    loop, waits = exporting.loop(), []
    for now in (1000.0, 1020.0, 1040.0):
        exporting.timer.now = now
        await loop.step()
        waits.append(exporting.telemetry.levels()[GaugeLevel.EXPORT_WAITING, ("logs",)])
    await loop.close()
    assert waits == [0.0, 20.0, 0.0]


@pytest.mark.parametrize("status", [400, 404, 415, 301, 413])
async def test_what_is_refused_is_dropped(
    exporting: Exporting, backend: OtlpBackend, log: LogCapture, status: int
) -> None:
    """It is counted and logged, and the next verdicts are sent."""
    exporting.settle(traced())
    backend.faults = [Fault(status, {"Location": f"{backend.url}/elsewhere"})]
    await exporting.run()
    exporting.settle(traced("r2"))
    await exporting.run()
    reason = "too_large" if status == 413 else "refused"
    assert exporting.counts(EventCount.EXPORT_RECORDS) == {"dropped": 1, "sent": 1}
    assert exporting.counts(EventCount.EXPORT_FAILURES) == {reason: 1}
    lost = [entry for entry in log.entries if entry["log_level"] == "error"]
    assert [(entry["records"], entry["why"]) for entry in lost] == [(1, f"HTTP {status}")]


async def test_too_large_requests_are_halved(exporting: Exporting, backend: OtlpBackend) -> None:
    """After a 413 half as many verdicts are sent at a time, until they fit; none is lost."""
    exporting.settle(*(traced(f"r{index}") for index in range(4)))
    backend.faults = [Fault(413), Fault(413)]
    await exporting.run(rules=ExportRules(default=(Quantity.FAITHFULNESS,), batch=4))
    assert exporting.counts(EventCount.EXPORT_RECORDS) == {"sent": 4}
    assert len(backend.received) == 6


@pytest.mark.parametrize("signal", Signal)
async def test_partial_success(exporting: Exporting, backend: OtlpBackend, log: LogCapture, signal: Signal) -> None:
    """Rejected records are counted and not sent again; a reply that cannot be decoded says nothing."""
    exporting.settle(*(traced(f"r{index}") for index in range(3)))
    reply = (
        ExportLogsServiceResponse(
            partial_success=ExportLogsPartialSuccess(rejected_log_records=2, error_message="no such project")
        )
        if signal is Signal.LOGS
        else ExportTraceServiceResponse(
            partial_success=ExportTracePartialSuccess(rejected_spans=2, error_message="no such project")
        )
    )
    backend.faults = [Fault(body=reply.SerializeToString()), Fault(body=b"{}"), Fault(body=b"0" * 100_000)]
    await exporting.run(signal)
    exporting.settle(traced("r3"))
    await exporting.run(signal)
    exporting.settle(traced("r4"))
    await exporting.run(signal)
    assert exporting.counts(EventCount.EXPORT_RECORDS) == {"sent": 3, "rejected": 2}
    assert [entry["why"] for entry in log.entries] == ["no such project"]


async def test_no_reply_in_time(exporting: Exporting, backend: OtlpBackend) -> None:
    """A request ends after its timeout, and is repeated."""
    exporting.settle(traced())
    with closing(OtlpBackend([Fault(hangs=True)])) as silent:  # a busy server takes a request after its timeout
        exporting.url = silent.url
        hurried = exporting.loop(timeout_seconds=0.05)
        await hurried.step()
        await hurried.close()
        exporting.url = backend.url
    exporting.timer.now += 10.0
    loop = exporting.loop()  # with time for the reply of a busy machine
    await loop.step()
    await loop.close()
    assert exporting.counts(EventCount.EXPORT_FAILURES) == {"timeout": 1}
    assert len(backend.logs()) == 1


async def test_the_first_start(exporting: Exporting, backend: OtlpBackend) -> None:
    """Of what was judged before only recent answers are sent; older ones are neither sent nor counted."""
    old = a_draw("old", at=AT - 100 * 86400, metadata={"trace_id": TRACE, "span_id": SPAN})
    exporting.settle(a_verdict(old))
    loop = exporting.loop()
    assert await loop.step() is False
    exporting.settle(traced())
    await loop.step()
    await loop.close()
    assert len(backend.logs()) == 1
    assert exporting.counts(EventCount.EXPORT_SKIPPED) == {}


async def test_a_dead_endpoint(store: SqliteStore, telemetry: Telemetry) -> None:
    """Where nobody listens, steps end at once and fail nothing else; retention may take what waits."""
    backend = OtlpBackend()
    backend.close()
    exporting = Exporting(backend.url, store, telemetry)
    exporting.settle(traced())
    loop = exporting.loop()
    assert await loop.step() is False
    assert exporting.counts(EventCount.EXPORT_FAILURES) == {"connection": 1}
    store.prune(Retention(1, 1, 1 << 40), now=AT + 10 * 86400)
    exporting.timer.now += 60
    assert await loop.step() is False
    assert exporting.counts(EventCount.EXPORT_FAILURES) == {"connection": 1}
    await loop.close()
