"""DeepEval test cases: `{"input","actual_output","retrieval_context","expected_output"}`, in snake or camel case."""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.formats import fields
from ragwatch.formats.shape import Record

NAME = "deepeval"
KNOWN_BIAS = ""
MAPPING = MappingProxyType(
    {
        "id": "id",
        "question": "input",
        "contexts": "retrieval_context || retrievalContext",
        "answer": "actual_output || actualOutput",
        "reference": "expected_output || expectedOutput",
    }
)


def matches(record: Record) -> bool:
    """Return whether DeepEval's key of the answer is present."""
    return "actual_output" in record or "actualOutput" in record


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    camel = "actualOutput" in record
    contexts_key, answer_key, reference_key = (
        ("retrievalContext", "actualOutput", "expectedOutput")
        if camel
        else ("retrieval_context", "actual_output", "expected_output")
    )
    return fields.assemble(
        record,
        fallback_id,
        question=fields.optional_text(fields.required(record, "input"), "input"),
        contexts=fields.contexts(fields.required(record, contexts_key), contexts_key),
        answer=fields.text(fields.required(record, answer_key), answer_key),
        reference=record.get(reference_key),
    )
