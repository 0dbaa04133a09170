"""Haystack answers: the output of a pipeline (`{"answer_builder":{"answers":[...]}}`), or one GeneratedAnswer.

A GeneratedAnswer is `{"data","query","documents","meta"}`; older releases wrap it in `init_parameters`. The answer
builder may have any name in the pipeline.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields
from ragwatch.formats.shape import Record

NAME = "haystack"
KNOWN_BIAS = ""
_ANSWER = "(answer_builder.answers || answers || [@])[0]"
MAPPING = MappingProxyType(
    {
        "id": "id || request_id",
        "question": f"query || {_ANSWER}.query || {_ANSWER}.init_parameters.query",
        "contexts": f"({_ANSWER}.documents || {_ANSWER}.init_parameters.documents)[]"
        ".{id: id, text: content, score: score}",
        "answer": f"{_ANSWER}.data || {_ANSWER}.init_parameters.data",
    }
)


def matches(record: Record) -> bool:
    """Return whether the record has a list of answers with data and documents, or one such answer."""
    return _find(record) is not None


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format: the first answer of the pipeline."""
    match = _find(record)
    if match is None:
        raise fields.missing("answers[0].data")
    path, answer = match
    question = record.get("query", record.get("question", answer.get("query")))
    return fields.assemble(
        record,
        fallback_id,
        question=fields.optional_text(question, "query"),
        contexts=_contexts(fields.required(answer, "documents", f"{path}documents"), f"{path}documents"),
        answer=fields.text(fields.required(answer, "data", f"{path}data"), f"{path}data"),
        reference=record.get("reference"),
    )


def _find(record: Record) -> tuple[str, Record] | None:
    """Return the GeneratedAnswer, and the path in front of its fields."""
    named = record.get("answer_builder")
    for name, part in (("answer_builder", named), ("", record), *record.items()):
        answers = part.get("answers") if isinstance(part, dict) else None
        if isinstance(answers, list) and answers and isinstance(answers[0], dict):
            prefix = f"{name}.answers[0]." if name else "answers[0]."
            return _unwrapped(answers[0], prefix)
    path, flat = _unwrapped(record, "")
    return (path, flat) if "data" in flat and "documents" in flat else None


def _unwrapped(answer: Record, path: str) -> tuple[str, Record]:
    parameters = answer.get("init_parameters")
    return (f"{path}init_parameters.", parameters) if isinstance(parameters, dict) else (path, answer)


def _contexts(documents: object, path: str) -> tuple[Context, ...]:
    if not isinstance(documents, list):
        raise fields.wrong(path, "a list", documents)
    items = [_unwrapped(item, "")[1] if isinstance(item, dict) else item for item in documents]
    return fields.contexts(items, path)
