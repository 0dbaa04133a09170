"""Vertex AI and Gemini with grounding: `{"contents":[...],"candidates":[{"content","groundingMetadata"}]}`.

Keys are in camel or snake case; request and response are flat in one record, or under `request` and `response`. The
contexts are a field `documents` or `contexts` of the record, else the grounding chunks with a text.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample, Turn
from ragwatch.formats import fields
from ragwatch.formats.history import before_question
from ragwatch.formats.messages import content_text, question_text
from ragwatch.formats.shape import Record

NAME = "vertex"
KNOWN_BIAS = (
    "grounding chunks are the passages that support the answer with a confidence of 0.6 or more, not all that were"
    " retrieved: context precision and faithfulness are too high; log what was retrieved as documents to measure them"
)
MAPPING = MappingProxyType(
    {
        "id": "id || request_id || responseId || response_id || response.responseId",
        "question": "(request.contents || contents)[-1].parts[0].text",
        "contexts": "documents || contexts || (response.candidates || candidates)[0].groundingMetadata"
        ".groundingChunks[].retrievedContext.{id: uri, text: text}",
        "answer": "(response.candidates || candidates)[0].content.parts[0].text",
    }
)
_CONTEXT_KEYS = ("documents", "contexts", "context", "retrieved_contexts")


def matches(record: Record) -> bool:
    """Return whether the record has candidates with content."""
    candidates = fields.part(record, "response").get("candidates")
    return isinstance(candidates, list) and any(isinstance(item, dict) and "content" in item for item in candidates)


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    request, response = fields.part(record, "request"), fields.part(record, "response")
    candidates = fields.required(response, "candidates")
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    answer = _text(candidate.get("content")) if isinstance(candidate, dict) else None
    if not isinstance(candidate, dict) or answer is None:
        raise fields.missing("candidates[0].content.parts[].text", "contains no text")
    question, history = _asked(request.get("contents"))
    return fields.assemble(
        record,
        fallback_id,
        question=question,
        contexts=_contexts(record, request, candidate),
        answer=answer,
        reference=record.get("reference"),
        inner={"id": fields.first(response, ("responseId", "response_id"))[1]},
        history=history,
    )


def _text(content: object) -> str | None:
    parts = content.get("parts") if isinstance(content, dict) else content
    return content_text([part for part in parts if not _is_thought(part)] if isinstance(parts, list) else parts)


def _is_thought(part: object) -> bool:
    return isinstance(part, dict) and bool(part.get("thought"))


def _asked(contents: object) -> tuple[str | None, tuple[Turn, ...]]:
    """The question, and the turns before it."""
    if isinstance(contents, str):
        return contents, ()
    items = contents if isinstance(contents, list) else [contents]
    messages: list[dict[str, object]] = [
        {"role": item.get("role") or "user", "content": _text(item)} for item in items if isinstance(item, dict)
    ]
    return question_text(messages), before_question(messages)


def _contexts(record: Record, request: Record, candidate: Record) -> tuple[Context, ...]:
    for part in (record, request):
        key, passages = fields.first(part, _CONTEXT_KEYS)
        if passages is not None:
            return fields.contexts(passages, key)
    grounding = fields.first(candidate, ("groundingMetadata", "grounding_metadata"))[1]
    if not isinstance(grounding, dict):
        raise fields.missing("candidates[0].groundingMetadata", "is missing: the answer is not grounded")
    chunks = fields.first(grounding, ("groundingChunks", "grounding_chunks"))[1]
    passages = [passage for chunk in (chunks if isinstance(chunks, list) else ()) if (passage := _passage(chunk))]
    if chunks and not passages:
        raise fields.missing("groundingChunks[].retrievedContext.text", "is missing: chunks of web search have no text")
    return fields.without_repeats(fields.contexts(passages, "groundingChunks"))


def _passage(chunk: object) -> dict[str, object] | None:
    retrieved = fields.first(chunk, ("retrievedContext", "retrieved_context"))[1] if isinstance(chunk, dict) else None
    if not isinstance(retrieved, dict):
        return None
    inner = fields.first(retrieved, ("ragChunk", "rag_chunk"))[1]
    text = retrieved.get("text") or (inner.get("text") if isinstance(inner, dict) else None)
    return {"text": text, "id": retrieved.get("uri") or retrieved.get("title")} if isinstance(text, str) else None
