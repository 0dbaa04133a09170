"""LangServe: `{"input", "output": {"answer", "context"}, "metadata": {"run_id"}}`, which `/invoke` gets and returns."""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.formats import fields, langchain
from ragwatch.formats.shape import Record

NAME = "langserve"
KNOWN_BIAS = (
    "contexts are there only if the chain returns them: a chain that returns its answer as text cannot be measured"
)
MAPPING = MappingProxyType(
    {
        "id": "id || metadata.run_id",
        "question": "input.input || input.question || input.query || input",
        "contexts": "(output.context || output.source_documents)[].{id: id, text: page_content, score: metadata.score}",
        "answer": "output.answer || output.result || output.output",
        "history": "input.chat_history",
    }
)


def matches(record: Record) -> bool:
    """Return whether the record has an output that a chain returns, and the id of its run in the metadata."""
    details, output = record.get("metadata"), fields.embedded(record.get("output"))
    if not isinstance(details, dict) or "run_id" not in details or not isinstance(output, dict):
        return False
    return langchain.has_documents(output)


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    details = record.get("metadata")
    if not isinstance(details, dict) or "run_id" not in details:
        raise fields.missing("metadata.run_id")
    return langchain.read(record, fallback_id)
