"""Langfuse: one trace with its observations, as the API returns it, or the rows of an export joined by trace.

`{"id", "input", "output", "observations": [{"id", "type", "parentObservationId", "input", "output", "startTime"}]}`. In
an export each observation is a row; a source of kind join with `by: trace_id` merges them. Keys are in camel or snake
case.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.formats import fields
from ragwatch.formats.shape import Record
from ragwatch.formats.traced_runs import (
    TracedRun,
    answer_of,
    contexts_of,
    last_answer,
    question_of,
    root_of,
    text_of,
)

NAME = "langfuse"
KNOWN_BIAS = (
    "contexts are those of observations of type RETRIEVER, or with retrieval in their name: a reranker that is traced"
    " as a plain span is not recognised, so that contexts may be more than the model was given; exports may be sampled"
)
MAPPING = MappingProxyType(
    {
        "id": "trace_id || id",
        "at": "timestamp || start_time || observations[0].startTime",
        "question": "from_json(input).question || from_json(input).query || from_json(input).input || input",
        "contexts": "from_json(observations[?type=='RETRIEVER'] | [0].output)"
        "[].{id: id, text: page_content || text || content}",
        "answer": "from_json(output).answer || from_json(output).output || output",
    }
)
_PARENT_KEYS = ("parentObservationId", "parent_observation_id")
_RETRIEVERS, _GENERATORS = ("retriever",), ("generation",)


def matches(record: Record) -> bool:
    """Return whether the record has observations, or is an observation."""
    rows = record.get("observations")
    if isinstance(rows, list):
        return any(isinstance(row, dict) and "type" in row for row in rows)
    return any(key in record for key in _PARENT_KEYS)


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    rows = record.get("observations", record.get("parts"))
    if not isinstance(rows, list):
        raise fields.missing("observations", "is missing: join the rows of an export, by: trace_id")
    runs = [_run(row) for row in rows if isinstance(row, dict)]
    is_trace = "observations" in record
    root = root_of(runs)
    asked, answered = (record.get("input"), record.get("output")) if is_trace else (None, None)
    if root is not None:
        asked, answered = asked or root.input, answered or root.output
    answer = answer_of(answered) or last_answer(runs, _GENERATORS)
    if answer is None:
        raise fields.missing("output", "contains no answer")
    contexts = contexts_of(runs, _RETRIEVERS)
    if contexts is None:
        raise fields.missing("observations[].output", "has no documents: no observation of type RETRIEVER returned any")
    start = record.get("timestamp") if is_trace else None
    envelope = {
        "id": record.get("trace_id") or record.get("traceId") or record.get("id"),
        "at": start or (root.start if root else None) or None,
        "metadata": fields.embedded(record.get("metadata")) if is_trace else None,
    }
    return fields.assemble(
        envelope,
        fallback_id,
        question=question_of(asked),
        contexts=contexts,
        answer=answer,
        reference=record.get("reference"),
    )


def _run(row: Record) -> TracedRun:
    return TracedRun(
        id=text_of(row, "id"),
        parent=text_of(row, *_PARENT_KEYS) or None,
        kind=text_of(row, "type").lower(),
        name=text_of(row, "name"),
        input=row.get("input"),
        output=row.get("output"),
        start=text_of(row, "startTime", "start_time"),
    )
