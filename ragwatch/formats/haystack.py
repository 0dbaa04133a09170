"""Haystack answers: what a pipeline returned (`{"answer_builder":{"answers":[...]}}`), or one GeneratedAnswer.

A GeneratedAnswer is `{"data","query","documents","meta"}`; older releases wrap it in `init_parameters`. The answer
builder may bear any name in the pipeline.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields
from ragwatch.formats.shape import Record

NAME = "haystack"
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
    """A list of answers with data and documents is there, or one such answer."""
    return _find(record) is not None


def read(record: Record, fallback_id: str) -> Sample:
    """The sample in a record of this shape: the first answer of the pipeline."""
    found = _find(record)
    if found is None:
        raise fields.missing("answers[0].data")
    path, answer = found
    asked = record.get("query", record.get("question", answer.get("query")))
    return fields.assemble(
        record,
        fallback_id,
        question=fields.optional_text(asked, "query"),
        contexts=_contexts(fields.required(answer, "documents", f"{path}documents"), f"{path}documents"),
        answer=fields.text(fields.required(answer, "data", f"{path}data"), f"{path}data"),
        reference=record.get("reference"),
    )


def _find(record: Record) -> tuple[str, Record] | None:
    """The GeneratedAnswer and the path in front of its fields."""
    named = record.get("answer_builder")
    for name, part in (("answer_builder", named), ("", record), *record.items()):
        answers = part.get("answers") if isinstance(part, dict) else None
        if isinstance(answers, list) and answers and isinstance(answers[0], dict):
            prefix = f"{name}.answers[0]." if name else "answers[0]."
            return _unwrapped(answers[0], prefix)
    path, flat = _unwrapped(record, "")
    return (path, flat) if "data" in flat and "documents" in flat else None


def _unwrapped(answer: Record, path: str) -> tuple[str, Record]:
    older = answer.get("init_parameters")
    return (f"{path}init_parameters.", older) if isinstance(older, dict) else (path, answer)


def _contexts(documents: object, path: str) -> tuple[Context, ...]:
    if not isinstance(documents, list):
        raise fields.wrong(path, "a list", documents)
    items = [_unwrapped(item, "")[1] if isinstance(item, dict) else item for item in documents]
    return fields.contexts(items, path)
