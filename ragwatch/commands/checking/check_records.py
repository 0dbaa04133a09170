"""Reads the first records of a source, and tests whether they are samples that look right, for `ragwatch check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ragwatch.commands.checking.finding import FAILED, OK, SUSPECT, WARNING, Finding
from ragwatch.commands.log_head import MAX_SHOWN, as_read
from ragwatch.commands.log_warnings import (
    field_warnings,
    format_advice,
    language_warnings,
    mapping_warnings,
    reject_warnings,
    route_warnings,
    time_warnings,
)
from ragwatch.config.model import Settings
from ragwatch.errors import FormatError
from ragwatch.formats.canonical import LostField
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.guessing.suspicion import suspicions
from ragwatch.formats.record import Record
from ragwatch.formats.selection import expanded, parse_one
from ragwatch.model.sample import Sample, SkipReason
from ragwatch.ports import Batch, Source
from ragwatch.ports.capabilities import Finishes, HasLogFiles, log_reader, record_rules
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally

MAX_RECORDS = 100


class _Records(NamedTuple):
    """The records of a batch by what they are."""

    samples: list[Sample]
    records: list[Record]
    errors: list[str]
    skipped: Counter[SkipReason]
    left_out: list[LostField]


def check_records(subject: str, options: object, batch: Batch, settings: Settings) -> Finding:
    """Test whether the records of a batch can be converted to samples, and whether the samples look right."""
    samples, records, errors, skipped, left_out = _read(options, batch)
    total = len(samples) + len(errors)
    summary = f"{len(samples)} of {total} records of {batch.file} are samples"
    if skipped:
        reasons = ", ".join(f"{reason} {count}" for reason, count in skipped.most_common())
        summary += f"; {skipped.total()} lines are skipped ({reasons})"
    if not total:
        return Finding(subject, FAILED, f"{summary}: no line is a record; see `where`, `prefix` and `records`")
    suspected = suspicions(samples)
    warnings = [
        *suspected,
        *route_warnings(samples, settings.routes),
        *language_warnings(samples),
        *field_warnings(left_out),
        *time_warnings(samples, options.patterns if isinstance(options, HasLogFiles) else (), log_reader(options)),
        *mapping_warnings(record_rules(options), records),
    ]
    shown = tuple(line for pair in zip(records[:MAX_SHOWN], samples, strict=False) for line in as_read(*pair))
    state = SUSPECT if suspected else WARNING if warnings or errors else OK
    if errors:
        limit = settings.alerts.rejects
        advice = reject_warnings(len(errors), total, limit) if samples else format_advice(batch.lines[0])
        detail = "; ".join((summary, f"first error: {errors[0]}", *advice, *warnings))
        return Finding(subject, state if samples else FAILED, detail, shown)
    if not any(sample.contexts for sample in samples):
        text = f"{summary}, but none has a context with text; log what the retriever returned"
        return Finding(subject, FAILED, text)
    dated = any(context.updated_at for sample in samples for context in sample.contexts)
    return Finding(subject, state, "; ".join((summary, *warnings)), shown, dated)


def _read(options: object, batch: Batch) -> _Records:
    reader = log_reader(options)
    read = _Records([], [], [], Counter(), [])
    for number, line in expanded(zip(batch.numbers, batch.lines, strict=True), reader.expand):
        try:
            parsed = parse_one(line, reader.parse)
            if isinstance(parsed, SkipReason):
                read.skipped[parsed] += 1
                continue
            if not is_feedback(parsed[0]):
                sample, lost = reader.read_without_wrong_fields(parsed[0], str(number))
                read.samples.append(sample)
                read.records.append(parsed[0])
                read.left_out.extend(lost)
        except FormatError as error:
            read.errors.append(f"{batch.file}:{number}: {error.reason}: {error}")
        if len(read.samples) + len(read.errors) == MAX_RECORDS:
            break
    return read


class FirstRecords(NamedTuple):
    """The beginning of a source.

    Attributes:
        batch: The first batch with records; None if there is none.
        lag: How far the source is behind.
        parts: Number of parts of requests that were read, by outcome.
    """

    batch: Batch | None
    lag: Lag
    parts: Mapping[str, float]


def first_records(source: Source) -> FirstRecords:
    """Read a source from its beginning up to its first records, and close it."""
    parts: Counter[str] = Counter()
    try:
        source.resume({})
        if isinstance(source, Finishes):
            source.finish()
        while (batch := source.read()) is not None:
            for (tally, labels), number in batch.tallies.items():
                if tally is Tally.PARTS:
                    parts[labels[1]] += int(number)
            if batch.lines:
                break
            source.commit(batch)
        return FirstRecords(batch, source.lag(), parts)
    finally:
        source.close()
