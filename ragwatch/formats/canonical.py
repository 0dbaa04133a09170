"""ragwatch's own format: `{"id","at","question","contexts","answer","route","metadata","reference","history"}`.

Only question (may be null), contexts (may be empty) and answer are required. A context is a text or
`{"id","text","score","updated_at"}`; `history` holds the turns before the question, `{"role","text"}` or another
spelling of `history.turns`, of which the last are kept. `relevant_ids` and `relevant_texts` are relevance judgements
(see `relevance`). Rows of labelled data sets have this format too; a row with `context_refs` instead of contexts is
read without contexts, which the caller has to resolve.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.formats import fields
from ragwatch.formats.history import turns
from ragwatch.formats.relevance import relevant_contexts
from ragwatch.formats.shape import Record
from ragwatch.formats.times import plausible_time
from ragwatch.model.sample import Context, Sample, Turn

_new = tuple.__new__  # bypasses `Sample.__new__`, in half the time
_REFERENCES = frozenset(fields.REFERENCE_KEYS)
NAME = "canonical"
KNOWN_BIAS = ""
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
        "reference": " || ".join(("reference", *fields.REFERENCE_KEYS)),
        "history": "history",
        "relevant_ids": "relevant_ids",
        "relevant_texts": "relevant_texts",
    }
)


def matches(record: Record) -> bool:
    """Return whether all three required keys are present."""
    return "answer" in record and "question" in record and ("contexts" in record or "context_refs" in record)


def extract(record: Record) -> Record:
    """Return the record itself."""
    return record


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format.

    >>> read({"question": "why?", "contexts": ["because"], "answer": "so"}, "log:1").id
    'log:1'
    """
    passages = record.get("contexts")
    if passages is None and ("contexts" not in record):
        passages = [] if "context_refs" in record else fields.required(record, "contexts")
    question = fields.required(record, "question")
    if type(question) is not str:  # checked here, because this runs for every request
        question = fields.optional_text(question, "question")
    contexts = fields.contexts(passages, "contexts")
    answer = fields.required(record, "answer")
    if type(answer) is not str:
        answer = fields.text(answer, "answer")
    logged = record.get("history")
    history = () if logged is None else turns(logged, "history", question=question, answer=answer)
    if not question or question.isspace():
        question = fields.asked(record)
    sample = _with_envelope(record, fallback_id, (question, contexts, answer), history)
    if "relevant_ids" in record or "relevant_texts" in record:
        sample = sample._replace(relevant=relevant_contexts(record))
    return sample


def _with_envelope(
    record: Record,
    fallback_id: str,
    said: tuple[str | None, tuple[Context, ...], str],
    history: tuple[Turn, ...],
) -> Sample:
    """The sample of question, contexts and answer, with id, time, route, metadata and reference of the record."""
    id_key, id_value = "id", record.get("id")
    if id_value is None or id_value == "":
        id_key, id_value = fields.first(record, fields.ID_KEYS)
    time_key, time_value = "at", record.get("at")
    if time_value is None:
        time_key, time_value = fields.first(record, fields.TIME_KEYS)
    at = None if time_value is None else plausible_time(time_value, time_key)
    route, reference = record.get("route"), record.get("reference")
    if reference is None and not _REFERENCES.isdisjoint(record):
        reference = next((one for key in fields.REFERENCE_KEYS if type(one := record.get(key)) is str and one), None)
    parts = (
        (id_value if type(id_value) is str else fields.identity(id_value, id_key)) or fallback_id,
        *said,
        at,
        "" if route is None else fields.text(route, "route"),
        fields.metadata(record),
        None if reference is None else fields.text(reference, "reference"),
        history,
        None,
    )
    return _new(Sample, parts)
