"""Which contexts a request had: from its retrievers and rerankers, else from tools, prompt variables or messages."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragwatch.formats.traces.documents import Document, DocumentList, considered, documents_in, returned
from ragwatch.formats.traces.messages import USER, messages_in, tool_responses, value_in, value_out
from ragwatch.formats.traces.prompt_contexts import blocks, of_messages, of_variables, variables
from ragwatch.formats.traces.span import decoded, first, inside, plain_text
from ragwatch.formats.traces.steps import Kind, Request, Step

Resolve = Callable[[Sequence[str]], Mapping[str, str]]
"""Returns texts by id, of the ids that it knows."""
_SEARCH = re.compile(r"(?i)retriev|search|knowledge|lookup|look_up|rag(?![a-z])|fetch_?doc|vector|similar")
_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
_RETURNED = ("context", "contexts", "source_documents", "sourceDocuments", "documents", "source_nodes",
             "retrieved_contexts", "retrieved_documents")  # fmt: skip
MAX_CONTEXTS = 1_000


@dataclass(slots=True)
class Contexts:
    """The contexts of a request."""

    documents: list[Document] = field(default_factory=list)  # in rank order, with text, none twice
    steps: list[Step] = field(default_factory=list)  # the spans that they come from
    # What retrievers returned of which documents are known to be missing
    lost: list[DocumentList] = field(default_factory=list)
    textless: int = 0  # how many documents have no text anywhere
    retrieved: bool = False  # whether anything was retrieved, as far as the spans say


class _Entry(NamedTuple):
    """What one retriever or reranker returned."""

    step: Step
    documents: tuple[Document, ...]


def contexts_of(request: Request, answering: Step | None, resolve: Resolve | None) -> Contexts:
    """Return the contexts from which a call of a model has answered."""
    result = Contexts()
    until = None if answering is None else answering.span.end
    entries = _entries(request, until, result)
    documents = [document for entry in entries for document in _named(entry.documents, entry.step.span.name)]
    result.retrieved = bool(entries)
    result.steps = [entry.step for entry in entries]
    if resolve is not None and (ids := [one.id for one in documents if one.text is None and one.id]):
        texts = resolve(list(dict.fromkeys(ids)))
        documents = [one._replace(text=texts.get(one.id or "")) if one.text is None else one for one in documents]
    lacking = sum(document.text is None for document in documents)
    if entries and not lacking:
        result.documents = _distinct(documents)
        return result
    if not entries and len(result.lost) == 1:
        whole = _whole_in_prompt(request, answering, result.lost[0])
        if whole is not None:
            result.lost, result.documents, result.retrieved = [], _distinct(whole), True
            return result
    if not entries and not result.lost:
        if tools := _entries_of_tools(request, answering):
            result.documents = _distinct([document for entry in tools for document in entry.documents])
            result.steps, result.retrieved = [entry.step for entry in tools], True
            return result
        if returned_too := _chain_documents(request):
            result.documents, result.retrieved = _distinct(returned_too), True
            return result
    from_prompt = _from_tools(entries) or _from_prompt(request, answering, len(documents))
    if from_prompt is not None:
        result.retrieved = True
        result.documents = _distinct(_with_ids(from_prompt, documents))
    else:
        result.textless = lacking
    return result


def _entries(request: Request, until: int | None, result: Contexts) -> list[_Entry]:
    """What retrievers returned before the answer, with rerankers in place of what they have reranked."""
    retrievals = request.of_kind(Kind.RETRIEVER, Kind.RERANKER)
    entries: list[_Entry] = []
    for step in retrievals:
        if step.retrieval is not None or (until is not None and step.span.start > until):
            continue
        entry = _entry(step, retrievals, result)
        if entry is None:
            continue
        if step.kind is Kind.RERANKER:
            entry = _with_texts(entry, entries)
            given = {_identity(document) for document in (*considered(step.span), *entry.documents)}
            if all(document.text for document in entry.documents):  # what it was given is not needed
                result.lost = [one for one in result.lost if given.isdisjoint(map(_identity, one.kept.values()))]
            others = [one for one in entries if given.isdisjoint(map(_identity, one.documents))]
            # Where no document says what it was given, it was given all.
            entries = others if len(others) < len(entries) or not entry.documents else []
        entries.append(entry)
    return entries


def _entry(step: Step, retrievals: Sequence[Step], result: Contexts) -> _Entry | None:
    """What a retriever returned: what it says itself or, if that is nothing or has no text, the retrievers inside."""
    own = returned(step.span)
    if own.problem is not None:
        result.lost.append(own)
        return None
    if own.documents and all(document.text for document in own.documents):
        return _Entry(step, own.documents)
    inside: list[Document] = []
    for inner in retrievals:
        documents = returned(inner.span).documents if inner.retrieval is step else None
        if documents and all(document.text for document in documents):
            inside += _named(documents, inner.span.name)
    if inside:
        texts = {document.id: document.text for document in inside if document.id}
        if own.documents and all(document.id in texts for document in own.documents):
            return _Entry(step, tuple(one._replace(text=texts[one.id or ""]) for one in own.documents))
        return _Entry(step, tuple(_distinct(inside)))
    return None if own.documents is None else _Entry(step, own.documents)


def _with_texts(reranked: _Entry, entries: Sequence[_Entry]) -> _Entry:
    """What a reranker returned, with the names of the retrievers before it, and their texts where it says ids only."""
    known = {document.id: document for entry in entries for document in entry.documents if document.id}
    steps = {_identity(document): entry.step.span.name for entry in entries for document in entry.documents}
    documents = (
        document._replace(text=known[document.id].text) if document.text is None and document.id in known else document
        for document in reranked.documents
    )
    return _Entry(reranked.step, tuple(one._replace(step=steps.get(_identity(one))) for one in documents))


def _identity(document: Document) -> str:
    return document.text.strip() if document.text else f"\x00{document.id}"


def _with_ids(from_prompt: Sequence[Document], documents: Sequence[Document]) -> list[Document]:
    """Contexts of a prompt with the ids and scores of the documents, if there are as many."""
    if len(from_prompt) != len(documents):
        return list(from_prompt)
    return [
        Document(one.text, other.id or one.id, other.score, other.step, other.updated_at)
        for one, other in zip(from_prompt, documents, strict=True)
    ]


def _distinct(documents: Sequence[Document]) -> list[Document]:
    """Documents with text, each once, at its first rank."""
    kept: dict[str, Document] = {}
    for document in documents:
        if key := (document.text or "").strip():
            known = kept.setdefault(key, document)
            if known.id is None and document.id is not None:
                kept[key] = known._replace(id=document.id)
    return list(kept.values())[:MAX_CONTEXTS]


def _entries_of_tools(request: Request, answering: Step | None) -> list[_Entry]:
    """What tools returned before the answer, as their spans say it, else as the messages of the model do."""
    until = None if answering is None else answering.span.end
    entries = []
    around = () if answering is None else answering.callers()
    for step in request.of_kind(Kind.TOOL, Kind.CHAIN):
        if step.tool is None and step not in around and (until is None or step.span.start <= until):
            name = str(first(step.span.attributes, _TOOL_NAMES) or step.span.name)
            value = decoded(value_out(step.span))
            searches = step.kind is Kind.TOOL or (isinstance(value, (list, dict)) and _SEARCH.search(name))
            if searches and (documents := _of_tool(name, value)):
                entries.append(_Entry(step, _named(documents, name)))
    for step in () if answering is None else (answering, *reversed(answering.callers())):
        if not entries:
            returned_by = [(name, _of_tool(name, value)) for name, value in tool_responses(step.span)]
            entries = [_Entry(step, _named(some, name or step.span.name)) for name, some in returned_by if some]
    return entries


def _of_tool(name: str, value: object) -> tuple[Document, ...]:
    """Documents with texts that a tool returned: described ones or, if it searches by its name, any text."""
    searches = _SEARCH.search(name) is not None
    documents: tuple[Document, ...] = ()
    if isinstance(value, (list, dict)):
        documents = documents_in(value) or ()
        is_described = all(one.text is not None and (one.id or one.score) is not None for one in documents)
        if not searches and not is_described:  # any other record with a text
            documents = ()
    elif isinstance(value, str) and searches and value.strip():
        documents = of_messages([value]) or (Document(value),)
    return tuple(document for document in documents if document.text)


def _named(documents: Sequence[Document], step: str) -> tuple[Document, ...]:
    """Documents with the name of the step that has retrieved them, if they have none yet."""
    return tuple(one if one.step else one._replace(step=step) for one in documents)


def _chain_documents(request: Request) -> tuple[Document, ...]:
    """Documents that a chain returned beside its answer, of the outermost chain that did; empty without any."""
    for step in request.of_kind(Kind.CHAIN):
        documents = documents_in(inside(value_out(step.span), _RETURNED)) or ()
        if documents and all(document.text for document in documents):
            return documents
    return ()


def _from_tools(entries: Sequence[_Entry]) -> tuple[Document, ...] | None:
    """What the tools returned that the retrievers are a part of; None if a retriever without texts is part of none."""
    documents: list[Document] = []
    for entry in entries:
        if all(document.text for document in entry.documents):
            documents += entry.documents
            continue
        text = None if entry.step.tool is None else plain_text(value_out(entry.step.tool.span))
        if text is None:
            return None
        documents += _with_ids([Document(part) for part in blocks(text, len(entry.documents))], entry.documents)
    return tuple(documents) or None


def _whole_in_prompt(request: Request, answering: Step | None, lost: DocumentList) -> list[Document] | None:
    """Contexts of a prompt that are all of an incomplete list: as many, and the same where documents are left."""
    documents = _from_prompt(request, answering, lost.total) if lost.total or lost.torn else None
    if documents is not None and lost.torn:
        return list(documents)
    kept = {rank: one for rank, one in lost.kept.items() if one.text}
    if documents is None or len(documents) != lost.total or not kept:
        return None
    if any(_identity(documents[rank]) != _identity(one) for rank, one in kept.items()):
        return None
    return [lost.kept.get(rank, one)._replace(text=one.text) for rank, one in enumerate(documents)]


def _from_prompt(request: Request, answering: Step | None, count: int) -> tuple[Document, ...] | None:
    """Contexts in variables of the prompt, in arguments of chains around the answer, or in messages to the model."""
    near = [] if answering is None else [answering, *reversed(answering.callers())]
    prompts = [step for step in request.of_kind(Kind.PROMPT, Kind.LLM) if step is not answering]
    for step in (*near, *reversed(prompts)):
        if documents := of_variables(variables(step.span.attributes), count):
            return documents
    for step in near:
        value = value_in(step.span)
        if isinstance(value, dict) and (documents := of_variables(value, count)):
            return documents
    if answering is None:
        return None
    messages = messages_in(answering.span)
    last = max((index for index, one in enumerate(messages) if one.role == USER), default=len(messages))
    texts = [one.text for index, one in enumerate(messages) if one.text and (one.role != USER or index == last)]
    return of_messages(texts[::-1], count)
