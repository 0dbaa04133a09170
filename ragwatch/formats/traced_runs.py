"""Finds question, contexts and answer in the runs of one trace, as tracing services export them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from ragwatch.core.sample import Context, Role
from ragwatch.errors import FormatError
from ragwatch.formats import fields, langchain
from ragwatch.formats.messages import content_text, inner, question_text, said, speaker
from ragwatch.formats.shape import Record
from ragwatch.formats.times import epoch_seconds

_QUESTION_KEYS = ("input", "question", "query", "user_input", "prompt", "text")
_ANSWER_KEYS = ("answer", "output", "result", "response", "completion", "content", "text")
_MESSAGE_KEYS = ("messages", "choices", "generations", "message")
_DOCUMENT_KEYS = ("documents", "context", "source_documents", "contexts", "results", "output", "nodes")
_MAX_DEPTH = 4


class TracedRun(NamedTuple):
    """One run of a trace.

    Attributes:
        id: Its id.
        parent: Id of the run that it is part of.
        kind: Kind of the run, in lower case.
        name: Name of the run.
        input: What it was called with.
        output: What it returned.
        start: When it started, as it was logged; empty if that is unknown.
    """

    id: str
    parent: str | None
    kind: str
    name: str
    input: object
    output: object
    start: str


def root_of(runs: Sequence[TracedRun]) -> TracedRun | None:
    """Return the run that is part of no other one; of several the first."""
    ids = {run.id for run in runs}
    return next((run for run in in_order(runs) if run.parent not in ids), None)


def in_order(runs: Iterable[TracedRun]) -> list[TracedRun]:
    """Return runs in the order of their start."""
    return sorted(runs, key=lambda run: (_seconds(run.start), run.start, run.id))


def _seconds(start: str) -> float:
    """The time of a start; before all others if it is none."""
    try:
        return epoch_seconds(start, "start")
    except FormatError:
        return -math.inf


def question_of(value: object, depth: int = _MAX_DEPTH) -> str | None:
    """Return the question in the input of a run: text, messages, or one of the usual keys of an object."""
    value = fields.embedded(value)
    if not isinstance(value, dict) or not depth:
        return question_text(value)
    messages = value.get("messages")
    if isinstance(messages, list):
        batched = bool(messages) and isinstance(messages[-1], list) and said(messages[-1]) is None
        return question_text(messages[-1] if batched else messages)
    part = fields.first(value, _QUESTION_KEYS)[1]
    return question_text(value) if part is None else question_of(part, depth - 1)


def answer_of(value: object, depth: int = _MAX_DEPTH) -> str | None:
    """Return the answer in the output of a run: text, the last message of the assistant, or one of the usual keys."""
    value = fields.embedded(value)
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else None
    if isinstance(value, list):
        messages = [item for item in value if isinstance(item, dict)]
        answers = [message for message in messages if speaker(message) is Role.ASSISTANT] or messages
        return answer_of(answers[-1], depth - 1) if answers else content_text(value)
    if not isinstance(value, dict):
        return None
    key, part = fields.first(value, (*_ANSWER_KEYS, *_MESSAGE_KEYS))
    if part is None and inner(value) is not value:
        return answer_of(inner(value), depth - 1)
    if key == "content" and isinstance(part, list):
        return content_text(part)
    return None if part is None else answer_of(part, depth - 1)


def documents_of(value: object) -> tuple[Context, ...] | None:
    """Return the documents in the output of a retriever; None if it returned none that can be read."""
    value = fields.embedded(value)
    if isinstance(value, dict):
        value = fields.embedded(fields.first(value, _DOCUMENT_KEYS)[1])
    if not isinstance(value, list):
        return None
    try:
        return langchain.read_documents(value, "output")
    except FormatError:
        return None


def contexts_of(runs: Sequence[TracedRun], retrievers: Sequence[str]) -> tuple[Context, ...] | None:
    """Return the documents of the outermost retrievers, in the order of their start, each once; None without any.

    Args:
        runs: All runs of the trace.
        retrievers: Kinds of runs that retrieve. Without such runs, those named after retrieval count.
    """
    by_id = {run.id: run for run in runs}
    chosen = [run for run in runs if run.kind in retrievers] or [run for run in runs if "retriev" in run.name.lower()]
    read = {run.id: documents for run in chosen if (documents := documents_of(run.output)) is not None}
    outermost = [run for run in in_order(chosen) if run.id in read and not _is_inside(run, by_id, read)]
    if not outermost:
        return None
    return fields.without_repeats(context for run in outermost for context in read[run.id])


def _is_inside(run: TracedRun, by_id: Mapping[str, TracedRun], read: Container[str]) -> bool:
    """Whether a run is part of one that returned documents too."""
    passed = {run.id}
    parent = run.parent
    while parent is not None and parent not in passed:
        if parent in read:
            return True
        passed.add(parent)
        above = by_id.get(parent)
        parent = None if above is None else above.parent
    return False


def text_of(record: Record, *keys: str) -> str:
    """Return the first of some fields that holds a text or a number, as text; empty if none does."""
    value = fields.first(record, keys)[1]
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def last_answer(runs: Sequence[TracedRun], generators: Sequence[str]) -> str | None:
    """Return the answer of the last run that generates."""
    for run in reversed(in_order(run for run in runs if run.kind in generators)):
        answer = answer_of(run.output)
        if answer is not None:
            return answer
    return None
