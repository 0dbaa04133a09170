"""Amazon Bedrock, RetrieveAndGenerate: `{"input", "output", "citations": [{"retrievedReferences": [...]}]}`.

Request and response are flat in one record, or under `request` and `response`. Where the results of Retrieve are logged
too, as `retrievalResults`, these are the contexts; else they are the references that the answer cites, each once.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields
from ragwatch.formats.shape import Record

NAME = "bedrock"
KNOWN_BIAS = (
    "only references that the answer cites are logged, so what was retrieved in vain is unknown: context precision and"
    " the use of contexts are too high; log the results of Retrieve as retrievalResults to measure them"
)
MAPPING = MappingProxyType(
    {
        "id": "id || request_id || sessionId || response.sessionId",
        "question": "input.text || request.input.text || question || query",
        "contexts": "(retrievalResults || response.retrievalResults || citations[].retrievedReferences[]"
        " || response.citations[].retrievedReferences[])"
        "[].{id: location.s3Location.uri, text: content.text, score: score}",
        "answer": "output.text || response.output.text",
    }
)


def matches(record: Record) -> bool:
    """Return whether the record has an output text next to citations or retrieval results."""
    response = fields.part(record, "response")
    output = response.get("output")
    return isinstance(output, dict) and "text" in output and ("citations" in response or "retrievalResults" in response)


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    request, response = fields.part(record, "request"), fields.part(record, "response")
    asked = fields.question(record) if request.get("input") is None else request["input"]
    output = fields.required(response, "output")
    if not isinstance(output, dict):
        raise fields.wrong("output", "an object", output)
    return fields.assemble(
        record,
        fallback_id,
        question=fields.optional_text(asked.get("text") if isinstance(asked, dict) else asked, "input.text"),
        contexts=_contexts(record, response),
        answer=fields.text(fields.required(output, "text", "output.text"), "output.text"),
        reference=record.get("reference"),
    )


def _contexts(record: Record, response: Record) -> tuple[Context, ...]:
    for part in (record, response):
        if isinstance(results := part.get("retrievalResults"), list):
            return _passages(results, "retrievalResults")
    citations = response.get("citations")
    if not isinstance(citations, list):
        raise fields.missing("citations")
    references = [
        reference
        for citation in citations
        if isinstance(citation, dict) and isinstance(citation.get("retrievedReferences"), list)
        for reference in citation["retrievedReferences"]
    ]
    return fields.without_repeats(_passages(references, "citations[].retrievedReferences"))


def _passages(items: list[object], path: str) -> tuple[Context, ...]:
    return tuple(fields.context(_flat(item), path, rank) for rank, item in enumerate(items))


def _flat(item: object) -> object:
    """A reference with text and id at its top level."""
    if not isinstance(item, dict):
        return item
    content, location = item.get("content"), item.get("location")
    flat = {**item, "content": None, **content} if isinstance(content, dict) else item
    places = location.values() if isinstance(location, dict) else ()
    names = [place.get("uri") or place.get("url") for place in places if isinstance(place, dict)]
    return {**flat, "id": next((name for name in names if name), item.get("id"))}
