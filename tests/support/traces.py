"""One RAG request as several frameworks and conventions trace it: same question, documents and answer.

Written after what the frameworks really send, shortened to what matters; none of it is anybody's recorded traffic.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ragwatch.formats.traces.span import Span
from support.spans import RESOURCE, a_span, documents, flat, said

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
