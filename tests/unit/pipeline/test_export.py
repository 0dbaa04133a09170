"""Export of scores over OTLP to a real server: what is sent, and once, whatever the server does."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from structlog.testing import LogCapture
from support.kit import AT, Clock, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.otlp_backend import ANSWER, SPAN, TRACE, Exporting, Fault, OtlpBackend, plain, traced
from support.patience import DEADLINE
from support.spans import PROTOBUF, a_request

from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.evaluation import ExportRules, ExportTarget, Signal
from ragwatch.pipeline.export.loop import MAX_PAUSE_SECONDS, try_endpoint
from ragwatch.pipeline.export.otlp import OtlpClient
from ragwatch.ports import Retention
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import PATH, OtlpSource
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import EventCount, GaugeLevel, Telemetry


async def test_an_event_for_each_score(exporting: Exporting, backend: OtlpBackend) -> None:
    """Trace and span of the model's call, name, score, label by the threshold, id of the response; no text."""
    exporting.settle(traced(answer_span_id=ANSWER, response_id="resp-1"))
    rules = ExportRules(thresholds={Quantity.FAITHFULNESS: 0.9, Quantity.CONTRADICTION: 0.1})
    await exporting.run(rules=rules)
    events = {plain(one.attributes)["gen_ai.evaluation.name"]: one for one in backend.logs()}
    first = events["faithfulness"]
    assert (first.trace_id.hex(), first.span_id.hex()) == (TRACE, ANSWER)
    assert (first.event_name, first.time_unix_nano) == ("gen_ai.evaluation.result", int((AT + 60) * 1e9))
    assert plain(first.attributes) == {
        "gen_ai.evaluation.name": "faithfulness",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.response.id": "resp-1",
        "ragwatch.judge": "embedded",
        "ragwatch.judge.version": "scripted-1",
        "ragwatch.route": "search",
        "ragwatch.stage": "none",
    }
    stored = exporting.store.window(0, 0.0, 1)[0].scores or {}
    assert {name: plain(one.attributes)["gen_ai.evaluation.score.value"] for name, one in events.items()} == {
        str(name): score for name, score in stored.items() if score is not None
    }
    request = backend.received[0]
    assert (request.headers["Content-Type"], request.headers["Content-Encoding"]) == ("application/x-protobuf", "gzip")
    assert b"purr" not in request.body


@pytest.mark.parametrize("same", [True, False])
async def test_a_span_with_one_link(exporting: Exporting, backend: OtlpBackend, *, same: bool) -> None:
    """A new span links to the request, is its child or in a trace of its own, and holds its evaluations in order."""
    judge = replace(a_reading("claude", "claude-1"), kind="claude")
    exporting.store.admit(an_admission(traced().draw, judges=["claude"]))
    exporting.store.settle([a_verdict(traced().draw, reading=judge)])
    rules = ExportRules(
        {"claude": (Quantity.FAITHFULNESS, Quantity.CONTEXT_PRECISION)},
        route_thresholds={"search": {Quantity.CONTEXT_PRECISION: 1.0}},
        resource={"openinference.project.name": "shop"},
        same_trace=same,
    )
    await exporting.run(Signal.SPANS, rules=rules)
    (span,) = backend.spans()
    (link,) = span.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (TRACE, SPAN)
    assert (span.trace_id.hex() == TRACE, span.parent_span_id.hex()) == (same, SPAN if same else "")
    assert span.span_id.hex() not in ("", SPAN)
    assert span.end_time_unix_nano - span.start_time_unix_nano == 250_000_000
    attributes = plain(span.attributes)
    assert attributes["openinference.span.kind"] == "EVALUATOR"
    assert json.loads(attributes["output.value"]) == {"faithfulness": 1.0, "context_precision": 1.0}
    evaluations = {key: value for key, value in attributes.items() if key.startswith("evaluations.")}
    assert evaluations == {
        "evaluations.0.evaluation.name": "faithfulness",
        "evaluations.0.evaluation.score": 1.0,
        "evaluations.0.evaluation.annotator_kind": "LLM",
        "evaluations.0.evaluation.identifier": "claude:claude-1",
        "evaluations.1.evaluation.name": "context_precision",
        "evaluations.1.evaluation.score": 1.0,
        "evaluations.1.evaluation.label": "pass",
        "evaluations.1.evaluation.annotator_kind": "LLM",
        "evaluations.1.evaluation.identifier": "claude:claude-1",
    }
    request = ExportTraceServiceRequest.FromString(backend.received[0].body)
    resource = plain(request.resource_spans[0].resource.attributes)
    assert (resource["service.name"], resource["openinference.project.name"]) == ("ragwatch", "shop")


async def test_unjudged_answers_are_errors(exporting: Exporting, backend: OtlpBackend) -> None:
    """They have the reason as error.type and no score, as event for each quantity of the judge, and as span."""
    exporting.settle(traced(verdict="timeout"))
    await exporting.run(*Signal)
    (event,), (span,) = backend.logs(), backend.spans()
    assert plain(event.attributes)["error.type"] == plain(span.attributes)["error.type"] == "timeout"
    assert "gen_ai.evaluation.score.value" not in plain(event.attributes)
    assert not any(key.startswith("evaluations.") for key in plain(span.attributes))
    exporting.settle(traced("r2"))
    await exporting.run(Signal.SPANS)
    assert plain(backend.spans()[1].attributes)["evaluations.0.evaluation.annotator_kind"] == "CODE"
    assert (span.status.code, span.status.message) == (2, "not judged: timeout")


@pytest.mark.parametrize("wanted", [False, True])
async def test_texts_only_if_wanted(exporting: Exporting, backend: OtlpBackend, *, wanted: bool) -> None:
    """`explanations` sends unsupported claims, missing facts and relevant contexts; else no text is sent."""
    claims = (a_claim((0, 0), text="Cats bark \ud800."), a_claim((0, 0), "contradicted", text="Dogs purr."))
    evidence = an_evidence(*claims, needs=(False,), reads_contradiction=True)
    exporting.settle(a_verdict(traced().draw, evidence))
    await exporting.run(*Signal, rules=ExportRules(explanations=wanted))
    said = {
        (one := plain(event.attributes))["gen_ai.evaluation.name"]: one.get("gen_ai.evaluation.explanation")
        for event in backend.logs()
    }
    expected = {
        "faithfulness": '2 of 2 claims without support; "Cats bark ?."; "Dogs purr."',
        "contradiction": '1 of 2 claims contradicted; "Dogs purr."',
        "need_recall": "not in the contexts: why?",
        "context_precision": "1 of 2 contexts are relevant",
        "answer_relevancy": "the answer addresses the question: fully",
    }
    assert {name: text for name, text in said.items() if text} == (expected if wanted else {})
    assert (b"Dogs purr" in backend.received[1].body) is wanted


async def test_verdicts_that_nothing_is_sent_of(exporting: Exporting, backend: OtlpBackend) -> None:
    """Each is counted by its reason, and the others are sent."""
    exporting.settle(traced("first"))
    await exporting.run(*Signal)
    old = a_draw("old", at=AT - 100 * 86400, metadata={"trace_id": TRACE})
    nothing = an_evidence(relevant=(None, None), address=None)
    exporting.settle(
        a_verdict(a_draw("bare")),
        traced("text", trace_id="request 7"),
        a_verdict(old),
        a_verdict(traced("empty").draw, nothing),
        traced("spanless", span_id="0"),
        traced("uuid", trace_id="0af76519-16cd-43dd-8448-eb211c80319c"),
    )
    await exporting.run(*Signal)
    assert exporting.counts(EventCount.EXPORT_SKIPPED) == {
        "no_trace_id": 2,
        "invalid_trace_id": 2,
        "too_old": 2,
        "no_scores": 2,
        "no_span_id": 1,
    }
    assert [one.span_id.hex() for one in backend.logs()] == [SPAN, "", SPAN]
    assert len(backend.spans()) == 2


async def test_headers_are_sent_and_not_shown(exporting: Exporting, backend: OtlpBackend) -> None:
    """The headers of the configuration come with each request; the target does not show them."""
    exporting.settle(traced())
    loop = exporting.loop(headers={"Authorization": "Bearer hidden"})
    await loop.step()
    await loop.close()
    assert backend.received[0].headers["Authorization"] == "Bearer hidden"
    assert "hidden" not in repr(ExportTarget(backend.url, {"Authorization": "Bearer hidden"}))


async def test_own_spans_are_no_traffic(exporting: Exporting, backend: OtlpBackend) -> None:
    """A Collector that sends everything to ragwatch, its own spans too: they are accepted, and of no trace."""
    exporting.settle(traced())
    await exporting.run(Signal.SPANS)
    source = OtlpSource(Options(name="traces"), exporting.clock)
    reply = await source.handlers[PATH](a_request(backend.received[0].body, PROTOBUF))
    assert (reply.status, source.read()) == (200, None)
    source.close()


async def test_the_endpoint_is_tested(backend: OtlpBackend) -> None:
    """An empty request for each form; what is wrong is told for each."""
    backend.faults = [Fault(), Fault(404)]
    faults = await try_endpoint(ExportTarget(backend.url), Signal)
    assert faults == {Signal.LOGS: None, Signal.SPANS: "refused: HTTP 404"}
    assert [(one.path, one.body) for one in backend.received] == [("/v1/logs", b""), ("/v1/traces", b"")]


def test_certificates_that_cannot_be_read() -> None:
    """They are an error of the configuration."""
    with pytest.raises(ConfigError, match=r"export\.otlp\.ca_file: .* cannot be read"):
        OtlpClient(ExportTarget("https://otel.example.org", ca_file="/nonexistent"), Clock())


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
    why = "no such project"
    replies = {
        Signal.LOGS: ExportLogsServiceResponse(partial_success={"rejected_log_records": 2, "error_message": why}),
        Signal.SPANS: ExportTraceServiceResponse(partial_success={"rejected_spans": 2, "error_message": why}),
    }
    backend.faults = [Fault(body=replies[signal].SerializeToString()), Fault(body=b"{}"), Fault(body=b"0" * 100_000)]
    await exporting.run(signal)
    for name in ("r3", "r4"):
        exporting.settle(traced(name))
        await exporting.run(signal)
    assert exporting.counts(EventCount.EXPORT_RECORDS) == {"sent": 3, "rejected": 2}
    assert [entry["why"] for entry in log.entries] == [why]


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
