"""LangChain chains, as their results are logged.

| chain                   | question          | answer            | contexts                           |
|-------------------------|-------------------|-------------------|------------------------------------|
| retrieval chain         | input             | answer            | context[] of documents             |
| RetrievalQA             | query             | result            | source_documents[]                 |
| conversational          | question          | answer            | source_documents[]                 |
| LangServe and others    | input or inputs   | output or outputs | inside the output, as above        |

The history is `chat_history` or `history`, at the top level, in the input or in the output; where the question is a
conversation, its turns before. A document is `{"id","page_content","metadata"}`, or the constructor form
`{"lc":1,"kwargs":{...}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ragwatch.core.sample import NO_METADATA, Context, Sample, Turn
from ragwatch.formats import fields
from ragwatch.formats.history import before_question, logged
from ragwatch.formats.messages import question_text
from ragwatch.formats.shape import Record

NAME = "langchain"
KNOWN_BIAS = ""
MAPPING = MappingProxyType(
    {
        "id": "id || run_id || metadata.run_id",
        "question": "input.input || input.question || input.query || input || query || question",
        "contexts": "(context || source_documents || output.context || output.source_documents)[]"
        ".{id: kwargs.id || id, text: page_content || kwargs.page_content,"
        " score: metadata.score || metadata.relevance_score || kwargs.metadata.score}",
        "answer": "answer || result || output.answer || output.result || output.output",
        "history": "chat_history || history || input.chat_history || output.chat_history",
    }
)
_QUESTION_KEYS = ("input", "query", "question")
_ANSWER_KEYS = ("answer", "result", "output")
_CONTEXT_KEYS = ("context", "source_documents", "documents")
_SCORE_KEYS = ("score", "relevance_score")


def matches(record: Record) -> bool:
    """Return whether the record has an answer next to documents, at the top level or inside the output."""
    if "run_type" in record:
        return False
    _, output = _output(record)
    details = record.get("metadata")
    if output is not record and "output" in record and isinstance(details, dict) and "run_id" in details:
        return False  # LangServe
    return has_documents(output)


def has_documents(output: Record) -> bool:
    """Return whether a chain returned an answer and documents."""
    has_answer = any(key in output for key in _ANSWER_KEYS)
    return has_answer and any(key in output for key in ("context", "source_documents"))


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    path, output = _output(record)
    context_key, documents = fields.first(output, _CONTEXT_KEYS)
    if documents is None:
        raise fields.missing(f"{path}context", "is missing: let the chain return its source documents")
    answer_key, answer = fields.first(output, _ANSWER_KEYS)
    if answer is None:
        raise fields.missing(f"{path}answer")
    answer = fields.text(answer, f"{path}{answer_key}")
    question = _question(record) or _question(output)
    details = record.get("metadata")
    return fields.assemble(
        record,
        fallback_id,
        question=question,
        contexts=_contexts(documents, f"{path}{context_key}"),
        answer=answer,
        reference=record.get("reference"),
        inner=details if isinstance(details, dict) else NO_METADATA,
        history=_history(record, output, question, answer),
    )


def _output(record: Record) -> tuple[str, Record]:
    for key in ("output", "outputs"):
        output = fields.embedded(record.get(key))
        if isinstance(output, dict):
            return f"{key}.", output
    return "", record


def _question(record: Record) -> str | None:
    return question_text(_asked(_input(record)))


def _asked(inputs: object) -> object:
    """The question or the conversation in an input, which may be one of its fields."""
    asked = fields.first(inputs, (*_QUESTION_KEYS, "messages"))[1] if isinstance(inputs, dict) else inputs
    return inputs if asked is None else asked


def _input(record: Record) -> object:
    return fields.embedded(fields.first(record, ("inputs", *_QUESTION_KEYS))[1])


def _history(record: Record, output: Record, question: str | None, answer: str) -> tuple[Turn, ...]:
    inputs = _input(record)
    fields_of_input = inputs if isinstance(inputs, dict) else NO_METADATA
    return before_question(_asked(inputs)) or logged(record, fields_of_input, output, question=question, answer=answer)


def _contexts(documents: object, path: str) -> tuple[Context, ...]:
    if isinstance(documents, str):
        decoded = fields.embedded(documents)
        if isinstance(decoded, str):
            return (Context(documents),)  # the chain joined its documents before logging them
        documents = decoded
    if not isinstance(documents, list):
        raise fields.wrong(path, "a list", documents)
    return read_documents(documents, path)


def read_documents(items: Sequence[object], path: str) -> tuple[Context, ...]:
    """Return contexts from documents, in plain or in constructor form, or as JSON in a text."""
    return tuple(fields.context(_document(item), path, rank) for rank, item in enumerate(items))


def _document(item: object) -> object:
    decoded = fields.embedded(item)
    if not isinstance(decoded, dict):
        return item
    kwargs = decoded.get("kwargs")
    document = kwargs if decoded.get("lc") == 1 and isinstance(kwargs, dict) else decoded
    details = document.get("metadata")
    if document.get("score") is not None or not isinstance(details, dict):
        return document
    return {**document, "score": fields.first(details, _SCORE_KEYS)[1]}
