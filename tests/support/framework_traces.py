"""One RAG request as several frameworks and conventions trace it, and what all of these traces must become."""

from ragwatch.formats.traces.span import Span
from support.spans import (
    ANSWER,
    IDS,
    JOINED,
    NAMELESS,
    OI,
    QUESTION,
    SCORES,
    TEXTS,
    Expected,
    a_span,
    as_text,
    conversation,
    distributed,
    documents,
    filtered,
    flat,
    genai_ids_only,
    genai_messages_only,
    ids_in_output,
    nested,
    openinference,
    parts,
    reranked,
    said,
    streamed,
)


def rows(name: str, text: str, score: str = "score") -> list[dict[str, object]]:
    """The documents, their ids, texts and scores under these names."""
    return [{name: one, text: content, score: value} for one, content, value in zip(IDS, TEXTS, SCORES, strict=True)]


def genai_structured() -> list[Span]:
    """OTel GenAI with structured attributes instead of JSON in text, and texts of documents."""
    return [
        a_span("invoke_agent", end=90, attributes={"gen_ai.operation.name": "invoke_agent"}),
        a_span("retrieval", "invoke_agent", 1, attributes={"gen_ai.retrieval.documents": rows("id", "content")}),
        a_span("chat", "invoke_agent", 5, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.input.messages": [parts("user", QUESTION)],
            "gen_ai.output.messages": [parts("assistant", ANSWER)]}),
    ]  # fmt: skip


def genai_old_names() -> list[Span]:
    """The names before the move: flattened prompts and completions, `gen_ai.system`; documents as an event."""
    model = {"gen_ai.system": "openai", "llm.request.type": "chat"}
    model |= flat("gen_ai.prompt", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}])
    model |= flat("gen_ai.completion", [{"role": "assistant", "content": ANSWER, "finish_reason": "stop"}])
    return [
        a_span("POST /ask", end=90, attributes={"http.request.method": "POST"}),
        a_span("search", "POST /ask", 1, attributes={"gen_ai.operation.name": "retrieval"},
               events=[("gen_ai.retrieval", {"gen_ai.retrieval.documents": as_text(rows("id", "text"))})]),
        a_span("openai.chat", "POST /ask", 5, attributes=model),
    ]  # fmt: skip


def genai_events() -> list[Span]:
    """Messages as events of the span (Azure, Semantic Kernel, Strands); documents of a client of a vector database."""
    found = rows("db.query.result.id", "db.query.result.document", "db.query.result.score")
    return [
        a_span("POST /ask", end=90, attributes={"http.request.method": "POST"}),
        a_span("chroma.query", "POST /ask", 1, attributes={"db.system": "chroma"},
               events=[("db.query.result", row) for row in found]),
        a_span("chat gpt", "POST /ask", 5, attributes={"gen_ai.operation.name": "chat"}, events=[
            ("gen_ai.system.message", {"gen_ai.event.content": as_text({"content": "Be brief."})}),
            ("gen_ai.user.message", {"gen_ai.event.content": as_text({"content": QUESTION})}),
            ("gen_ai.choice", {"gen_ai.event.content": as_text({"message": {"content": ANSWER}})})]),
    ]  # fmt: skip


def content_events() -> list[Span]:
    """The two events with all of prompt and completion; documents of Spring AI's vector store."""
    store = {"spring.ai.kind": "vector_store", "db.operation.name": "query", "db.vector.query.content": QUESTION}
    return [
        a_span("spring_ai chat_client", end=90, attributes={"spring.ai.kind": "chat_client"}),
        a_span("pg_vector add", "spring_ai chat_client", 0,
               attributes={"spring.ai.kind": "vector_store", "db.operation.name": "add"}),
        a_span("pg_vector query", "spring_ai chat_client", 1,
               attributes=store | {"db.vector.query.response.documents": as_text(rows("id", "text"))}),
        a_span("chat gpt", "spring_ai chat_client", 5, attributes={"gen_ai.operation.name": "chat"}, events=[
            ("gen_ai.content.prompt", {"gen_ai.prompt": as_text([{"role": "user", "content": QUESTION}])}),
            ("gen_ai.content.completion", {"gen_ai.completion": as_text([{"message": {"content": ANSWER}}])})]),
    ]  # fmt: skip


def traceloop_langchain() -> list[Span]:
    """Traceloop of LangChain: inputs and outputs are wrapped, documents have no id."""
    found = [{"page_content": text, "metadata": {"score": score}} for text, score in zip(TEXTS, SCORES, strict=True)]
    return [
        a_span("chain.workflow", end=90, attributes={
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": as_text({"inputs": QUESTION, "tags": [], "kwargs": {"name": "chain"}}),
            "traceloop.entity.output": as_text({"outputs": ANSWER, "kwargs": {"tags": []}})}),
        a_span("vector_db_retrieve R", "chain.workflow", 1, attributes={
            "traceloop.span.kind": "task", "gen_ai.operation.name": "vector_db_retrieve",
            "traceloop.entity.input": as_text({"query": QUESTION, "kwargs": {}}),
            "traceloop.entity.output": as_text({"documents": found, "count": 2})}),
        a_span("Fake.chat", "chain.workflow", 5, attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.system_instructions": as_text([{"type": "text", "content": JOINED}]),
            "gen_ai.input.messages": as_text([parts("user", QUESTION)]),
            "gen_ai.output.messages": as_text([parts("assistant", ANSWER)])}),
    ]  # fmt: skip


def traceloop_llamaindex() -> list[Span]:
    """Traceloop of LlamaIndex: every span is a task, documents are JSON inside of JSON."""
    nodes = [
        as_text({"node": {"id_": name, "text": text, "metadata": {}}, "score": score})
        for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)
    ]
    kind = {"traceloop.span.kind": "task"}
    return [
        a_span("RetrieverQueryEngine.workflow", end=90, attributes={
            "traceloop.span.kind": "workflow", "traceloop.entity.input": as_text({"str_or_query_bundle": QUESTION}),
            "traceloop.entity.output": as_text({"response": ANSWER, "source_nodes": nodes})}),
        a_span("VectorIndexRetriever.task", "RetrieverQueryEngine.workflow", 1,
               attributes=kind | {"traceloop.entity.output": as_text(nodes)}),
        a_span("FakeLLM.chat", "RetrieverQueryEngine.workflow", 5,
               attributes=kind | {"gen_ai.output.messages": as_text([parts("assistant", ANSWER)])}),
    ]  # fmt: skip


def haystack() -> list[Span]:
    """Haystack under OpenInference: the root is nested, the prompt builder is marked as a model."""
    prompt = "".join(TEXTS) + f" Question: {QUESTION}"
    return [
        a_span("Pipeline.run", end=90, attributes={
            OI: "CHAIN", "input.value": as_text({"data": {"retriever": {"query": QUESTION, "k": 2}}}),
            "output.value": as_text({"llm": {"meta": [{}]}, "builder": {"answers": ["GeneratedAnswer(data='x')"]}})}),
        a_span("BM25.run", "Pipeline.run", 1,
               attributes={OI: "RETRIEVER", "input.value": as_text({"query": QUESTION})} | documents(*TEXTS)),
        a_span("PromptBuilder.run", "Pipeline.run", 3, attributes={
            OI: "LLM", "llm.prompt_template.template": "{{query}}", "output.value": prompt}),
        a_span("Generator.run", "Pipeline.run", 5, attributes={OI: "LLM", "llm.model_name": "m"}
               | said("llm.input_messages", ("user", prompt)) | said("llm.output_messages", ("assistant", ANSWER))),
    ]  # fmt: skip


def haystack_native() -> list[Span]:
    """Haystack's own tags, of its tracer for OpenTelemetry."""
    return [
        a_span("haystack.pipeline.run", end=90, attributes={
            "haystack.pipeline.input_data": as_text({"retriever": {"query": QUESTION}})}),
        a_span("retriever", "haystack.pipeline.run", 1, attributes={
            "haystack.component.type": "InMemoryBM25Retriever",
            "haystack.component.input": as_text({"query": QUESTION}),
            "haystack.component.output": as_text({"documents": rows("id", "content")})}),
        a_span("llm", "haystack.pipeline.run", 5, attributes={
            "haystack.component.type": "OpenAIChatGenerator",
            "haystack.component.output": as_text({"replies": [{"role": "assistant", "content": [{"text": ANSWER}]}]})}),
    ]  # fmt: skip


def dspy() -> list[Span]:
    """DSPy without a traced retriever: contexts are arguments of the predictor, the model answers in sections."""
    text = f"[[ ## reasoning ## ]]\nBig.\n\n[[ ## response ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]"
    arguments = {"context": list(TEXTS), "question": QUESTION}
    return [
        a_span("RAG.forward", end=90, attributes={
            OI: "CHAIN", "input.value": as_text({"question": QUESTION}),
            "output.value": as_text({"response": ANSWER})}),
        a_span("Predict.forward", "RAG.forward", 2, 80, attributes={OI: "CHAIN", "input.value": as_text(arguments)}),
        a_span("LM", "Predict.forward", 5, attributes={OI: "LLM"} | said("llm.output_messages", ("assistant", text))),
    ]  # fmt: skip


def vercel() -> list[Span]:
    """The Vercel AI SDK: retrieval is a tool, the first call of the model calls it."""
    first = {"ai.prompt.messages": as_text([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])}
    return [
        a_span("ai.generateText", end=90, attributes={
            "ai.operationId": "ai.generateText", "ai.prompt": as_text({"system": "Be brief.", "prompt": QUESTION}),
            "ai.response.text": ANSWER}),
        a_span("ai.generateText.doGenerate", "ai.generateText", 1, 3, attributes={
            "ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls": as_text([{"toolName": "search"}])}
            | first),
        a_span("ai.toolCall", "ai.generateText", 4, 6, attributes={
            "ai.operationId": "ai.toolCall", "ai.toolCall.name": "searchDocs",
            "ai.toolCall.result": as_text(rows("id", "content"))}),
        a_span("second", "ai.generateText", 7, 9, attributes={
            "ai.operationId": "ai.generateText.doGenerate", "ai.response.text": ANSWER} | first),
    ]  # fmt: skip


def pydantic_ai() -> list[Span]:
    """Pydantic AI: the agent's span holds all messages and the final result."""
    call = {"role": "assistant", "parts": [{"type": "tool_call", "name": "retrieve", "arguments": "{}"}]}
    asked = [parts("system", "Be brief."), parts("user", QUESTION)]
    return [
        a_span("agent run", end=90, attributes={
            "agent_name": "agent", "final_result": ANSWER,
            "pydantic_ai.all_messages": as_text([*asked, call, parts("assistant", ANSWER)])}),
        a_span("chat one", "agent run", 1, 3, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.input.messages": as_text(asked),
            "gen_ai.output.messages": as_text([call])}),
        a_span("running tool", "agent run", 4, 6, attributes={
            "gen_ai.tool.name": "retrieve", "tool_response": as_text(rows("id", "text"))}),
        a_span("chat two", "agent run", 7, 9, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.input.messages": as_text(asked),
            "gen_ai.output.messages": as_text([parts("assistant", ANSWER)])}),
    ]  # fmt: skip


def backends() -> list[Span]:
    """Attributes of backends with an SDK of their own: Langfuse, MLflow and LangSmith in one trace."""
    found = [{"id": name, "page_content": text, "metadata": {"score": score}}
            for name, text, score in zip(IDS, TEXTS, SCORES, strict=True)]  # fmt: skip
    return [
        a_span("ask", end=90, attributes={
            "langfuse.observation.type": "chain", "langfuse.observation.input": as_text({"question": QUESTION}),
            "langfuse.observation.output": as_text({"answer": ANSWER}), "langfuse.session.id": "s1"}),
        a_span("find", "ask", 1, attributes={"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": as_text(found)}),
        a_span("model", "ask", 5, attributes={
            "langsmith.span.kind": "llm",
            "gen_ai.prompt": as_text({"messages": [{"role": "user", "content": QUESTION}]}),
            "gen_ai.completion": as_text({"choices": [{"message": {"role": "assistant", "content": ANSWER}}]})}),
    ]  # fmt: skip


def agent_tool() -> list[Span]:
    """OTel GenAI of an agent: the retriever inside of a tool has ids only, the tool's result is the text."""
    found = [{"id": "d0", "score": 1.0}, {"id": "d1", "score": 0.9}]
    asked = [parts("user", "Hi."), parts("assistant", "Hello!"), parts("user", as_text({"question": QUESTION}))]
    return [
        a_span("invoke_agent", end=90, attributes={
            "gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": as_text(asked),
            "gen_ai.output.messages": as_text([parts("assistant", ANSWER)])}),
        a_span("execute_tool", "invoke_agent", 1, 9, attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "docs", "gen_ai.tool.call.result": JOINED}),
        a_span("retrieval", "execute_tool", 2, attributes={
            "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": as_text(found)}),
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
    "agent with a tool": (agent_tool, Expected(history=(("user", "Hi."), ("assistant", "Hello!")))),
    "reranked": (reranked, Expected()),
    "filtered": (filtered, Expected(scores=(1.0, 0.9))),
    "nested": (nested, Expected()),
    "three processes": (distributed, Expected()),
    "conversation": (conversation, Expected(history=(("user", "Hi."), ("assistant", "Hello!")))),
    "streamed": (streamed, Expected()),
}
"""Traces by name, with what each must become besides `QUESTION` and `ANSWER`."""
