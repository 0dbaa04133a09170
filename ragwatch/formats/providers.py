"""Formats that are rows of data: keys that detect a record, an expression for each field, and the known bias.

Code and printed mapping come from the same row. To read another library or service, add a row here and a fixture to
`tests/data/formats`.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from ragwatch.errors import FormatError
from ragwatch.formats import canonical, fields
from ragwatch.formats.custom import REQUIRED, MappingReader
from ragwatch.formats.expressions import Predicate, predicate
from ragwatch.formats.record import Record
from ragwatch.model.sample import Sample


class ProviderFormat:
    """The records of one library or service; see `record.Format`.

    Args:
        name: Name in the configuration.
        keys: Sets of keys, separated by blanks; a record with all keys of one set may be of this format.
        where: JMESPath condition on it, for what keys do not say; empty for none.
        bias: What its records do not hold.
        advice: What to do where contexts are missing.
        mapping: An expression for each field.
    """

    def __init__(
        self, name: str, keys: Sequence[str], where: str = "", bias: str = "", advice: str = "", **mapping: str
    ) -> None:
        self.NAME = name
        self.KNOWN_BIAS = bias
        self.MAPPING: Mapping[str, str] = MappingProxyType(mapping)
        self._keys = tuple(tuple(some.split()) for some in keys)
        self._where = where
        self._advice = advice

    def matches(self, record: Record) -> bool:
        """Return whether the record has the keys of this format."""
        for some in self._keys:  # most records lack the first key: this runs for every record of unknown format
            for key in some:
                if key not in record:
                    break
            else:
                break
        else:
            return False
        try:
            return self._condition(record)
        except FormatError:
            return False

    def extract(self, record: Record) -> Record:
        """Return what the expressions extract, as a record in the canonical format."""
        extracted = self._reader.extract(record)
        for field in REQUIRED:
            if field not in extracted:
                advice = self._advice if field == "contexts" else ""
                raise fields.missing(field, f"is missing: {advice or f'nothing can be read at {self.MAPPING[field]}'}")
        if not extracted["question"]:
            extracted["question"] = fields.asked(record)
        return extracted

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record of this format."""
        return canonical.read(self.extract(record), fallback_id)

    @cached_property
    def _condition(self) -> Predicate:
        return predicate("where", self._where or "@")

    @cached_property
    def _reader(self) -> MappingReader:
        return MappingReader(self.MAPPING)


_AT = "at || timestamp || ts || created_at || created"
_SENT = (
    "what was sent with the request is all that is known of the retrieval: passages that were left out are not there"
)
_MESSAGES, _RESPONSE = "(from_json(request).messages || messages)", "(from_json(response) || @)"
_CHOICE = f"{_RESPONSE}.choices[0]"
_COMMON = {key: canonical.MAPPING[key] for key in ("id", "at", "route", "metadata", "trace_id", "reference")}
_ID = _COMMON["id"]
_RESULT = "chain_result(@)"
_QUERY = "filled([query, query_str, question, input])"
_GENERATED = "(answer_builder.answers || answers || (*.answers)[0] || [@])[0].not_null(init_parameters, @)"
_ALL = f"({_MESSAGES} || from_json(request).input || input)"
_CONTENTS = "(from_json(request).contents || contents)"
_LOGGED = "filled([documents, contexts, context, retrieved_contexts])"
_LOGGED = f"not_null({_LOGGED}, from_json(request).{_LOGGED})"
_CHAIN = _COMMON | {
    "id": f"{_ID} || metadata.run_id",
    "question": f"question_text(chain_question(@)) || {_RESULT}.filled([input, query, question])",
    "contexts": f"documents({_RESULT}.filled([context, source_documents, documents]))",
    "answer": f"{_RESULT}.filled([answer, result, output])",
    "history": "turns_before(chain_question(@)) || turns(filled([chat_history, history, chain_input(@).chat_history,"
    f" chain_input(@).history, {_RESULT}.chat_history, {_RESULT}.history]))",
}
_IS_CHAIN = f"{_RESULT}.not_null(context, source_documents) != `null` && {_RESULT}.filled([answer, result, output])"
_RESPONSES = _COMMON | {
    "id": f"{_ID} || {_RESPONSE}.id",
    "at": f"{_AT} || {_RESPONSE}.created_at || {_RESPONSE}.created",
    "question": f"question_of({_ALL} || filled([question, query, user_question, user_query, user_input, prompt]))",
    "contexts": f"not_null({_LOGGED}, file_search({_RESPONSE}.output), chat_contexts({_ALL}))",
    "answer": f"not_null(message_text({_CHOICE}.message), {_CHOICE}.message.refusal, output_text({_RESPONSE}.output))",
    "history": f"turns_before({_ALL}) || turns(filled([chat_history, history, from_json(request).chat_history]))",
}
_CITED = (
    "only references that the answer cites are logged, so what was retrieved in vain is unknown: context precision and"
    " the use of contexts are too high; log the results of Retrieve as retrievalResults to measure them"
)
LIBRARIES = (
    ProviderFormat(
        "ragas", ("user_input response",), advice="log retrieved_contexts", **_COMMON,
        question="question_text(user_input)", history="turns_before(user_input)", answer="response",
        contexts="with_ids([retrieved_contexts, retrieved_context_ids])",
    ),
    ProviderFormat(
        "llamaindex", ("source_nodes", "response"), "not_null(source_nodes, response.source_nodes) != `null`",
        **_COMMON,
        question=f"question_text({_QUERY}.filled([query_str, messages]) || {_QUERY})",
        contexts="documents(not_null(source_nodes, response.source_nodes))",
        answer="not_null(response.response, response)",
        history=f"turns_before({_QUERY}.messages || {_QUERY}) || turns(filled([chat_history, history,"
        " response.chat_history, response.history]))",
    ),
    ProviderFormat(
        "haystack", ("",), f"{_GENERATED}.data != `null` && {_GENERATED}.documents != `null`", **_COMMON,
        question=f"filled([query, question, {_GENERATED}.query])", contexts=f"documents({_GENERATED}.documents)",
        answer=f"{_GENERATED}.data",
    ),
)  # fmt: skip
"""Formats with keys of one library, which are tried before exported traces."""
PROVIDERS = (
    ProviderFormat(
        "deepeval", ("actual_output", "actualOutput"), **_COMMON | {"reference": "expected_output || expectedOutput"},
        question="input", contexts="not_null(retrieval_context, retrievalContext)",
        answer="not_null(actual_output, actualOutput)",
    ),
    ProviderFormat(
        "bedrock", ("output citations", "output retrievalResults", "response"),
        f"{_RESPONSE}.output.text && not_null({_RESPONSE}.not_null(citations, retrievalResults), retrievalResults)"
        " != `null`", bias=_CITED, **_COMMON,
        question="input.text || from_json(request).input.text || question || query || user_question"
        " || from_json(request).input || input",
        contexts="documents(not_null(retrievalResults, from_json(response).retrievalResults,"
        f" distinct({_RESPONSE}.citations[].retrievedReferences[])))",
        answer=f"{_RESPONSE}.output.text",
    ),
    ProviderFormat(
        "azure", ("messages choices", "request response", "messages response"),
        f"from_json({_CHOICE}.message.context).not_null(all_retrieved_documents, citations) != `null`",
        bias="citations are what was left after Azure's own filter (strictness, topNDocuments): what it retrieved"
        " and dropped is unknown, so context precision is too high; set include_contexts to all_retrieved_documents",
        **_COMMON | {"id": "id || request_id || response.id", "at": f"{_AT} || response.created"},
        question=f"question_of({_MESSAGES})", history=f"turns_before({_MESSAGES})",
        contexts=f"from_json({_CHOICE}.message.context)"
        ".documents(all_retrieved_documents[?!filter_reason] || citations)",
        answer=f"not_null(message_text({_CHOICE}.message), {_CHOICE}.message.refusal)",
    ),
    ProviderFormat(
        "anthropic", ("request response", "messages content"),
        f"{_MESSAGES} && {_RESPONSE}.type == 'message'", bias=_SENT,
        id="id || request_id || response.id", at=_AT, question=f"question_of({_MESSAGES})",
        contexts=f"retrieved({_MESSAGES})", answer=f"message_text({_RESPONSE}.content)",
        history=f"turns_before({_MESSAGES})",
    ),
    ProviderFormat(
        "bedrock_log", ("schemaType modelId",), "schemaType == 'ModelInvocationLog'", bias=_SENT,
        id="requestId", at="timestamp",
        question="question_of(from_json(input.inputBodyJson).messages)",
        contexts="retrieved(from_json(input.inputBodyJson).messages)",
        answer="message_text(from_json(output.outputBodyJson).output.message"
        " || from_json(output.outputBodyJson).choices[0].message || from_json(output.outputBodyJson))",
        history="turns_before(from_json(input.inputBodyJson).messages)",
    ),
    ProviderFormat(
        "cohere", ("documents message", "request response"),
        f"(from_json(request).documents || documents) && ({_RESPONSE}.text || {_RESPONSE}.message.content)", bias=_SENT,
        id="response_id || generation_id || id || response.id || response.response_id", at=_AT,
        question=f"question_of({_MESSAGES} || from_json(request).message || message)",
        contexts="documents(not_null(from_json(request).documents, documents))",
        answer=f"{_RESPONSE}.text || message_text({_RESPONSE}.message)",
        history=f"from_json(request).chat_history || chat_history || turns_before({_MESSAGES})",
    ),
    ProviderFormat(
        "litellm", ("call_type messages response",), "response.choices", bias=_SENT,
        id="id", at="startTime || response.created", question="question_of(messages)", contexts="retrieved(messages)",
        answer="message_text(response.choices[0].message)", history="turns_before(messages)", trace_id="trace_id",
    ),
    ProviderFormat(
        "helicone", ("request_body response_body",), "from_json(request_body).messages", bias=_SENT,
        id="request_id", at="request_created_at", question="question_of(from_json(request_body).messages)",
        contexts="retrieved(from_json(request_body).messages)",
        answer="message_text(from_json(response_body).choices[0].message || from_json(response_body))",
        history="turns_before(from_json(request_body).messages)",
    ),
    ProviderFormat(
        "dify", ("retriever_resources answer", "metadata answer message_id"),
        "not_null(retriever_resources, metadata.retriever_resources) != `null`",
        bias="an answer without a retrieval has an empty list of retriever_resources, as one that found nothing",
        id="id || message_id", at="created_at", question="query", answer="answer",
        contexts="not_null(retriever_resources, metadata.retriever_resources)[]"
        ".{id: segment_id, text: content, score: score}",
    ),
    ProviderFormat(
        "flowise", ("text question sourceDocuments",), id="chatMessageId || id", at=_AT, question="question",
        contexts="documents(sourceDocuments)", answer="text",
    ),
    ProviderFormat(
        "openwebui", ("chat",), "chat.messages",
        bias="of a chat with several answers only the last is read, and contexts have no id",
        id="chat.history.currentId || id", at="chat.messages[-1].timestamp || updated_at",
        question="question_of(chat.messages)", contexts="chat.messages[-1].sources[].document[]",
        answer="answer_of(chat.messages)", history="turns_before(chat.messages)",
    ),
    ProviderFormat(
        "librechat", ("messageId conversationId content",), "!isCreatedByUser",
        bias="the question is in a row of its own and unknown, as is whether it was answered",
        id="messageId", at="createdAt", answer="message_text(content) || text",
        contexts="attachments[?type=='file_search'].file_search.sources[]"
        ".{id: fileId, text: content, score: relevance}",
    ),
    ProviderFormat(
        "ragflow", ("data",), "data.reference.chunks && data.answer",
        id="data.id", question="question || data.question",
        contexts="data.reference.chunks[].{id: id, text: content, score: similarity}", answer="data.answer",
    ),
    ProviderFormat(
        "trulens", ("main_input main_output",), id="record_id", at="ts", question="main_input", answer="main_output",
        contexts="documents(from_json(record_json || record).calls"
        "[?contains(stack[-1].method.name || '', 'retriev')].rets | [])",
        bias="contexts are what methods with retrieve in their name returned",
    ),
    ProviderFormat(
        "loguru", ("record text",), "record.extra.answer", id="record.extra.request_id || record.extra.id",
        at="record.time.timestamp", question="record.extra.question", answer="record.extra.answer",
        contexts="documents(not_null(record.extra.contexts, record.extra.documents))", route="record.extra.route",
    ),
    ProviderFormat(
        "serilog", ("Properties Timestamp",), "Properties.Answer",
        id="Properties.RequestId || Properties.TraceId", at="Timestamp", question="Properties.Question",
        contexts="documents(not_null(Properties.Contexts, Properties.Documents, Properties.Chunks))",
        answer="Properties.Answer", trace_id="TraceId || Properties.TraceId",
    ),
    ProviderFormat(
        "logstash", ("@timestamp logger_name",), "generatedAnswer || answer",
        id="requestId || traceId", at='"@timestamp"', question="userQuestion || question || query",
        contexts="documents(not_null(retrievedDocuments, documents, contexts))", answer="generatedAnswer || answer",
        trace_id="traceId",
    ),
    ProviderFormat(
        "haystack_chat", ("retriever llm", "llm prompt_builder"), "*.replies[] && *.documents[]",
        bias="the documents are those of the last component that returned any",
        id="id || request_id", at=_AT, question="query || question || (*.query | [0]) || question_of((*.prompt)[0])",
        contexts="documents((*.documents)[-1])", answer="message_text(*.replies[] | [0])",
    ),
    ProviderFormat(
        "langgraph", ("messages",),
        "!(choices || response || request || answer || output || completion) && answer_of(messages)",
        id="id || run_id || thread_id", at=_AT, question="question_of(messages)",
        contexts="not_null(documents(not_null(documents, context)), retrieved(messages))", answer="answer_of(messages)",
        history="turns_before(messages)", bias="the documents of a state are those of its last retrieval",
    ),
    ProviderFormat(
        "vertex", ("candidates", "response"), f"{_RESPONSE}.candidates[?content != `null`]",
        bias="grounding chunks are the passages that support the answer with a confidence of 0.6 or more, not all that"
        " were retrieved: context precision and faithfulness are too high; log what was retrieved as documents to"
        " measure them",
        advice="the answer is not grounded, or its chunks (of web search) have no text",
        **_COMMON | {"id": f"{_ID} || {_RESPONSE}.responseId || {_RESPONSE}.response_id"},
        question=f"question_text({_CONTENTS}) || message_text({_CONTENTS}[-1] || {_CONTENTS})",
        contexts=f"not_null({_LOGGED}, grounding({_RESPONSE}.candidates[0]))",
        answer=f"message_text({_RESPONSE}.candidates[0].content)", history=f"turns_before({_CONTENTS})",
    ),
    ProviderFormat(
        "file_search", ("output", "response"), f"{_RESPONSE}.output[?type=='file_search_call']",
        bias="experimental: the results are those of all searches of a response in their order, at most"
        " max_num_results each; several searches for one question count as one retrieval", **_RESPONSES,
    ),
    ProviderFormat(
        "openai", ("messages choices", "response", "output"),
        f"({_MESSAGES} != `null` && {_RESPONSE}.choices != `null`) || ({_RESPONSE}.output[].type"
        f" && !({_RESPONSE}.output[?type=='file_search_call']))", **_RESPONSES,
        advice="no documents, file search, citations, tool messages or passages in a prompt",
    ),
    ProviderFormat(
        "langserve", ("output metadata",), f"metadata.run_id && from_json(output).not_null(context, source_documents)"
        f" != `null` && {_IS_CHAIN}", **_CHAIN,
        bias="contexts are there only if the chain returns them: a chain that returns its answer as text cannot be"
        " measured",
    ),
    ProviderFormat(
        "langchain", ("context", "source_documents", "output", "outputs"), _IS_CHAIN, **_CHAIN,
        advice="let the chain return its source documents",
    ),
)  # fmt: skip
