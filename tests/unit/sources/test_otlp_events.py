"""GenAI events that are sent as log records, responses of tools in messages, and times in another unit."""

import asyncio
import json
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from support.kit import Clock
from support.spans import (
    ANSWER,
    JSON,
    OI,
    PROTOBUF,
    QUESTION,
    START,
    TEXTS,
    TRACE,
    a_request,
    a_span,
    as_json,
    as_protobuf,
    documents,
    only,
    openinference,
    parts,
    texts,
)

from ragwatch.formats.traces.assemble import assemble
from ragwatch.formats.traces.span import Span
from ragwatch.sources.otlp import json_request, protobuf_request
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import LOGS_PATH, PATH, OtlpSource

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
ROWS = [{"id": name, "content": text, "score": 0.5} for name, text in zip(("d0", "d1"), TEXTS, strict=True)]


def value(of: Any) -> dict[str, Any]:
    """A value in OTLP/JSON."""
    if isinstance(of, str):
        return {"stringValue": of}
    if isinstance(of, list):
        return {"arrayValue": {"values": list(map(value, of))}}
    return {"kvlistValue": {"values": [{"key": key, "value": value(part)} for key, part in of.items()]}}


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    """A request with log records."""
    return {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "genai"}, "logRecords": list(records)}]}]}


def a_log(name: str, body: Any, span: Span, at: int = 0, **more: Any) -> dict[str, Any]:
    """A log record of a span."""
    ids = {"traceId": span.trace_id, "spanId": span.span_id, "timeUnixNano": str(span.start + at)}
    return {**ids, "eventName": name, "body": value(body), **more}


def in_protobuf(request: dict[str, Any]) -> bytes:
    """A request in protobuf."""
    message = ParseDict(request, ExportLogsServiceRequest())
    for one, record in zip(message.resource_logs[0].scope_logs[0].log_records,
                           request["resourceLogs"][0]["scopeLogs"][0]["logRecords"], strict=True):  # fmt: skip
        one.trace_id, one.span_id = bytes.fromhex(record["traceId"]), bytes.fromhex(record["spanId"])
    return message.SerializeToString()


def a_trace() -> list[Span]:
    """A retrieval, and a call of a model without texts."""
    return [
        a_span("agent", end=99, attributes={"gen_ai.operation.name": "invoke_agent"}),
        a_span("retrieve", "agent", 1, attributes={OI: "RETRIEVER"} | documents(*TEXTS)),
        a_span("chat", "agent", 5, 50, attributes=CHAT),
    ]


def events(span: Span) -> dict[str, Any]:
    """What the model was asked and has answered, as log records in another order, beside one of another kind."""
    return logs(
        a_log("gen_ai.choice", {"index": "0", "message": {"role": "assistant", "content": ANSWER}}, span, 9),
        a_log("gen_ai.user.message", {"content": QUESTION}, span),
        a_log("app.started", "hello", span),
        a_log("gen_ai.evaluation.result", {"score": "1"}, span),
    )


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
async def test_events_are_a_part_of_their_span(kind: str) -> None:
    """`POST /v1/logs`: question and answer of events, contexts of spans, in either order; other log records are not."""
    clock = Clock()
    source = OtlpSource(Options(name="traces", grace_seconds=10, wait_seconds=120), clock)
    spans = a_trace()
    request = events(spans[2])
    body = json.dumps(request).encode() if kind == JSON else in_protobuf(request)
    for path, sent in ((LOGS_PATH, body), (PATH, as_json(spans) if kind == JSON else as_protobuf(spans))):
        source.wake.clear()
        task = asyncio.ensure_future(source.handlers[path](a_request(sent, kind)))
        await asyncio.wait_for(source.wake.wait(), 10)
        batch = source.read()
        assert batch is not None
        source.commit(batch)
        assert (await task).status == 200
    clock.now += 11
    batch = source.read()
    assert batch is not None
    (line,) = batch.lines
    record = json.loads(line)
    assert (record["question"], record["answer"], record["trace_id"]) == (QUESTION, ANSWER, TRACE)
    assert [context["text"] for context in record["contexts"]] == list(TEXTS)


def test_both_encodings_of_events_mean_the_same() -> None:
    """Name, fields and ids; an event that is sent again has the same id."""
    request = events(a_trace()[2])
    decoded = [protobuf_request.events_of(in_protobuf(request)), json_request.events_of(json.dumps(request).encode())]
    assert decoded[0].spans == decoded[1].spans
    assert [span.name for span in decoded[0].spans] == [
        "gen_ai.choice",
        "gen_ai.user.message",
        "gen_ai.evaluation.result",
    ]


def test_events_of_no_span_are_rejected() -> None:
    """Which request they belong to is unknown; other log records need no span."""
    record = a_log("gen_ai.choice", "x", a_trace()[2]) | {"spanId": ""}
    received = json_request.events_of(json.dumps(logs(record, record | {"eventName": "other"})).encode())
    assert (received.spans, received.rejected, "spanId" in received.problem) == ([], 1, True)


def test_the_details_of_a_call_are_one_event() -> None:
    """`gen_ai.client.inference.operation.details`: messages are structured attributes of the log record."""
    spans = a_trace()
    pairs = {"gen_ai.input.messages": [parts("user", QUESTION)], "gen_ai.output.messages": [parts("assistant", ANSWER)]}
    attributes = [{"key": key, "value": value(of)} for key, of in pairs.items()]
    record = a_log("gen_ai.client.inference.operation.details", {}, spans[2], attributes=attributes)
    received = json_request.events_of(json.dumps(logs(record)).encode())
    assert only(assemble([*spans, *received.spans]))["answer"] == ANSWER


@pytest.mark.parametrize("unit", [10**3, 10**6, 10**9])
def test_times_in_another_unit_are_corrected(unit: int) -> None:
    """Microseconds, milliseconds and seconds become nanoseconds, and are counted."""
    span = a_span("s", attributes={OI: "CHAIN"}, end=2000)
    wrong = span._replace(start=span.start // unit, end=span.end // unit)
    for received in (json_request.spans_of(as_json([wrong])), protobuf_request.spans_of(as_protobuf([wrong]))):
        assert received.times == {"unit": 1}
        assert abs(received.spans[0].start - START) < 10**9


def test_times_that_are_none_are_counted_and_left_out() -> None:
    """A clock that counts from the start of the machine says what came first, and not when: the record has no time."""
    spans = [span._replace(start=span.start - START + 1, end=span.end - START + 1) for span in openinference()]
    received = json_request.spans_of(as_json(spans))
    assert received.times == {"unknown": len(spans)}
    record = only(assemble(received.spans))
    assert (record["at"], record["answer"]) == (None, ANSWER)


SEARCH = {"type": "server_tool_call", "id": "c", "name": "file_search"}
FILES = {"type": "file_search", "results": [{"file_id": row["id"], "text": row["content"]} for row in ROWS]}
RETURNED = {"type": "server_tool_call_response", "id": "c", "server_tool_call_response": FILES}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "lookup", "arguments": {}}]}
RESPONSE = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": ROWS}]}
ASKED, SAID = parts("user", QUESTION), parts("assistant", ANSWER)
OF_CHAT = [
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "lookup"}}]},
    {"role": "tool", "tool_call_id": "c", "content": json.dumps(ROWS)},
]


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.input.messages": [ASKED, CALL, RESPONSE], "gen_ai.output.messages": [SAID]},
        {
            "gen_ai.input.messages": [ASKED],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [SEARCH, RETURNED, *SAID["parts"]]}],
        },
        {"ai.prompt.messages": OF_CHAT, "ai.response.text": ANSWER},
    ],
    ids=["tool_call_response", "server_tool_call_response", "role tool"],
)
def test_what_tools_say_in_messages(attributes: dict[str, Any]) -> None:
    """GenAI v0.1.0: a model whose messages hold what a tool retrieved; the step has the name of the tool."""
    written = {key: held if isinstance(held, str) else json.dumps(held) for key, held in attributes.items()}
    result = assemble([a_span("chat", attributes=CHAT | written)])
    assert texts(result) == list(TEXTS)
    assert only(result)["question"] == QUESTION
    assert {context["step"] for context in only(result)["contexts"]} <= {"lookup", "file_search"}


def test_what_a_tool_said_to_an_earlier_question_is_left_out() -> None:
    """A conversation is sent whole; passages of another question are no contexts of this one."""
    messages = [parts("user", "Hello?"), CALL, RESPONSE, parts("assistant", "Hello."), ASKED]
    held = {"gen_ai.input.messages": messages, "gen_ai.output.messages": [SAID]}
    result = assemble([a_span("chat", attributes=CHAT | {key: json.dumps(part) for key, part in held.items()})])
    assert (result.records, result.ungrounded) == ([], 1)


def test_records_of_a_memory_are_documents() -> None:
    """A search in a memory is a retrieval."""
    memory = {"gen_ai.operation.name": "search_memory", "gen_ai.memory.records": json.dumps(ROWS)}
    spans = a_trace()
    said = {"gen_ai.output.messages": json.dumps([parts("assistant", ANSWER)])}
    spans[1:] = [a_span("memory", "agent", 1, attributes=memory), a_span("chat", "agent", 5, attributes=CHAT | said)]
    assert texts(assemble(spans)) == list(TEXTS)


@pytest.mark.parametrize("model", [{}, {"llm.model_name": "m"}])
def test_a_retriever_that_answers(model: dict[str, Any]) -> None:
    """One span that retrieves and generates is both, if it names a model; else its output is what it retrieved."""
    attributes = {OI: "RETRIEVER", "input.value": QUESTION, "output.value": ANSWER} | documents(*TEXTS) | model
    result = assemble([a_span("retrieve_and_generate", attributes=attributes)])
    assert bool(result.records) == bool(model)
