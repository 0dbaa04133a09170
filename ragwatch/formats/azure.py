"""Azure OpenAI on your data: chat completions whose message has a `context` with citations.

The contexts are `all_retrieved_documents` that were not filtered out, where the request asked for them
(`include_contexts`), else the citations.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields, openai
from ragwatch.formats.shape import Record

NAME = "azure"
KNOWN_BIAS = (
    "citations are what was left after Azure's own filter (strictness, topNDocuments): what it retrieved and dropped is"
    " unknown, so context precision is too high; set include_contexts to all_retrieved_documents to log it"
)
_MESSAGE = "(response.choices || choices)[0].message"
MAPPING = MappingProxyType(
    {
        **{key: openai.MAPPING[key] for key in ("id", "at", "question", "answer", "history")},
        "contexts": f"({_MESSAGE}.context.all_retrieved_documents || {_MESSAGE}.context.citations)"
        "[].{id: chunk_id || id, text: content, score: score}",
    }
)


def matches(record: Record) -> bool:
    """Return whether there are messages, and a choice whose message has a context of Azure."""
    request, response = fields.part(record, "request"), fields.part(record, "response")
    return "messages" in request and _context(response) is not None


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    request, response = fields.part(record, "request"), fields.part(record, "response")
    context = _context(response)
    if context is None:
        raise fields.missing("choices[0].message.context.citations")
    plain = {key: value for key, value in request.items() if key not in openai.CONTEXT_KEYS}
    rest = {key: value for key, value in record.items() if key not in (*openai.CONTEXT_KEYS, "request", "response")}
    contexts = _contexts(context)
    sample = openai.read({**rest, "request": plain, "response": response, "contexts": []}, fallback_id)
    return sample._replace(contexts=contexts)


def _context(response: Record) -> dict[str, object] | None:
    """The context of the first choice, which may be JSON that was logged as text."""
    context = openai.added_context(response.get("choices"))
    return context if isinstance(context, dict) else None


def _contexts(context: dict[str, object]) -> tuple[Context, ...]:
    retrieved = context.get("all_retrieved_documents")
    if isinstance(retrieved, list) and retrieved:
        sent = [item for item in retrieved if not (isinstance(item, dict) and item.get("filter_reason"))]
        return fields.contexts([_named(item) for item in sent], "choices[0].message.context.all_retrieved_documents")
    citations = context.get("citations")
    if not isinstance(citations, list):
        raise fields.wrong("choices[0].message.context.citations", "a list", citations)
    return fields.contexts([_named(item) for item in citations], "choices[0].message.context.citations")


def _named(item: object) -> object:
    """A citation with an id: the number of a chunk counts within its file only."""
    if not isinstance(item, dict):
        return item
    file, chunk = item.get("filepath") or item.get("url"), item.get("chunk_id")
    if isinstance(file, str) and isinstance(chunk, (str, int)):
        return {**item, "id": f"{file}#{chunk}"}
    return item
