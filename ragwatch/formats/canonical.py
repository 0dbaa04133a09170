"""ragwatch's own format: `{"id","at","question","contexts","answer","route","metadata","reference","history"}`.

Only question (may be null), contexts (may be empty) and answer are required. A context is a text or
`{"id","text","score","updated_at"}`; `history` holds the turns before the question, `{"role","text"}` or another
spelling of `messages.turns`, of which the last are kept. `relevant_ids` and `relevant_texts` are relevance judgements
(see `relevance`). Rows of labelled data sets have this format too; a row with `context_refs` instead of contexts is
read without contexts, which the caller has to resolve.

A record whose optional field is wrong can be read without it: an answer without its time has that of its reading,
without its id its position in the log, without a route the route `other`; all else is unknown.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.messages import turns
from ragwatch.formats.record import Record
from ragwatch.formats.relevance import relevant_contexts
from ragwatch.model.sample import Context, RejectReason, Sample, Turn

_new = tuple.__new__  # bypasses `Sample.__new__`, in half the time
_REFERENCES = frozenset(fields.REFERENCE_KEYS)
NAME = "canonical"
KNOWN_BIAS = ""
MAPPING: Mapping[str, str] = MappingProxyType(
    {"id": " || ".join(fields.ID_KEYS), "at": " || ".join(fields.TIME_KEYS)}
    | {name: name for name in ("question", "contexts", "answer", "route", "trace_id", "metadata")}
    | {"reference": " || ".join(("reference", *fields.REFERENCE_KEYS))}
    | {name: name for name in ("history", "relevant_ids", "relevant_texts")}
)
_OPTIONAL: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(fields.TIME_KEYS, "at")
    | dict.fromkeys(fields.ID_KEYS, "id")
    | {name: name for name in ("route", "metadata", "trace_id", "history", "reference")}
)
_OPTIONAL_OF_CONTEXT: Mapping[str, str] = MappingProxyType(
    {"score": "score"}
    | dict.fromkeys(fields.CONTEXT_ID_KEYS, "context_id")
    | dict.fromkeys(fields.DATE_KEYS, "updated_at")
)
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_MAX_LOST = 200  # fields of one record


class LostField(NamedTuple):
    """An optional field that could not be read; why, and the same as text for people."""

    name: str
    reason: RejectReason
    detail: str


MAX_AHEAD_SECONDS = 1800.0
"""How far the clock of a service may be ahead of ours; later times count as lost, and answers as given now."""
AHEAD = LostField("at", RejectReason.FUTURE_TIME, "lies in the future: local times without an offset need `timezone`")


def matches(record: Record) -> bool:
    """Return whether all three required keys are present."""
    return "answer" in record and "question" in record and ("contexts" in record or "context_refs" in record)


def extract(record: Record) -> Record:
    """Return the record itself."""
    return record


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
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
    record: Record, fallback_id: str, said: tuple[str | None, tuple[Context, ...], str], history: tuple[Turn, ...]
) -> Sample:
    """The sample of question, contexts and answer, with id, time, route, metadata and reference of the record."""
    id_key, id_value = "id", record.get("id")
    if id_value is None or id_value == "":
        id_key, id_value = fields.first(record, fields.ID_KEYS)
    time_key, time_value = "at", record.get("at")
    if time_value is None:
        time_key, time_value = fields.first(record, fields.TIME_KEYS)
    at = None if time_value is None else fields.plausible_time(time_value, time_key)
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


def name_of(path: str) -> str | None:
    """Return the name under which an optional field is counted; None for one that is required.

    >>> name_of("created_at"), name_of("hits[2].score"), name_of("metadata.tenant"), name_of("contexts[0].text")
    ('at', 'score', 'metadata', None)
    """
    steps = [name or number for name, number in _STEP.findall(path)]
    if len(steps) > 1 and path.rpartition(".")[0].endswith("]"):
        return _OPTIONAL_OF_CONTEXT.get(steps[-1])
    return _OPTIONAL.get(steps[0]) if steps else None


def read_without_wrong_fields(record: Record, fallback_id: str) -> tuple[Sample, tuple[LostField, ...]]:
    """Return the sample in a record of the canonical format, and the optional fields that had to be left out."""
    lost: list[LostField] = []
    while True:
        try:
            return read(record, fallback_id), tuple(lost)
        except FormatError as error:
            name = name_of(error.field)
            smaller = None if name is None or len(lost) == _MAX_LOST else _without(record, error.field)
            if name is None or smaller is None:
                raise
            lost.append(LostField(name, RejectReason(error.reason), str(error)))
            record = smaller


def _without(record: Record, path: str) -> Record | None:
    """Return a record without the field at a path, or without the list or object at the start of it; None if absent."""
    name, *rest = [name or number for name, number in _STEP.findall(path)]
    if name in _OPTIONAL:
        return {key: value for key, value in record.items() if key != name} if name in record else None
    items, rank = fields.embedded(record.get(name)), int(rest[0])
    if not isinstance(items, list) or rank >= len(items) or not isinstance(items[rank], dict):
        return None
    smaller = {key: value for key, value in items[rank].items() if key != rest[-1]}
    return {**record, name: [*items[:rank], smaller, *items[rank + 1 :]]}
