"""Documents in a JSON value, and those that a retriever or reranker returned, from its span.

An object is a document if it has a text, an id or a score under a usual name, in itself, in the object that holds the
document, or in its metadata. In a span, documents come as flattened lists (OpenInference), as JSON (OTel GenAI,
Traceloop, outputs of functions), or as events (clients of vector databases). Their order is their rank. Where two
spellings in one span hold the same documents, ids, scores and texts that one lacks are taken from the other.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ragwatch.formats.fields import DATE_KEYS, logged_date
from ragwatch.formats.traces.messages import unwrapped
from ragwatch.formats.traces.span import Span, by_index, decoded, inside, is_repr, is_torn, plain_text, stripped

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
             "output", "outputs", "result", "response", "value", "citations")  # fmt: skip
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
_INNER_KEYS = ("node", "document", "kwargs", "payload", "_source", "item", "doc", "data", "init_parameters")
_DETAILS_KEYS = ("metadata", "meta", "payload")
_PLACES = frozenset({"filepath", "url", "location"})
_MAX_DEPTH = 6
_MIN_WORDS = 3
_PRINTED_ID = re.compile(r"\bid_?=['\"]?([^,)'\"\s]{1,200})")
_PRINTED_SCORE = re.compile(r"\bscore[=:] ?(-?[0-9][0-9.e-]{0,30})")
_PAGE = re.compile(r"(?:^|[(,] ?)page_content=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_MAX_PRINTED = 400
_MAX_SCORE = 1e300
_Value = TypeVar("_Value")


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
        context: dict[str, object] = {"id": self.id, "text": self.text, "score": self.score}
        if self.step is not None:
            context["step"] = self.step
        if self.updated_at is not None:
            context["updated_at"] = self.updated_at
        return context


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
        if len(value) == 1 and isinstance(decoded(value[0]), list):
            return documents_in(value[0], depth - 1)
        documents = [document(decoded(item)) for item in value]
        return tuple(one or Document(None) for one in documents) if any(documents) or not value else None
    if not isinstance(value, dict):
        return None
    parallel = _parallel(value)
    if parallel is not None:
        return parallel
    empty: tuple[Document, ...] | None = None
    for key in LIST_KEYS:
        part = decoded(value[key]) if key in value else None
        if isinstance(part, (list, dict)):
            held = documents_in(part, depth - 1)
            if held:
                return held
            empty = empty if held is None else held
    if empty is None and len(value) == 1:
        (only,) = value.values()
        return documents_in(only, depth - 1) if isinstance(decoded(only), (list, dict)) else None
    return empty


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
    """Return the document that a JSON value is; None if it is none."""
    if isinstance(item, str):
        if item.startswith("page_content=") or is_repr(item):
            return _printed(item)
        return Document(item) if item.strip() else None
    if isinstance(item, list) and item and isinstance(decoded(item[0]), dict):  # (document, score), as pairs
        pair = document(decoded(item[0]))
        return pair._replace(score=pair.score or _score(item[1])) if pair and len(item) == 2 else pair
    if not isinstance(item, dict):
        return None
    plan = _plan_of(item)
    places: list[tuple[Mapping[str, object], _Plan]] = [(item, plan)]
    details = _object_in(item, plan.details)
    if inner := _object_in(item, plan.inner):
        places.append((inner, inner_plan := _plan_of(inner)))
        details = details or _object_in(inner, inner_plan.details)
    if details:
        places.append((details, _plan_of(details)))
    text, name, score, date = None, None, None, None
    for place, keys in places:
        text = _first(_text, place, keys.text) if text is None else text
        name = _first(_identity, place, keys.id) if name is None else name
        score = _first(_score, place, keys.score) if score is None else score
        date = logged_date(place)[1] if date is None and keys.is_dated else date
    name = _place(item) or name or _place(details)
    if text is None and score is not None:
        text = _prose(item)
    is_known = text is not None or name is not None or plan.id or plan.score
    return Document(text, name, score, updated_at=date) if is_known else None


class _Plan(NamedTuple):
    """Which keys of an object may hold what, the likeliest first."""

    text: tuple[str, ...]
    id: tuple[str, ...]
    score: tuple[str, ...]
    inner: tuple[str, ...]
    details: tuple[str, ...]
    is_dated: bool


_LISTED = frozenset({*TEXT_KEYS, *ID_KEYS, *SCORE_KEYS, *_INNER_KEYS, *_DETAILS_KEYS, *DATE_KEYS})


def _plan_of(item: Mapping[str, object]) -> _Plan:
    return _plan(tuple([key for key in item if key in _LISTED]))  # the documents of a log have the same keys


@lru_cache(maxsize=1024)
def _plan(keys: tuple[str, ...]) -> _Plan:
    tables = (TEXT_KEYS, ID_KEYS, SCORE_KEYS, _INNER_KEYS, _DETAILS_KEYS)
    text, name, score, inner, details = (tuple(key for key in table if key in keys) for table in tables)
    return _Plan(text, name, score, inner, details, is_dated=not set(keys).isdisjoint(DATE_KEYS))


def _first(read: Callable[[object], _Value | None], place: Mapping[str, object], keys: Sequence[str]) -> _Value | None:
    for key in keys:
        if (value := read(place[key])) is not None:
            return value
    return None


def _object_in(item: Mapping[str, object], keys: Sequence[str]) -> dict[str, object]:
    """The first object under some keys; empty without one."""
    for key in keys:
        part = decoded(item[key])
        if isinstance(part, dict):
            return part
    return {}


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
    texts = [text for value in item.values() if (text := plain_text(value)) and len(text.split()) >= _MIN_WORDS]
    return max(texts, key=len, default=None)


def _printed(text: str) -> Document | None:
    """The id and score of a document that Python has printed; its text only where it is not shortened."""
    page, name = _PAGE.search(text), _PRINTED_ID.search(text[:_MAX_PRINTED])
    score = _PRINTED_SCORE.search(text[-_MAX_PRINTED:])
    passage = None
    with suppress(SyntaxError, ValueError):
        passage = str(ast.literal_eval(page[1])) if page else None
    printed = Document(passage, name[1] if name else None, _score(score[1]) if score else None)
    return printed if page or name else None


def _text(value: object) -> str | None:
    if isinstance(value, dict):
        value = inside(value, ("text", "content"))
    elif isinstance(value, list):
        parts = [inside(part, ("text", "content")) if isinstance(part, dict) else part for part in value]
        value = "".join(part for part in parts if isinstance(part, str))
    return plain_text(value)


def _identity(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _score(value: object) -> float | None:
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value) if len(value) < 32 else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _MAX_SCORE:
        return None
    return float(value)


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
    results = (
        stripped(event.attributes, "db.query.result.") for event in span.events if event.name == "db.query.result"
    )
    if of_events := tuple(one for one in map(document, results) if one is not None):
        return of_events
    places = [(span.attributes, _OUTPUT_KEYS), *((event.attributes, _JSON_KEYS) for event in span.events)]
    empty: tuple[Document, ...] | None = None
    for attributes, keys in places:
        for key in keys:
            documents = documents_in(unwrapped(decoded(attributes.get(key))))
            if documents:
                return documents
            empty = empty if documents is None else documents
    return empty


def _merged(documents: Sequence[Document], others: Sequence[Document]) -> tuple[Document, ...]:
    """Documents, with what is unknown about them from others of the same rank that may be the same."""
    if len(documents) != len(others):
        return tuple(documents)
    return tuple(
        Document(
            one.text or other.text,
            one.id or other.id,
            other.score if one.score is None else one.score,
            updated_at=one.updated_at or other.updated_at,
        )
        if _agree(one, other)
        else one
        for one, other in zip(documents, others, strict=True)
    )


def _agree(one: Document, other: Document) -> bool:
    """Whether two may be the same document: neither text nor id differs, where both are known."""
    same_text = one.text is None or other.text is None or one.text.strip() == other.text.strip()
    return same_text and (one.id is None or other.id is None or one.id == other.id)
