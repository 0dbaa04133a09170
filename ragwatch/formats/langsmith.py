"""LangSmith: a run with its child runs, or the rows of an export joined by trace.

`{"id", "run_type", "inputs", "outputs", "start_time", "child_runs": [...]}`. In an export each run is a row; a source
of kind join with `by: trace_id` merges them.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.formats import fields
from ragwatch.formats.history import logged
from ragwatch.formats.shape import Record
from ragwatch.formats.traced_runs import (
    TracedRun,
    answer_of,
    contexts_of,
    documents_of,
    last_answer,
    question_of,
    root_of,
    text_of,
)

NAME = "langsmith"
KNOWN_BIAS = (
    "contexts are the documents of runs of type retriever, in the order of their start: documents that a compressor or"
    " reranker dropped outside of a retriever count as contexts too; traces may be sampled"
)
MAPPING = MappingProxyType(
    {
        "id": "trace_id || id",
        "at": "start_time",
        "question": "inputs.input || inputs.question || inputs.query",
        "contexts": "(outputs.context || outputs.source_documents || child_runs[?run_type=='retriever'].outputs"
        ".documents[])[].{id: id, text: page_content || kwargs.page_content}",
        "answer": "outputs.answer || outputs.output || outputs.result",
    }
)
_MAX_DEPTH = 32


def matches(record: Record) -> bool:
    """Return whether the record is a run."""
    return "run_type" in record and ("outputs" in record or "inputs" in record)


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    rows = record.get("parts")
    runs = [*_runs(rows if isinstance(rows, list) else [record], None, _MAX_DEPTH)]
    root = root_of(runs)
    if root is None:
        raise fields.missing("id", "is missing: no run has an id")
    answer = answer_of(root.output) or last_answer(runs, ("llm",))
    if answer is None:
        raise fields.missing("outputs", "contains no answer")
    contexts = contexts_of(runs, ("retriever",))
    if contexts is None:
        contexts = documents_of(root.output)
    if contexts is None:
        raise fields.missing("child_runs[].outputs.documents", "is missing: no retriever returned documents")
    question = question_of(root.input)
    inputs = root.input if isinstance(root.input, dict) else record
    return fields.assemble(
        {"id": record.get("trace_id") or root.id, "at": root.start or None},
        fallback_id,
        question=question,
        contexts=contexts,
        answer=answer,
        reference=record.get("reference"),
        history=logged(inputs, question=question, answer=answer),
    )


def _last_parent(row: Record) -> str:
    """The run that a row of a bulk export is part of: the last of its parents."""
    parents = fields.embedded(row.get("parent_run_ids"))
    return parents[-1] if isinstance(parents, list) and parents and isinstance(parents[-1], str) else ""


def _runs(rows: object, parent: str | None, depth: int) -> Iterator[TracedRun]:
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        run = TracedRun(
            id=text_of(row, "id"),
            parent=text_of(row, "parent_run_id") or _last_parent(row) or parent,
            kind=text_of(row, "run_type").lower(),
            name=text_of(row, "name"),
            input=fields.embedded(row.get("inputs")),
            output=fields.embedded(row.get("outputs")),
            start=text_of(row, "start_time"),
        )
        yield run
        if depth:
            yield from _runs(fields.embedded(row.get("child_runs")), run.id, depth - 1)
