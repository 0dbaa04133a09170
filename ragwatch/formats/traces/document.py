"""Documents in a JSON value, as retrievers, clients of vector databases and libraries write them.

An object is a document if it has a text, an id or a score under a usual name, in itself, in the object that holds the
document, or in its metadata.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from ragwatch.formats.fields import DATE_KEYS, logged_date
from ragwatch.formats.traces.attributes import decoded, inside, is_repr, plain_text

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
    """Return the document that a JSON value is; None if it is none.

    >>> document({"node": {"id_": "n1", "text": "Paris"}, "score": 1.0})
    Document(text='Paris', id='n1', score=1.0, step=None, updated_at=None)
    """
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
    inner = _object_in(item, plan.inner)
    inner_plan = _plan_of(inner) if inner else plan
    details = _object_in(item, plan.details) or (_object_in(inner, inner_plan.details) if inner else inner)
    text, name, score = _parts(item, plan, None, None, None)
    if inner and (text is None or name is None or score is None):
        text, name, score = _parts(inner, inner_plan, text, name, score)
    details_plan = _plan_of(details) if details else plan
    if details and (text is None or name is None or score is None):
        text, name, score = _parts(details, details_plan, text, name, score)
    if plan.has_place:
        name = _place(item) or name
    if name is None and details:
        name = _place(details)
    if text is None and score is not None:
        text = _prose(item)
    date = _date((item, plan), (inner, inner_plan), (details, details_plan))
    is_known = plan.is_known or text is not None or name is not None
    return Document(text, name, score, updated_at=date) if is_known else None


class _Plan(NamedTuple):
    """Which keys of an object may hold what, the likeliest first."""

    text: tuple[str, ...]
    id: tuple[str, ...]
    score: tuple[str, ...]
    inner: tuple[str, ...]
    details: tuple[str, ...]
    has_place: bool  # it may have an address
    is_known: bool  # it is a document because of its keys
    is_dated: bool


_LISTED = frozenset({*TEXT_KEYS, *ID_KEYS, *SCORE_KEYS, *_INNER_KEYS, *_DETAILS_KEYS, *_PLACES, *DATE_KEYS})


def _plan_of(item: Mapping[str, object]) -> _Plan:
    return _plan(tuple([key for key in item if key in _LISTED]))  # the documents of a log have the same keys


@lru_cache(maxsize=1024)
def _plan(keys: tuple[str, ...]) -> _Plan:
    tables = (TEXT_KEYS, ID_KEYS, SCORE_KEYS, _INNER_KEYS, _DETAILS_KEYS)
    text, name, score, inner, details = (tuple(key for key in table if key in keys) for table in tables)
    return _Plan(
        *(text, name, score, inner, details),
        has_place=not _PLACES.isdisjoint(keys),
        is_known=bool(name or score),
        is_dated=not set(keys).isdisjoint(DATE_KEYS),
    )


def _parts(
    place: Mapping[str, object], plan: _Plan, text: str | None, name: str | None, score: float | None
) -> tuple[str | None, str | None, float | None]:
    """Text, id and score, of which those that are unknown are taken from an object."""
    for key in plan.text if text is None else ():
        text = _text(place[key])
        if text is not None:
            break
    for key in plan.id if name is None else ():
        name = _identity(place[key])
        if name is not None:
            break
    for key in plan.score if score is None else ():
        score = _score(place[key])
        if score is not None:
            break
    return text, name, score


def _date(*places: tuple[Mapping[str, object], _Plan]) -> object:
    """The first date of a document in some objects; None without one."""
    dates = (logged_date(place)[1] for place, plan in places if plan.is_dated)
    return next((date for date in dates if date is not None), None)


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
    """Return the id and score of a document that Python has printed; its text only where it is not shortened."""
    page = _PAGE.search(text)
    name = _PRINTED_ID.search(text[:_MAX_PRINTED])
    score = _PRINTED_SCORE.search(text[-_MAX_PRINTED:])
    passage = None
    with suppress(SyntaxError, ValueError):
        passage = None if page is None else str(ast.literal_eval(page[1]))
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
    if value is None or type(value) is float:
        return value if value is not None and abs(value) <= _MAX_SCORE else None
    if isinstance(value, str):
        try:
            value = json.loads(value) if len(value) < 32 else None
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _MAX_SCORE:
        return None
    return float(value)
