"""Documents that a retriever or reranker returned, from the attributes and events of its span.

Documents come as flattened lists (OpenInference), as JSON (OTel GenAI, Traceloop, outputs of functions), or as events
(clients of vector databases). Their order is their rank. Where two spellings in one span hold the same documents, ids,
scores and texts that one of them lacks are taken from the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from ragwatch.formats.fields import logged_date
from ragwatch.formats.traces.attributes import by_index, decoded, inside, is_repr, is_torn, listed, plain_text, stripped
from ragwatch.formats.traces.messages import unwrapped
from ragwatch.formats.traces.span import Span

TEXT_KEYS = ("text", "content", "page_content", "pageContent", "chunk", "body", "document", "passage", "long_text",
             "snippet", "raw_text", "chunk_text", "text_resource")  # fmt: skip
ID_KEYS = (
    "id", "id_", "node_id", "chunk_id", "doc_id", "segment_id", "document_id", "documentId", "chunkId", "fileId",
    "uuid", "_id", "file_id", "pid", "record_id",
)  # fmt: skip
SCORE_KEYS = ("score", "relevance_score", "relevanceScore", "similarity", "similarity_score", "_score", "rerank_score")
LIST_KEYS = ("documents", "docs", "results", "nodes", "source_nodes", "sourceNodes", "source_documents", "passages",
             "contexts", "context", "chunks", "retrieved_contexts", "retrieved_documents", "matches", "hits",
             "sources", "points", "items", "search_results", "retrieval_results", "retrievalResults", "data",
             "output", "outputs", "result", "response", "value")  # fmt: skip


def _ranks(keys: Sequence[str]) -> Mapping[str, int]:
    return {key: rank for rank, key in enumerate(keys)}


_TEXT_RANKS, _ID_RANKS, _SCORE_RANKS = _ranks(TEXT_KEYS), _ranks(ID_KEYS), _ranks(SCORE_KEYS)
_INNER_RANKS = _ranks(("node", "document", "kwargs", "payload", "_source", "item", "doc", "data", "init_parameters"))
_PLACES = frozenset({"filepath", "url", "location"})
_METADATA_RANKS = _ranks(("metadata", "meta", "payload"))
_JSON_KEYS = (
    "gen_ai.retrieval.documents", "retrieval.documents", "gen_ai.retrieval.results", "gen_ai.memory.records",
    "reranker.output_documents", "db.vector.query.response.documents", "gen_ai.rerank.output_documents",
)  # fmt: skip
_VALUE_KEYS = ("output.value", "traceloop.entity.output", "gen_ai.task.output", "langfuse.observation.output",
               "mlflow.spanOutputs", "gen_ai.tool.call.result", "ai.toolCall.result", "tool_response",
               "haystack.component.output", "haystack.component.output_data", "gcp.vertex.agent.tool_response",
               "braintrust.output", "lmnr.span.output", "gen_ai.completion")  # fmt: skip
_INPUT_KEYS = ("reranker.input_documents",)
_MAX_DEPTH = 6
MIN_WORDS = 3
_PRINTED_ID = re.compile(r"\bid_?=['\"]?([^,)'\"\s]{1,200})")
_PRINTED_SCORE = re.compile(r"\bscore[=:] ?(-?[0-9][0-9.e-]{0,30})")
_MAX_PRINTED = 400


class Document(NamedTuple):
    """One document. Text and id may be unknown; `step` is the name of the step that has retrieved it.

    Its date, `updated_at`, is as it was logged.
    """

    text: str | None
    id: str | None = None
    score: float | None = None
    step: str | None = None
    updated_at: object = None

    def to_context(self) -> dict[str, object]:
        """Return the document as a context of the canonical format, without what is seldom known."""
        more = {"step": self.step, "updated_at": self.updated_at}
        return {"id": self.id, "text": self.text, "score": self.score} | {
            k: v for k, v in more.items() if v is not None
        }


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


def documents_in(value: object, depth: int = _MAX_DEPTH) -> tuple[Document, ...] | None:  # noqa: PLR0911 - one return for each spelling
    """Return the documents in a JSON value; None if it holds no list of documents.

    >>> documents_in({"documents": [{"page_content": "Paris", "metadata": {"score": 0.9}}], "count": 1})
    (Document(text='Paris', id=None, score=0.9, step=None, updated_at=None),)
    >>> documents_in(["<NodeWithScore(node=1)>"]), documents_in({"answer": 42}), documents_in([])
    (None, None, ())
    """
    value = decoded(value)
    if depth == 0:
        return None
    if isinstance(value, list):
        return _listed_documents(value, depth)
    if not isinstance(value, dict):
        return None
    parallel = _parallel(value)
    if parallel is not None:
        return parallel
    empty: tuple[Document, ...] | None = None
    for key in LIST_KEYS:
        part = decoded(value[key]) if key in value else None
        if isinstance(part, (list, dict)):
            documents = documents_in(part, depth - 1)
            if documents:
                return documents
            empty = empty if documents is None else documents
    if empty is None and len(value) == 1:
        (only,) = value.values()
        return documents_in(only, depth - 1) if isinstance(decoded(only), (list, dict)) else None
    return empty


def _listed_documents(value: list[object], depth: int) -> tuple[Document, ...] | None:
    if not value:
        return ()
    if len(value) == 1 and isinstance(decoded(value[0]), list):
        return documents_in(value[0], depth - 1)
    documents = [document(decoded(item)) for item in value]
    known = [one for one in documents if one is not None]
    return tuple(one or Document(None) for one in documents) if known else None


def _parallel(value: dict[str, object]) -> tuple[Document, ...] | None:
    """Return documents from lists of ids, texts and scores side by side, as clients of vector databases return them."""
    columns = []
    for keys in (("documents", "texts", "passages"), ("ids",), ("scores", "similarities")):
        column = inside(value, keys)
        if isinstance(column, list) and len(column) == 1 and isinstance(column[0], list):
            column = column[0]
        columns.append(column if isinstance(column, list) else [])
    texts, ids, scores = columns
    if not texts or len(ids) != len(texts) or not all(isinstance(text, str) for text in texts):
        return None
    scores = scores if len(scores) == len(texts) else [None] * len(texts)
    return tuple(
        Document(plain_text(text), _identity(name), _score(score))
        for text, name, score in zip(texts, ids, scores, strict=True)
    )


def document(item: object) -> Document | None:
    """Return the document that a JSON value is; None if it is none.

    >>> document({"node": {"id_": "n1", "text": "Paris"}, "score": 1.0})
    Document(text='Paris', id='n1', score=1.0, step=None, updated_at=None)
    """
    if isinstance(item, str):
        return _printed(item) if is_repr(item) else (Document(item) if item.strip() else None)
    if isinstance(item, list) and item and isinstance(decoded(item[0]), dict):  # (document, score), as pairs
        pair = document(decoded(item[0]))
        return pair._replace(score=pair.score or _score(item[1])) if pair and len(item) == 2 else pair
    if not isinstance(item, dict):
        return None
    inner = _object_in(item, _INNER_RANKS)
    details = _object_in(item, _METADATA_RANKS) or (_object_in(inner, _METADATA_RANKS) if inner else inner)
    places = [one for one in (item, inner, details) if one]
    text = next((known_text for place in places if (known_text := _text(place))), None)
    name = next((known_id for place in places if (known_id := _first_identity(place)) is not None), None)
    score = next((number for place in places if (number := _first_score(place)) is not None), None)
    name = _place(item) or name or (_place(details) if details else None)
    if text is None and score is not None:
        text = _prose(item)
    known = (
        text is not None
        or name is not None
        or bool(item.keys() & _ID_RANKS.keys() or item.keys() & _SCORE_RANKS.keys())
    )
    date = next((one for place in places if (one := logged_date(place)[1]) is not None), None)
    return Document(text, name, score, updated_at=date) if known else None


def _object_in(item: Mapping[str, object], ranks: Mapping[str, int]) -> dict[str, object]:
    """The first object under the keys of a table; empty without one."""
    return next((part for key in _known(item, ranks) if isinstance(part := decoded(item[key]), dict)), {})


def _place(details: Mapping[str, object]) -> str | None:
    """Return the address of a document of Bedrock: `{"location": {"s3Location": {"uri"}}}`; None without one.

    The number of a chunk of Azure counts within its file only.
    """
    if _PLACES.isdisjoint(details):
        return None
    file, chunk = details.get("filepath") or details.get("url"), details.get("chunk_id")
    if isinstance(file, str) and isinstance(chunk, (str, int)):
        return f"{file}#{chunk}"
    location = details.get("location")
    places = location.values() if isinstance(location, dict) else ()
    return next((name for one in places if (name := _identity(inside(one, ("uri", "url", "id")))) is not None), None)


def _prose(item: Mapping[str, object]) -> str | None:
    """Return the longest text of several words in an item whose fields have names of their own; None without one."""
    texts = [text for value in item.values() if (text := plain_text(value)) and len(text.split()) >= MIN_WORDS]
    return max(texts, key=len, default=None)


def _printed(text: str) -> Document | None:
    """Return the id and score of a document that Python has printed; its text may be shortened there."""
    name = _PRINTED_ID.search(text[:_MAX_PRINTED])
    score = _PRINTED_SCORE.search(text[-_MAX_PRINTED:])
    return Document(None, name[1], _score(score[1]) if score else None) if name else None


def _known(item: Mapping[str, object], ranks: Mapping[str, int]) -> Collection[str]:
    """The keys of an item that are in a table, the likeliest first. Items have few keys, and tables many."""
    known = item.keys() & ranks.keys()
    return sorted(known, key=ranks.__getitem__) if len(known) > 1 else known


def _text(item: Mapping[str, object]) -> str | None:
    for key in _known(item, _TEXT_RANKS):
        value = item[key]
        if isinstance(value, dict):
            value = inside(value, ("text", "content"))
        elif isinstance(value, list):
            parts = [inside(part, ("text", "content")) if isinstance(part, dict) else part for part in value]
            value = "".join(part for part in parts if isinstance(part, str))
        text = plain_text(value)
        if text is not None:
            return text
    return None


def _first_identity(item: Mapping[str, object]) -> str | None:
    return next((name for key in _known(item, _ID_RANKS) if (name := _identity(item[key])) is not None), None)


def _identity(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _first_score(item: Mapping[str, object]) -> float | None:
    return next((score for key in _known(item, _SCORE_RANKS) if (score := _score(item[key])) is not None), None)


def _score(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value) if len(value) < 32 else None
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300 or not isfinite(value):
        return None
    return float(value)


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
