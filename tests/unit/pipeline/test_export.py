"""Export of scores over OTLP to a real server: what is sent, and once, whatever the server does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from support.exporting import ANSWER, SPAN, TRACE, Exporting, traced
from support.kit import AT, Clock, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.otlp_backend import Fault, OtlpBackend, plain
from support.spans import PROTOBUF, a_request

from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.client import OtlpClient
from ragwatch.pipeline.export.evaluation import ExportRules, ExportTarget, Signal
from ragwatch.pipeline.export.loop import try_endpoint
from ragwatch.sources.otlp.handler import PATH
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import OtlpSource
from ragwatch.telemetry import EventCount


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
