"""RAGAS rows: `{"user_input","response","retrieved_contexts","retrieved_context_ids","reference"}`."""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields
from ragwatch.formats.history import before_question
from ragwatch.formats.messages import question_text
from ragwatch.formats.shape import Record

NAME = "ragas"
KNOWN_BIAS = ""
MAPPING = MappingProxyType(
    {
        "id": "id",
        "question": "user_input",
        "contexts": "retrieved_contexts",
        "answer": "response",
        "reference": "reference",
    }
)


def matches(record: Record) -> bool:
    """Return whether RAGAS' keys of question and answer are present."""
    return "user_input" in record and "response" in record


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format; of a conversation, the last question of the user and its turns."""
    asked = fields.required(record, "user_input")
    contexts = fields.contexts(fields.required(record, "retrieved_contexts"), "retrieved_contexts")
    return fields.assemble(
        record,
        fallback_id,
        question=question_text(asked),
        contexts=_with_ids(contexts, record.get("retrieved_context_ids")),
        answer=fields.text(fields.required(record, "response"), "response"),
        reference=record.get("reference"),
        history=before_question(asked),
    )


def _with_ids(contexts: tuple[Context, ...], ids: object) -> tuple[Context, ...]:
    """Add ids to contexts, if there is exactly one for each: a wrong id is worse than none."""
    if not isinstance(ids, list) or len(ids) != len(contexts):
        return contexts
    names = [fields.identity(name, f"retrieved_context_ids[{rank}]") for rank, name in enumerate(ids)]
    return tuple(context._replace(id=name) for context, name in zip(contexts, names, strict=True))
