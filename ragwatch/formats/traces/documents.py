"""Documents that a retriever or reranker returned, from the attributes and events of its span.

Documents come as flattened lists (OpenInference), as JSON (OTel GenAI, Traceloop, outputs of functions), or as events
(clients of vector databases). Their order is their rank. Where two spellings in one span hold the same documents, ids,
scores and texts that one of them lacks are taken from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ragwatch.formats.traces.attributes import by_index, decoded, is_torn, listed, stripped
from ragwatch.formats.traces.document import Document, document, documents_in
from ragwatch.formats.traces.messages import unwrapped
from ragwatch.formats.traces.span import Span

_JSON_KEYS = (
    "gen_ai.retrieval.documents", "retrieval.documents", "gen_ai.retrieval.results", "gen_ai.memory.records",
    "reranker.output_documents", "db.vector.query.response.documents", "gen_ai.rerank.output_documents",
)  # fmt: skip
_VALUE_KEYS = ("output.value", "traceloop.entity.output", "gen_ai.task.output", "langfuse.observation.output",
               "mlflow.spanOutputs", "gen_ai.tool.call.result", "ai.toolCall.result", "tool_response",
               "haystack.component.output", "haystack.component.output_data", "gcp.vertex.agent.tool_response",
               "braintrust.output", "lmnr.span.output", "gen_ai.completion")  # fmt: skip
_INPUT_KEYS = ("reranker.input_documents",)

NONE_KEPT: Mapping[int, Document] = {}


class DocumentList(NamedTuple):
    """What a span returned.

    Attributes:
        documents: In rank order; None if the span does not say.
        problem: Why documents are missing at its beginning, end or middle; None if they are complete.
        total: How many there were, if some are missing and it is known all the same; else 0.
        kept: Those that are left, by rank, if some are missing.
        torn: Whether the problem is JSON that ends too early.
    """

    documents: tuple[Document, ...] | None
    problem: str | None = None
    total: int = 0
    kept: Mapping[int, Document] = NONE_KEPT
    torn: bool = False


def returned(span: Span) -> DocumentList:
    """Return the documents that a span returned."""
    problem = None
    flattened: dict[int, Document] = {}
    for prefix in ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents",
                   "db.vector.query.response.documents"):  # fmt: skip
        items = by_index(span.attributes, prefix)
        if items:
            flattened = {
                index: document(stripped(item, "document.")) or Document(None) for index, item in items.items()
            }
            if list(items) != list(range(len(items))):
                problem = f"{prefix} starts or continues at a later index than it should"
            break
    problem = problem or _dropped(span, flattened)
    if problem is not None and (whole := _whole(span, flattened)) is not None:
        return DocumentList(whole)
    nested = _from_json(span)
    if problem is None and not flattened and nested is None:
        problem = _torn(span)
        if problem is not None:
            return DocumentList((), problem, torn=True)
    if problem is not None:  # the last attributes are left where the oldest ones are dropped
        total = max(flattened) + 1 if flattened and span.dropped and _drops_oldest(span) else 0
        return DocumentList(tuple(flattened.values()), problem, total, flattened)
    return DocumentList(_merged(list(flattened.values()), nested or ()) if flattened else nested)


def _whole(span: Span, flattened: Mapping[int, Document]) -> tuple[Document, ...] | None:
    """Return the documents in one JSON attribute that holds all of them, whatever else was dropped; None without one.

    Attributes are dropped whole, so that JSON that is there has what was written into it. It counts if it has every
    text, and if every document that is known from elsewhere is in it at the same rank.
    """
    for key in (*_JSON_KEYS, *_VALUE_KEYS):
        value = decoded(span.attributes.get(key))
        documents = documents_in(unwrapped(value)) if isinstance(value, (list, dict)) else None
        if (
            documents
            and all(one.text for one in documents)
            and all(index < len(documents) and _agree(one, documents[index]) for index, one in flattened.items())
        ):
            known = [flattened.get(index, one) for index, one in enumerate(documents)]
            return _merged(known, documents)
    return None


def _dropped(span: Span, documents: Mapping[int, Document]) -> str | None:
    """Return whether the SDK has dropped attributes that may have been documents.

    The SDK of Python drops the oldest attributes: documents are complete if the first one and its text are there. Other
    SDKs drop the newest.
    """
    if not span.dropped:
        return None
    if _drops_oldest(span) and 0 in documents and documents[0].text is not None:
        return None
    return f"the SDK has dropped {span.dropped} attributes of the span {span.name!r}"


def _drops_oldest(span: Span) -> bool:
    return span.resource.get("telemetry.sdk.language") == "python"


def _torn(span: Span) -> str | None:
    for key in (*_JSON_KEYS, *_VALUE_KEYS):
        if is_torn(span.attributes.get(key)):
            return f"{key} of the span {span.name!r} is cut off"
    return None


def considered(span: Span) -> tuple[Document, ...]:
    """Return the documents that a reranker was given; empty if the span does not say."""
    for key in _INPUT_KEYS:
        items, _ = listed(span.attributes, key)
        if items:
            return tuple(document(stripped(item, "document.")) or Document(None) for item in items)
    return ()


def _from_json(span: Span) -> tuple[Document, ...] | None:
    """Return the documents in events and JSON attributes of a span; None if there are none."""
    of_events = [
        one for event in span.events if event.name == "db.query.result"
        for one in [document({key.removeprefix("db.query.result."): value for key, value in event.attributes.items()})]
        if one is not None
    ]  # fmt: skip
    if of_events:
        return tuple(of_events)
    places = [
        (span.attributes, (*_JSON_KEYS, *_VALUE_KEYS)),
        *((event.attributes, _JSON_KEYS) for event in span.events),
    ]
    empty: tuple[Document, ...] | None = None
    for attributes, keys in places:
        for key in keys:
            value = attributes.get(key)
            documents = None if value is None else documents_in(unwrapped(decoded(value)))
            if documents:
                return documents
            empty = empty if documents is None else documents
    return empty


def _merged(documents: list[Document], others: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return documents, with what is unknown about them from others: by text, by id, or by rank if neither differs."""
    if len(documents) != len(others):
        return tuple(documents)
    merged = []
    for one, other in zip(documents, others, strict=True):
        if _agree(one, other):
            merged.append(Document(one.text or other.text, one.id or other.id,
                                   other.score if one.score is None else one.score,
                                   updated_at=one.updated_at or other.updated_at))  # fmt: skip
        else:
            merged.append(one)
    return tuple(merged)


def _agree(one: Document, other: Document) -> bool:
    """Whether two may be the same document: neither text nor id differs, where both are known."""
    same_text = one.text is None or other.text is None or one.text.strip() == other.text.strip()
    return same_text and (one.id is None or other.id is None or one.id == other.id)
