"""ragwatch's own shape: `{"id","at","question","contexts","answer","route","metadata","reference"}`.

Only question (which may be null), contexts (which may be empty) and answer are required. A context is a text or
`{"id","text","score"}`. Rows of labelled sets are this shape too; a row that names its contexts by `context_refs`
is read without them until somebody has looked them up.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.formats import fields
from ragwatch.formats.shape import Record

NAME = "canonical"
MAPPING = MappingProxyType(
    {
        "id": "id || request_id || run_id",
        "at": "at || timestamp || ts || created_at || created",
        "question": "question",
        "contexts": "contexts",
        "answer": "answer",
        "route": "route",
        "trace_id": "trace_id",
        "metadata": "metadata",
        "reference": "reference",
    }
)


def matches(record: Record) -> bool:
    """All three required keys are there."""
    return "answer" in record and "question" in record and ("contexts" in record or "context_refs" in record)


def read(record: Record, fallback_id: str) -> Sample:
    """The sample in a record of this shape.

    >>> read({"question": "why?", "contexts": ["because"], "answer": "so"}, "log:1").id
    'log:1'
    """
    found = record.get("contexts")
    if found is None and ("contexts" not in record):
        found = [] if "context_refs" in record else fields.required(record, "contexts")
    question = fields.required(record, "question")
    if type(question) is not str:  # looked at here, because this is read for every request
        question = fields.optional_text(question, "question")
    contexts = fields.contexts(found, "contexts")
    answer = fields.required(record, "answer")
    return fields.assemble(
        record,
        fallback_id,
        question=question,
        contexts=contexts,
        answer=answer if type(answer) is str else fields.text(answer, "answer"),
        reference=record.get("reference"),
    )
