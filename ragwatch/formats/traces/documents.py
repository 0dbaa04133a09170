"""Documents that a retriever or reranker returned, from the attributes and events of its span.

Documents come as flattened lists (OpenInference), as JSON (OTel GenAI, Traceloop, outputs of functions), or as events
(clients of vector databases). Their order is their rank. Where two spellings in one span hold the same documents, ids,
scores and texts that one of them lacks are taken from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ragwatch.formats.traces.attributes import by_index, decoded, is_torn, stripped
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
_OUTPUT_KEYS = (*_JSON_KEYS, *_VALUE_KEYS)
_LIST_KEYS = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents",
              "db.vector.query.response.documents")  # fmt: skip
_NONE_KEPT: Mapping[int, Document] = {}


class DocumentList(NamedTuple):
    """What a span returned."""

    documents: tuple[Document, ...] | None  # in rank order; None if the span does not say
    problem: str | None = None  # why documents are missing at its beginning, end or middle; None if they are complete
    total: int = 0  # how many there were, if some are missing and it is known all the same; else 0
    kept: Mapping[int, Document] = _NONE_KEPT  # those that are left, by rank, if some are missing
    torn: bool = False  # whether the problem is JSON that ends too early


def returned(span: Span) -> DocumentList:
    """Return the documents that a span returned."""
    problem = None
    flattened: dict[int, Document] = {}
    for prefix in _LIST_KEYS:
        if flattened := _flattened(span, prefix):
            if list(flattened) != list(range(len(flattened))):
                problem = f"{prefix} starts or continues at a later index than it should"
            break
    problem = problem or _dropped(span, flattened)
    if problem is not None and (whole := _whole(span, flattened)) is not None:
        return DocumentList(whole)
    if problem is not None:  # the last attributes are left where the oldest ones are dropped
        total = max(flattened) + 1 if flattened and span.dropped and _drops_oldest(span) else 0
        return DocumentList(tuple(flattened.values()), problem, total, flattened)
    nested = _from_json(span)
    if flattened:
        return DocumentList(_merged(list(flattened.values()), nested or ()))
    torn = [key for key in _OUTPUT_KEYS if is_torn(span.attributes.get(key))] if nested is None else []
    if torn:
        return DocumentList((), f"{torn[0]} of the span {span.name!r} is cut off", torn=True)
    return DocumentList(nested)


def _flattened(span: Span, prefix: str) -> dict[int, Document]:
    items = by_index(span.attributes, prefix).items()
    return {index: document(stripped(item, "document.")) or Document(None) for index, item in items}


def _whole(span: Span, flattened: Mapping[int, Document]) -> tuple[Document, ...] | None:
    """Return the documents in one JSON attribute that holds all of them, whatever else was dropped; None without one.

    Attributes are dropped whole, so that JSON that is there has what was written into it. It counts if it has every
    text, and if every document that is known from elsewhere is in it at the same rank.
    """
    for key in _OUTPUT_KEYS:
        value = decoded(span.attributes.get(key))
        documents = documents_in(unwrapped(value)) if isinstance(value, (list, dict)) else None
        if (
            documents
            and all(one.text for one in documents)
            and all(index < len(documents) and _agree(one, documents[index]) for index, one in flattened.items())
        ):
            return _merged([flattened.get(index, one) for index, one in enumerate(documents)], documents)
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


def considered(span: Span) -> tuple[Document, ...]:
    """Return the documents that a reranker was given; empty if the span does not say."""
    return tuple(_flattened(span, "reranker.input_documents").values())


def _from_json(span: Span) -> tuple[Document, ...] | None:
    """Return the documents in events and JSON attributes of a span; None if there are none."""
    of_events = [
        one for event in span.events if event.name == "db.query.result"
        for one in [document({key.removeprefix("db.query.result."): value for key, value in event.attributes.items()})]
        if one is not None
    ]  # fmt: skip
    if of_events:
        return tuple(of_events)
    places = [(span.attributes, _OUTPUT_KEYS), *((event.attributes, _JSON_KEYS) for event in span.events)]
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
    return tuple(map(_completed, documents, others))


def _completed(one: Document, other: Document) -> Document:
    if not _agree(one, other):
        return one
    score = other.score if one.score is None else one.score
    return Document(one.text or other.text, one.id or other.id, score, updated_at=one.updated_at or other.updated_at)


def _agree(one: Document, other: Document) -> bool:
    """Whether two may be the same document: neither text nor id differs, where both are known."""
    same_text = one.text is None or other.text is None or one.text.strip() == other.text.strip()
    return same_text and (one.id is None or other.id is None or one.id == other.id)
