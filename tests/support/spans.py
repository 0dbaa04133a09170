"""Spans and export requests as SDKs send them, from short descriptions.

Also one RAG request as several frameworks and conventions trace it: same question, documents and answer. It is written
after what the frameworks really send, shortened to what matters; none of it is anybody's recorded traffic.
"""

import base64
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from ragwatch.formats.traces.assemble import Assembled
from ragwatch.formats.traces.span import Event, Span
from ragwatch.ports.sources import IncomingRequest

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_795_223_809_000_000_000
RESOURCE = {"service.name": "shop", "telemetry.sdk.language": "python"}
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((number << 3 | 2, *length, size)) + content


def request_of(spans: bytes) -> bytes:
    """An export request with these encoded fields of one scope."""
    return field(1, field(2, spans))


def span_id(name: str) -> str:
    """The id of a span, from its name."""
    return blake2b(name.encode(), digest_size=8).hexdigest()


def a_span(name: str, parent: str = "", at: int = 0, end: int | None = None, **parts: Any) -> Span:
    """A span that begins and ends so many milliseconds after the trace; `attributes` and others by name."""
    whole = {"attributes": {}, "remote": False if parent else None, "resource": RESOURCE} | parts
    whole["events"] = tuple(Event(*one) for one in whole.pop("events", ()))
    last = at + 1 if end is None else end
    return Span(
        whole.pop("trace_id", TRACE),
        span_id(name),
        span_id(parent) if parent else "",
        name,
        START + at * 1_000_000,
        START + last * 1_000_000,
        **whole,
    )


def flat(prefix: str, items: Sequence[Mapping[str, Any]], inner: str = "") -> dict[str, Any]:
    """A list as OpenInference flattens it to keys."""
    return {f"{prefix}.{rank}.{inner}{key}": value for rank, item in enumerate(items) for key, value in item.items()}


def documents(*texts: str, prefix: str = "retrieval.documents") -> dict[str, Any]:
    """Documents d0, d1 ... with these texts, as OpenInference sends them."""
    items = [{"id": f"d{rank}", "content": text, "score": 1.0 - rank / 10} for rank, text in enumerate(texts)]
    return flat(prefix, items, "document.")


def said(prefix: str, *messages: tuple[str, str]) -> dict[str, Any]:
    """Messages as OpenInference sends them."""
    return flat(prefix, [{"role": role, "content": text} for role, text in messages], "message.")


def _value(value: object) -> AnyValue:
    encoded = AnyValue()
    if isinstance(value, bool):
        encoded.bool_value = value
    elif isinstance(value, str):
        encoded.string_value = value
    elif isinstance(value, int):
        encoded.int_value = value
    elif isinstance(value, float):
        encoded.double_value = value
    elif isinstance(value, bytes):
        encoded.bytes_value = value
    elif isinstance(value, list):
        encoded.array_value.values.extend(map(_value, value))
        encoded.array_value.SetInParent()
    elif isinstance(value, dict):
        encoded.kvlist_value.SetInParent()
        for key, inner in value.items():
            encoded.kvlist_value.values.add(key=key).value.CopyFrom(_value(inner))
    return encoded


def export_request(spans: Iterable[Span]) -> ExportTraceServiceRequest:
    """The export request of these spans."""
    request = ExportTraceServiceRequest()
    for span in spans:
        resource = request.resource_spans.add()
        for key, value in span.resource.items():
            resource.resource.attributes.add(key=key).value.CopyFrom(_value(value))
        scope = resource.scope_spans.add()
        scope.scope.name = span.scope
        encoded = scope.spans.add(
            trace_id=bytes.fromhex(span.trace_id),
            span_id=bytes.fromhex(span.span_id),
            parent_span_id=bytes.fromhex(span.parent_id),
            name=span.name,
            start_time_unix_nano=span.start,
            end_time_unix_nano=span.end,
            dropped_attributes_count=span.dropped,
            flags={None: 0, False: 0x100, True: 0x300}[span.remote],
        )
        encoded.status.code = Status.STATUS_CODE_ERROR if span.failed else Status.STATUS_CODE_OK
        for key, value in span.attributes.items():
            encoded.attributes.add(key=key).value.CopyFrom(_value(value))
        for event in span.events:
            written = encoded.events.add(name=event.name)
            for key, value in event.attributes.items():
                written.attributes.add(key=key).value.CopyFrom(_value(value))
    return request


def as_protobuf(spans: Iterable[Span]) -> bytes:
    """The body of an export request in protobuf."""
    return export_request(spans).SerializeToString()


def as_json(spans: Iterable[Span]) -> bytes:
    """The body of an export request in strict OTLP/JSON."""
    return json_of(export_request(spans))


def json_of(message: ExportTraceServiceRequest) -> bytes:
    """A request in strict OTLP/JSON: ids in hexadecimal, enumerations as numbers."""
    request = MessageToDict(message, use_integers_for_enums=True)
    for resource in request.get("resourceSpans", ()):
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if span.get(key):
                        span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(request).encode()


def single_spans(message: ExportTraceServiceRequest, trace_id: bytes) -> list[ExportTraceServiceRequest]:
    """One request for each span of a request, as spans of another trace."""
    requests = []
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                request = ExportTraceServiceRequest()
                into = request.resource_spans.add(resource=resource.resource).scope_spans.add(scope=scope.scope)
                into.spans.add().CopyFrom(span)
                into.spans[0].trace_id = trace_id
                requests.append(request)
    return requests


def joined(requests: Iterable[ExportTraceServiceRequest]) -> ExportTraceServiceRequest:
    """One request with the spans of several."""
    whole = ExportTraceServiceRequest()
    for request in requests:
        whole.MergeFrom(request)
    return whole


def a_request(body: bytes, kind: str = PROTOBUF, **headers: str) -> IncomingRequest:
    """A POST of this body; headers by name with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def chunks() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), 1 << 16):
            yield body[begin : begin + (1 << 16)]

    return IncomingRequest("/v1/traces", {"content-type": kind, "content-length": str(len(body))} | named, chunks())


QUESTION = "What is the capital of France?"
ANSWER = "Paris is the capital."
TEXTS = ("Paris is the capital of France.", "Lyon is a city in France.")
JOINED = "\n\n".join(TEXTS)
IDS = ("d0", "d1")
SCORES = (1.0, 0.9)
OI = "openinference.span.kind"


class Expected(NamedTuple):
    """What a trace must become: texts of contexts, their ids and scores."""

    texts: tuple[str, ...] = TEXTS
    ids: tuple[str | None, ...] = IDS
    scores: tuple[float | None, ...] = SCORES
    history: tuple[tuple[str, str], ...] = ()


NAMELESS = Expected(ids=(None, None), scores=(None, None))


def as_text(value: Any) -> str:
    """JSON in a text, as attributes hold it."""
    return json.dumps(value)


def parts(role: str, text: str) -> dict[str, Any]:
    """A message of OTel GenAI."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def openinference() -> list[Span]:
    """A chain with retriever, prompt and model, an embedding inside and a guardrail and an evaluator behind."""
    prompt = said("llm.input_messages", ("system", f"Use this:\n{JOINED}"), ("user", QUESTION))
    verdict = said("llm.output_messages", ("assistant", "safe"))
    return [
        a_span("chain", end=90, attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}),
        a_span("retrieve", "chain", 1, 10, attributes={OI: "RETRIEVER", "input.value": QUESTION} | documents(*TEXTS)),
        a_span("embed", "retrieve", 2, attributes={OI: "EMBEDDING", "embedding.embeddings.0.embedding.text": "x"}),
        a_span("prompt", "chain", 11, attributes={OI: "PROMPT", "output.value": "Use this"}),
        a_span(
            "model",
            "chain",
            12,
            20,
            attributes={OI: "LLM"} | prompt | said("llm.output_messages", ("assistant", ANSWER)),
        ),
        a_span("guard", "chain", 21, 30, attributes={OI: "GUARDRAIL"}),
        a_span("guard model", "guard", 22, 29, attributes={OI: "LLM"} | verdict),
        a_span("evaluate", "chain", 31, 40, attributes={OI: "EVALUATOR", "output.value": "0.9"}),
        a_span("evaluate model", "evaluate", 32, 39, attributes={OI: "LLM"} | verdict),
    ]


def ids_in_output() -> list[Span]:
    """OpenInference of LangChain: texts are flattened, ids are only in the output, scores in the metadata."""
    rows = [
        {"id": name, "page_content": text, "metadata": {"score": score}}
        for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)
    ]
    flattened = flat(
        "retrieval.documents",
        [{"content": text, "metadata": as_text({"score": score})} for text, score in zip(TEXTS, SCORES, strict=True)],
        "document.",
    )
    return [
        a_span("chain", end=90, attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}),
        a_span("R", "chain", 1, attributes={OI: "RETRIEVER", "output.value": as_text({"documents": rows})} | flattened),
        a_span("model", "chain", 5, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", ANSWER))),
    ]


def reranked() -> list[Span]:
    """A reranker behind a retriever: its documents are the contexts, in its order."""
    turned = documents(*TEXTS, prefix="reranker.output_documents")
    given = documents("Noise.", *TEXTS[::-1], prefix="reranker.input_documents")
    spans = openinference()
    spans[1] = a_span("retrieve", "chain", 1, 10, attributes={OI: "RETRIEVER"} | documents("Noise.", *TEXTS[::-1]))
    return [*spans, a_span("rerank", "chain", 11, attributes={OI: "RERANKER"} | given | turned)]


def filtered() -> list[Span]:
    """A component that chooses among documents and prints their ids only."""
    spans = openinference()
    spans[1] = a_span("retrieve", "chain", 1, 10, attributes={OI: "RETRIEVER"} | flat("retrieval.documents", [
        {"id": "x", "content": "Noise.", "score": 2.0}, {"id": "d1", "content": TEXTS[1]},
        {"id": "d0", "content": TEXTS[0]}], "document."))  # fmt: skip
    printed = [f"<NodeWithScore(node=TextNode(id_={name}), score={score})>" for name, score in
               zip(IDS, SCORES, strict=True)]  # fmt: skip
    chosen = {OI: "CHAIN", "output.value": as_text(printed)}
    return [*spans, a_span("Filter._postprocess_nodes", "chain", 11, attributes=chosen)]


def nested() -> list[Span]:
    """Retrievers and a model that rewrites the query inside of a retriever, and a model inside of a model."""
    spans = openinference()
    inner = {OI: "RETRIEVER"} | documents("Noise.", *TEXTS)
    return [
        *spans,
        a_span("inner", "retrieve", 3, attributes=inner),
        a_span(
            "rewrite", "retrieve", 4, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", "capital"))
        ),
        a_span("call", "model", 13, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", "raw"))),
    ]


def distributed() -> list[Span]:
    """A gateway, the service, and a service for retrieval: three processes; only the middle one generates."""
    other = RESOURCE | {"service.name": "vectors"}
    spans = openinference()
    spans[0] = spans[0]._replace(parent_id=a_span("GET /").span_id, remote=True)
    spans[1] = spans[1]._replace(remote=True, resource=other)
    front = RESOURCE | {"service.name": "gateway"}
    return [a_span("GET /", end=99, attributes={"http.request.method": "GET"}, resource=front), *spans]


def conversation() -> list[Span]:
    """A chat: the turns before the question are in the messages to the model."""
    turns = (("system", "Be brief."), ("user", "Hi."), ("assistant", "Hello!"), ("user", QUESTION))
    spans = openinference()
    spans[4] = a_span("model", "chain", 12, 20, attributes={OI: "LLM"} | said("llm.input_messages", *turns)
                      | said("llm.output_messages", ("assistant", ANSWER)))  # fmt: skip
    return spans


def streamed() -> list[Span]:
    """A streamed answer: the chain's output is a generator, the outer call of the model has none."""
    generator = {OI: "CHAIN", "input.value": QUESTION, "output.value": "<generator object>"}
    return [
        a_span("chain", end=90, attributes=generator),
        a_span("retrieve", "chain", 1, attributes={OI: "RETRIEVER"} | documents(*TEXTS)),
        a_span("stream", "chain", 5, 60, attributes={OI: "LLM", "llm.model_name": "m"}),
        a_span("complete", "stream", 6, 59,
               attributes={OI: "LLM", "llm.prompts": ["Use this"], "output.value": ANSWER}),
    ]  # fmt: skip


def genai_ids_only() -> list[Span]:
    """OTel GenAI: the retrieval span holds ids and scores, the prompt's variable the texts."""
    found = [{"id": "d0", "score": 1.0}, {"id": "d1", "score": 0.9}]
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": as_text([parts("system", f"Context:\n{JOINED}"), parts("user", QUESTION)]),
        "gen_ai.output.messages": as_text([parts("assistant", ANSWER)]),
        "gen_ai.prompt.variable.context": JOINED,
    }
    query = {"gen_ai.retrieval.query.text": QUESTION, "gen_ai.retrieval.documents": as_text(found)}
    return [
        a_span("invoke_workflow", end=90, attributes={"gen_ai.operation.name": "invoke_workflow"}),
        a_span("retrieval", "invoke_workflow", 1, attributes={"gen_ai.operation.name": "retrieval"} | query),
        a_span("chat", "invoke_workflow", 5, attributes=model),
    ]


def genai_messages_only() -> list[Span]:
    """OTel GenAI without a variable: the texts are in the system's message under a heading."""
    spans = genai_ids_only()
    del spans[2].attributes["gen_ai.prompt.variable.context"]
    return spans


def only(result: Assembled) -> dict[str, Any]:
    """The one record."""
    assert (len(result.records), result.refused) == (1, [])
    return result.records[0]


def texts(result: Assembled) -> list[str]:
    """Texts of the contexts of the one record."""
    return [context["text"] for context in only(result)["contexts"]]


def replaced(spans: list[Span], name: str, **parts: Any) -> list[Span]:
    """Spans, one of them changed."""
    return [span._replace(**parts) if span.name == name else span for span in spans]


def model(name: str = "model", parent: str = "", **parts: Any) -> Span:
    """A call of a model that answers."""
    attributes = {OI: "LLM"} | said("llm.output_messages", ("assistant", ANSWER)) | parts.pop("attributes", {})
    return a_span(name, parent, parts.pop("at", 50), attributes=attributes, **parts)
