"""Formats that are rows of data: keys that detect a record, an expression for each field, and the known bias.

Code and printed mapping come from the same row. To read another service, add a row here and a fixture to
`tests/data/formats`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from ragwatch.core.sample import RejectReason, Sample
from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.expressions import Predicate, predicate
from ragwatch.formats.shape import Record


class ProviderFormat:
    """The records of one service; see `shape.Format`.

    Args:
        name: Name in the configuration.
        keys: Sets of keys, separated by blanks; a record with all keys of one set may be of this format.
        where: JMESPath condition on it, for what keys do not say; empty for none.
        bias: What its records do not hold.
        mapping: An expression for each field.
    """

    def __init__(self, name: str, keys: Sequence[str], where: str = "", bias: str = "", **mapping: str) -> None:
        self.NAME = name
        self.KNOWN_BIAS = bias
        self.MAPPING: Mapping[str, str] = MappingProxyType(mapping)
        self._keys = tuple(tuple(some.split()) for some in keys)
        self._where = where

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

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record of this format."""
        try:
            return self._reader.read(record, fallback_id)
        except FormatError as error:
            expression = self.MAPPING.get(error.field)
            if error.reason != RejectReason.MISSING_FIELD or expression is None:
                raise
            raise fields.missing(error.field, f"is missing: nothing can be read at {expression}") from None

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
_COMMON = {
    "id": "id || request_id || run_id", "at": _AT, "route": "route", "metadata": "metadata", "trace_id": "trace_id",
    "reference": "reference",
}  # fmt: skip
_CITED = (
    "only references that the answer cites are logged, so what was retrieved in vain is unknown: context precision and"
    " the use of contexts are too high; log the results of Retrieve as retrievalResults to measure them"
)
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
)  # fmt: skip
