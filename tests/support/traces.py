"""One RAG request as several frameworks and conventions trace it: same question, documents and answer.

Written after what the frameworks really send, shortened to what matters; none of it is anybody's recorded traffic.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ragwatch.sources.otlp.span import Span
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


def _json(value: Any) -> str:
    return json.dumps(value)


def _parts(role: str, text: str) -> dict[str, Any]:
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
        [{"content": text, "metadata": _json({"score": score})} for text, score in zip(TEXTS, SCORES, strict=True)],
        "document.",
    )
    return [
        a_span("chain", end=90, attributes={OI: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}),
        a_span("R", "chain", 1, attributes={OI: "RETRIEVER", "output.value": _json({"documents": rows})} | flattened),
        a_span("model", "chain", 5, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", ANSWER))),
    ]


def genai_ids_only() -> list[Span]:
    """OTel GenAI: the retrieval span holds ids and scores, the prompt's variable the texts."""
    found = [{"id": "d0", "score": 1.0}, {"id": "d1", "score": 0.9}]
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": _json([_parts("system", f"Context:\n{JOINED}"), _parts("user", QUESTION)]),
        "gen_ai.output.messages": _json([_parts("assistant", ANSWER)]),
        "gen_ai.prompt.variable.context": JOINED,
    }
    query = {"gen_ai.retrieval.query.text": QUESTION, "gen_ai.retrieval.documents": _json(found)}
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


def genai_structured() -> list[Span]:
    """OTel GenAI with structured attributes instead of JSON in text, and texts of documents."""
    found = [
        {"id": name, "score": score, "content": text} for name, score, text in zip(IDS, SCORES, TEXTS, strict=True)
    ]
    return [
        a_span("invoke_agent", end=90, attributes={"gen_ai.operation.name": "invoke_agent"}),
        a_span("retrieval", "invoke_agent", 1, attributes={"gen_ai.retrieval.documents": found}),
        a_span(
            "chat",
            "invoke_agent",
            5,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": [_parts("user", QUESTION)],
                "gen_ai.output.messages": [_parts("assistant", ANSWER)],
            },
        ),
    ]


def genai_old_names() -> list[Span]:
    """The names before the move: flattened prompts and completions, `gen_ai.system`; documents as an event."""
    found = [{"id": name, "score": score, "text": text} for name, score, text in zip(IDS, SCORES, TEXTS, strict=True)]
    model = {"gen_ai.system": "openai", "llm.request.type": "chat"}
    model |= flat("gen_ai.prompt", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}])
    model |= flat("gen_ai.completion", [{"role": "assistant", "content": ANSWER, "finish_reason": "stop"}])
    return [
        a_span("POST /ask", end=90, attributes={"http.request.method": "POST"}),
        a_span(
            "search",
            "POST /ask",
            1,
            attributes={"gen_ai.operation.name": "retrieval"},
            events=[("gen_ai.retrieval", {"gen_ai.retrieval.documents": _json(found)})],
        ),
        a_span("openai.chat", "POST /ask", 5, attributes=model),
    ]


def genai_events() -> list[Span]:
    """Messages as events of the span (Azure, Semantic Kernel, Strands); documents of a client of a vector database."""
    rows = [
        {"db.query.result.id": name, "db.query.result.document": text, "db.query.result.score": score}
        for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)
    ]
    return [
        a_span("POST /ask", end=90, attributes={"http.request.method": "POST"}),
        a_span("chroma.query", "POST /ask", 1, attributes={"db.system": "chroma"},
               events=[("db.query.result", row) for row in rows]),
        a_span(
            "chat gpt",
            "POST /ask",
            5,
            attributes={"gen_ai.operation.name": "chat"},
            events=[
                ("gen_ai.system.message", {"gen_ai.event.content": _json({"content": "Be brief."})}),
                ("gen_ai.user.message", {"gen_ai.event.content": _json({"content": QUESTION})}),
                ("gen_ai.choice", {"gen_ai.event.content": _json({"message": {"content": ANSWER}})}),
            ],
        ),
    ]  # fmt: skip


def content_events() -> list[Span]:
    """The two events with all of prompt and completion; documents of Spring AI's vector store."""
    found = [{"id": name, "text": text, "score": score} for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)]
    store = {"spring.ai.kind": "vector_store", "db.operation.name": "query", "db.vector.query.content": QUESTION}
    return [
        a_span("spring_ai chat_client", end=90, attributes={"spring.ai.kind": "chat_client"}),
        a_span("pg_vector add", "spring_ai chat_client", 0,
               attributes={"spring.ai.kind": "vector_store", "db.operation.name": "add"}),
        a_span("pg_vector query", "spring_ai chat_client", 1,
               attributes=store | {"db.vector.query.response.documents": _json(found)}),
        a_span(
            "chat gpt",
            "spring_ai chat_client",
            5,
            attributes={"gen_ai.operation.name": "chat"},
            events=[
                ("gen_ai.content.prompt", {"gen_ai.prompt": _json([{"role": "user", "content": QUESTION}])}),
                ("gen_ai.content.completion", {"gen_ai.completion": _json([{"message": {"content": ANSWER}}])}),
            ],
        ),
    ]  # fmt: skip


def traceloop_langchain() -> list[Span]:
    """Traceloop of LangChain: inputs and outputs are wrapped, documents have no id."""
    rows = [{"page_content": text, "metadata": {"score": score}} for text, score in zip(TEXTS, SCORES, strict=True)]
    return [
        a_span(
            "chain.workflow",
            end=90,
            attributes={
                "traceloop.span.kind": "workflow",
                "traceloop.entity.input": _json({"inputs": QUESTION, "tags": [], "kwargs": {"name": "chain"}}),
                "traceloop.entity.output": _json({"outputs": ANSWER, "kwargs": {"tags": []}}),
            },
        ),
        a_span(
            "vector_db_retrieve R",
            "chain.workflow",
            1,
            attributes={
                "traceloop.span.kind": "task",
                "gen_ai.operation.name": "vector_db_retrieve",
                "traceloop.entity.input": _json({"query": QUESTION, "kwargs": {}}),
                "traceloop.entity.output": _json({"documents": rows, "count": 2}),
            },
        ),
        a_span(
            "Fake.chat",
            "chain.workflow",
            5,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.system_instructions": _json([{"type": "text", "content": JOINED}]),
                "gen_ai.input.messages": _json([_parts("user", QUESTION)]),
                "gen_ai.output.messages": _json([_parts("assistant", ANSWER)]),
            },
        ),
    ]


def traceloop_llamaindex() -> list[Span]:
    """Traceloop of LlamaIndex: every span is a task, documents are JSON inside of JSON."""
    nodes = [
        _json({"node": {"id_": name, "text": text, "metadata": {}}, "score": score})
        for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)
    ]
    kind = {"traceloop.span.kind": "task"}
    return [
        a_span(
            "RetrieverQueryEngine.workflow",
            end=90,
            attributes={
                "traceloop.span.kind": "workflow",
                "traceloop.entity.input": _json({"str_or_query_bundle": QUESTION}),
                "traceloop.entity.output": _json({"response": ANSWER, "source_nodes": nodes}),
            },
        ),
        a_span("VectorIndexRetriever.task", "RetrieverQueryEngine.workflow", 1,
               attributes=kind | {"traceloop.entity.output": _json(nodes)}),
        a_span("FakeLLM.chat", "RetrieverQueryEngine.workflow", 5,
               attributes=kind | {"gen_ai.output.messages": _json([_parts("assistant", ANSWER)])}),
    ]  # fmt: skip


def haystack() -> list[Span]:
    """Haystack under OpenInference: the root is nested, the prompt builder is marked as a model."""
    prompt = "".join(TEXTS) + f" Question: {QUESTION}"
    return [
        a_span("Pipeline.run", end=90, attributes={
            OI: "CHAIN", "input.value": _json({"data": {"retriever": {"query": QUESTION, "k": 2}}}),
            "output.value": _json({"llm": {"meta": [{}]}, "builder": {"answers": ["GeneratedAnswer(data='x')"]}})}),
        a_span("BM25.run", "Pipeline.run", 1,
               attributes={OI: "RETRIEVER", "input.value": _json({"query": QUESTION})} | documents(*TEXTS)),
        a_span("PromptBuilder.run", "Pipeline.run", 3, attributes={
            OI: "LLM", "llm.prompt_template.template": "{{query}}", "output.value": prompt}),
        a_span("Generator.run", "Pipeline.run", 5, attributes={OI: "LLM", "llm.model_name": "m"}
               | said("llm.input_messages", ("user", prompt)) | said("llm.output_messages", ("assistant", ANSWER))),
    ]  # fmt: skip


def haystack_native() -> list[Span]:
    """Haystack's own tags, of its tracer for OpenTelemetry."""
    rows = [{"id": name, "content": text, "score": score} for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)]
    return [
        a_span("haystack.pipeline.run", end=90, attributes={
            "haystack.pipeline.input_data": _json({"retriever": {"query": QUESTION}})}),
        a_span("retriever", "haystack.pipeline.run", 1, attributes={
            "haystack.component.type": "InMemoryBM25Retriever",
            "haystack.component.input": _json({"query": QUESTION}),
            "haystack.component.output": _json({"documents": rows})}),
        a_span("llm", "haystack.pipeline.run", 5, attributes={
            "haystack.component.type": "OpenAIChatGenerator",
            "haystack.component.output": _json({"replies": [{"role": "assistant", "content": [{"text": ANSWER}]}]})}),
    ]  # fmt: skip


def dspy() -> list[Span]:
    """DSPy without a traced retriever: contexts are arguments of the predictor, the model answers in sections."""
    text = f"[[ ## reasoning ## ]]\nBig.\n\n[[ ## response ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]"
    arguments = {"context": list(TEXTS), "question": QUESTION}
    return [
        a_span("RAG.forward", end=90, attributes={
            OI: "CHAIN", "input.value": _json({"question": QUESTION}), "output.value": _json({"response": ANSWER})}),
        a_span("Predict.forward", "RAG.forward", 2, 80, attributes={OI: "CHAIN", "input.value": _json(arguments)}),
        a_span("LM", "Predict.forward", 5, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", text))),
    ]  # fmt: skip


def vercel() -> list[Span]:
    """The Vercel AI SDK: retrieval is a tool, the first call of the model calls it."""
    rows = [{"id": name, "content": text, "score": score} for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)]
    first = {"ai.prompt.messages": _json([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])}
    return [
        a_span("ai.generateText", end=90, attributes={
            "ai.operationId": "ai.generateText", "ai.prompt": _json({"system": "Be brief.", "prompt": QUESTION}),
            "ai.response.text": ANSWER}),
        a_span("ai.generateText.doGenerate", "ai.generateText", 1, 3, attributes={
            "ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls": _json([{"toolName": "search"}])}
            | first),
        a_span("ai.toolCall", "ai.generateText", 4, 6, attributes={
            "ai.operationId": "ai.toolCall", "ai.toolCall.name": "searchDocs", "ai.toolCall.result": _json(rows)}),
        a_span("second", "ai.generateText", 7, 9, attributes={
            "ai.operationId": "ai.generateText.doGenerate", "ai.response.text": ANSWER} | first),
    ]  # fmt: skip


def pydantic_ai() -> list[Span]:
    """Pydantic AI: the agent's span holds all messages and the final result."""
    rows = [{"id": name, "text": text, "score": score} for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)]
    call = {"role": "assistant", "parts": [{"type": "tool_call", "name": "retrieve", "arguments": "{}"}]}
    asked = [_parts("system", "Be brief."), _parts("user", QUESTION)]
    return [
        a_span("agent run", end=90, attributes={
            "agent_name": "agent", "final_result": ANSWER,
            "pydantic_ai.all_messages": _json([*asked, call, _parts("assistant", ANSWER)])}),
        a_span("chat one", "agent run", 1, 3, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.input.messages": _json(asked),
            "gen_ai.output.messages": _json([call])}),
        a_span("running tool", "agent run", 4, 6, attributes={
            "gen_ai.tool.name": "retrieve", "tool_response": _json(rows)}),
        a_span("chat two", "agent run", 7, 9, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.input.messages": _json(asked),
            "gen_ai.output.messages": _json([_parts("assistant", ANSWER)])}),
    ]  # fmt: skip


def backends() -> list[Span]:
    """Attributes of backends with an SDK of their own: Langfuse, MLflow and LangSmith in one trace."""
    rows = [{"id": name, "page_content": text, "metadata": {"score": score}}
            for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)]  # fmt: skip
    return [
        a_span("ask", end=90, attributes={
            "langfuse.observation.type": "chain", "langfuse.observation.input": _json({"question": QUESTION}),
            "langfuse.observation.output": _json({"answer": ANSWER}), "langfuse.session.id": "s1"}),
        a_span("find", "ask", 1, attributes={"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": _json(rows)}),
        a_span("model", "ask", 5, attributes={
            "langsmith.span.kind": "llm", "gen_ai.prompt": _json({"messages": [{"role": "user", "content": QUESTION}]}),
            "gen_ai.completion": _json({"choices": [{"message": {"role": "assistant", "content": ANSWER}}]})}),
    ]  # fmt: skip


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
    chosen = {OI: "CHAIN", "output.value": _json(printed)}
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


TRACES = {
    "openinference": (openinference, Expected()),
    "ids in output": (ids_in_output, Expected()),
    "genai, ids only": (genai_ids_only, Expected()),
    "genai, messages only": (genai_messages_only, Expected()),
    "genai, structured": (genai_structured, Expected()),
    "genai, old names": (genai_old_names, Expected()),
    "genai, events": (genai_events, Expected()),
    "content events, Spring AI": (content_events, Expected()),
    "Traceloop, LangChain": (traceloop_langchain, Expected(ids=(None, None))),
    "Traceloop, LlamaIndex": (traceloop_llamaindex, Expected()),
    "Haystack": (haystack, Expected()),
    "Haystack, native": (haystack_native, Expected()),
    "DSPy": (dspy, NAMELESS),
    "Vercel AI SDK": (vercel, Expected()),
    "Pydantic AI": (pydantic_ai, Expected()),
    "Langfuse, MLflow, LangSmith": (backends, Expected()),
    "reranked": (reranked, Expected()),
    "filtered": (filtered, Expected(scores=(1.0, 0.9))),
    "nested": (nested, Expected()),
    "three processes": (distributed, Expected()),
    "conversation": (conversation, Expected(history=(("user", "Hi."), ("assistant", "Hello!")))),
    "streamed": (streamed, Expected()),
}
"""Traces by name, with what each must become besides `QUESTION` and `ANSWER`."""
