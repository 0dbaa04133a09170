"""Traces that a tracing service has exported: their rows become spans, and are assembled as those of OTLP.

One trace is one record: as an API returns it (`observations`, `child_runs`, `data.spans`), or the rows of an export
that a source of kind join has merged, under `parts`. Names of columns are in camel or snake case. To read another
service, add a row to `EXPORTS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from ragwatch.errors import FormatError
from ragwatch.formats import canonical, fields
from ragwatch.formats.fields import epoch_seconds
from ragwatch.formats.record import Record
from ragwatch.formats.traces.assemble import Assembled, assemble
from ragwatch.formats.traces.span import Span
from ragwatch.model.sample import RejectReason, Sample

_IDS = ("span_id", "context.span_id", "spanId", "id")
_PARENTS = ("parentObservationId", "parent_observation_id", "parent_run_id", "parent_span_id", "parent_id")
_INPUTS, _OUTPUTS = ("input", "inputs", "request"), ("output", "outputs", "response")
_STARTS = ("startTime", "start_time", "start_time_unix_nano", "start_time_ns", "timestamp")
_ENDS = ("endTime", "end_time", "end_time_unix_nano", "end_time_ns")
_TRACE_IDS = ("trace_id", "traceId", "info.trace_id", "info.request_id", "context.trace_id", "id")
_WHOLE = frozenset({"value", "metadata", "document.metadata"})
"""Keys whose object is the value of an attribute, not a group of attributes."""
_ROOT = "trace"  # the id of the span that stands for the trace itself
_MAX_DEPTH = 32
_JOIN = "is missing: a trace is one record; join the rows of an export by its id (kind: join)"


@dataclass(frozen=True, slots=True)
class TraceExport:
    """The traces of one service; see `record.Format`."""

    NAME: str  # name in the configuration
    KNOWN_BIAS: str  # what its records do not hold
    nested: str  # path of the spans in a record that holds a whole trace
    marks: tuple[str, ...]  # keys of a row of its own; one of them is enough
    kind: str  # attribute in which the assembler looks for the kind of such a span
    kinds: tuple[str, ...] = ("type",)  # columns that hold the kind
    MAPPING: ClassVar[Mapping[str, str]] = MappingProxyType({})  # no expression says how spans are assembled

    def matches(self, record: Record) -> bool:
        """Return whether the record is a trace of this service, or one of its rows."""
        rows = _at(record, self.nested)
        if isinstance(rows, list) and not self._is_row(record):
            return any(isinstance(row, dict) and _at(row, self.kinds[0]) is not None for row in rows)
        return self._is_row(record)

    def read(self, record: Record, fallback_id: str) -> Sample:
        """Return the sample in a record of this format."""
        return canonical.read(self.extract(record), fallback_id)

    def extract(self, record: Record) -> Record:
        """Return the trace in a record as a record in the canonical format."""
        bare = self._is_row(record) and "parts" not in record and self.nested not in record
        if not self.matches(record) or (bare and (_text_at(record, _PARENTS) or _last_parent(record))):
            raise fields.missing(self.nested, _JOIN)
        trace_id = _text_at(record, _TRACE_IDS)
        result = assemble(self._spans(record, trace_id))
        if len(result.records) != 1:
            if bare:
                raise fields.missing(self.nested, _JOIN)
            raise _unread(result, answered=bool(_value_at(record, _OUTPUTS)))
        made = result.records[0] | {"id": trace_id, "reference": record.get("reference")}
        logged, own = fields.embedded(record.get("metadata")), made["metadata"]
        if isinstance(logged, dict) and isinstance(own, dict) and self.nested in record:
            made["metadata"] = logged | own
        return made

    def _is_row(self, record: Record) -> bool:
        return not record.keys().isdisjoint(self.marks)

    def _spans(self, record: Record, trace_id: str) -> list[Span]:
        rows = fields.embedded(record.get("parts") or _at(record, self.nested))
        if self._is_row(record) and "parts" not in record:  # a run that holds those that it has called
            rows = [record]
        elif not isinstance(rows, list):
            rows = []
        placed = list(self._rows(rows, "", 0))
        # Ends lie behind the starts that were logged as the same time: coarse clocks hide which came first.
        spans = [self._span(row, parent, trace_id, (n, len(placed))) for n, (row, parent) in enumerate(placed)]
        if not any(span.attributes for span in spans):
            raise fields.missing("id", "is missing: no span has an id or a value")
        asked, answered = _value_at(record, _INPUTS), _value_at(record, _OUTPUTS)
        if "parts" in record or self._is_row(record) or (asked is None and answered is None):
            return spans
        ids = {span.span_id for span in spans}  # the trace itself has an input and an output
        below = [span if span.parent_id in ids else span._replace(parent_id=_ROOT) for span in spans]
        trace = {"id": _ROOT, "input": asked, "output": answered, "timestamp": _value_at(record, _STARTS)}
        return [self._span(trace, "", trace_id, (0, 0)), *below]

    def _rows(self, rows: Sequence[object], parent: str, depth: int) -> Iterator[tuple[Record, str]]:
        """Rows of spans and the spans that have called them, those inside of others included."""
        for row in rows:
            if isinstance(row, dict):
                yield row, parent
                inner = fields.embedded(row.get(self.nested))
                if isinstance(inner, list) and depth < _MAX_DEPTH:
                    yield from self._rows(inner, _text_at(row, _IDS), depth + 1)

    def _span(self, row: Record, parent: str, trace_id: str, later: tuple[int, int]) -> Span:
        """The span of a row, with its start and its end so many nanoseconds later than logged."""
        start = _nanoseconds(row, _STARTS)
        return Span(
            trace_id=trace_id,
            span_id=_text_at(row, _IDS),
            parent_id=_text_at(row, _PARENTS) or _last_parent(row) or parent,
            name=_text_at(row, ("name",)),
            start=start + later[0],
            end=max(_nanoseconds(row, _ENDS), start) + later[1],
            attributes=self._attributes(row),
            failed=_text_at(row, ("status_code", "status", "level")).upper() == "ERROR",
        )

    def _attributes(self, row: Record) -> dict[str, object]:
        given = fields.embedded(row.get("attributes"))
        attributes = dict(_flattened(given, "")) if isinstance(given, dict) else {}
        for key, value in row.items():
            if key.startswith("attributes."):
                attributes |= _flattened(value, key.removeprefix("attributes."))
        for key, value in (
            (self.kind, _text_at(row, self.kinds)),
            ("input.value", _value_at(row, _INPUTS)),
            ("output.value", _value_at(row, _OUTPUTS)),
        ):
            if value and key not in attributes:
                attributes[key] = value
        return attributes


def _unread(result: Assembled, *, answered: bool) -> FormatError:
    if result.refused:
        refused = result.refused[0]
        return FormatError(refused.reason, refused.field, refused.detail)
    if result.records:
        several = f"is that of {len(result.records)} requests in one trace; send it by OTLP"
        return FormatError(RejectReason.WRONG_TYPE, "answer", several)
    if result.failed or result.incomplete or not (result.ungrounded or answered):
        why = "the request ended with an error" if result.failed else "no span of the trace holds it"
        return fields.missing("answer", f"is missing: {why}")
    return fields.missing("contexts", "is missing: no span retrieves, or its documents cannot be read")


def _flattened(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Attributes as instrumentations send them, of those that a service has nested."""
    last = path.rpartition(".")[2]
    if isinstance(value, dict) and value and last not in _WHOLE:
        for key, part in value.items():
            yield from _flattened(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _flattened(item, f"{path}.{index}")
    elif value is not None:
        yield path, value


def _at(record: Record, path: str) -> object:
    """The value under a key, or under the keys that its dots separate."""
    if path in record or "." not in path:
        return record.get(path)
    head, _, rest = path.partition(".")
    inner = fields.embedded(record.get(head))
    return _at(inner, rest) if isinstance(inner, dict) else None


def _value_at(record: Record, paths: tuple[str, ...]) -> object:
    values = (_at(record, path) for path in paths)
    return next((value for value in values if value is not None and value != ""), None)


def _text_at(record: Record, paths: tuple[str, ...]) -> str:
    value = _value_at(record, paths)
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def _last_parent(row: Record) -> str:
    """The run that a row of a bulk export is part of: the last of its parents."""
    parents = fields.embedded(row.get("parent_run_ids"))
    return parents[-1] if isinstance(parents, list) and parents and isinstance(parents[-1], str) else ""


def _nanoseconds(row: Record, paths: tuple[str, ...]) -> int:
    """A time of a row; 0 if it is none."""
    value = _value_at(row, paths)
    if isinstance(value, int) and value > 10**17:
        return min(value, (1 << 63) - 1)
    try:
        return 0 if value is None else round(epoch_seconds(value, "start") * 1e9)
    except FormatError:
        return 0


_GIVEN = (
    "of several documents those count that the prompts behind the answer hold; all count where a prompt is not logged, "
    "is cut off or holds fewer than two"
)
_LANGFUSE = (
    "contexts are the documents of observations of type RETRIEVER, or with a name such as retrieve or rerank; "
    f"{_GIVEN}; exports may be sampled"
)
_LANGSMITH = (
    "contexts are the documents of runs of type retriever, or of chains with a name such as retrieve or rerank; "
    f"{_GIVEN}; traces may be sampled"
)
_SPANS = f"a retriever without a span of its own is not seen; {_GIVEN}; traces may be sampled"
EXPORTS = (
    TraceExport(
        "langfuse", _LANGFUSE, "observations", ("parentObservationId", "parent_observation_id"),
        kind="langfuse.observation.type",
    ),
    TraceExport(
        "langsmith", _LANGSMITH, "child_runs", ("run_type",), kind="langsmith.span.kind", kinds=("run_type",)
    ),
    TraceExport("phoenix", _SPANS, "spans", ("span_kind",), kind="openinference.span.kind", kinds=("span_kind",)),
    TraceExport("mlflow", _SPANS, "data.spans", (), kind="mlflow.spanType", kinds=("attributes",)),
)  # fmt: skip
