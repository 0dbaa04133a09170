"""Tests for `ragwatch check` whether the first records of a source are samples that look right.

Warnings are about logs that can be read but are suspicious: unknown routes, keys that nothing has, rejects.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from ragwatch.commands.check_settings import FAILED, OK, SUSPECT, WARNING, Finding
from ragwatch.commands.log_head import MAX_SHOWN, as_read
from ragwatch.config.model import Settings
from ragwatch.errors import FormatError
from ragwatch.formats import AUTO, canonical
from ragwatch.formats.canonical import LostField
from ragwatch.formats.custom import KEYS, REQUIRED
from ragwatch.formats.expressions import extractor
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.guessing.log_fields import log_fields
from ragwatch.formats.guessing.suspicion import HOUR, MAX_ZONE_HOURS, TIMEZONE_ADVICE, suspicions
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import Line, Record
from ragwatch.formats.selection import begins_document, expanded, parse_one
from ragwatch.judges.lexical.language import LANGUAGES, language_of_sample
from ragwatch.model.sample import Sample, SkipReason
from ragwatch.ports import Batch, Source
from ragwatch.ports.capabilities import Finishes, HasLogFiles, log_reader, record_rules
from ragwatch.sources.join.merge import MIN_PIECES
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import PartOutcome, Tally
from ragwatch.terminal.output import counted

MAX_RECORDS = 100


class _Records(NamedTuple):
    """The records of a batch by what they are."""

    samples: list[Sample]
    records: list[Record]
    errors: list[str]
    skipped: Counter[SkipReason]
    left_out: list[LostField]


def check_records(options: object, batch: Batch, settings: Settings) -> Finding:
    """Test whether the records of a batch can be converted to samples, and whether the samples look right."""
    samples, records, errors, skipped, left_out = _read(options, batch)
    total = len(samples) + len(errors)
    summary = f"{len(samples)} of {total} records of {batch.file} are samples"
    if skipped:
        summary += f"; {skipped.total()} lines are skipped ({counted(dict(skipped.most_common()))})"
    if not total:
        return Finding(FAILED, f"{summary}: no line is a record; see `where`, `prefix` and `records`")
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
        return Finding(state if samples else FAILED, detail, shown)
    if not any(sample.contexts for sample in samples):
        text = f"{summary}, but none has a context with text; log what the retriever returned"
        return Finding(FAILED, text)
    dated = any(context.updated_at for sample in samples for context in sample.contexts)
    return Finding(state, "; ".join((summary, *warnings)), shown, dated)


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


def first_records(source: Source) -> tuple[Batch | None, Lag, Mapping[str, float]]:
    """Read a source from its beginning up to its first batch with records, which is returned, and close it.

    Also returned are how far it is behind, and the number of parts of requests that were read, by outcome.
    """
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
        return batch, source.lag(), parts
    finally:
        source.close()


JSONL_ADVICE = "write one JSON object per line, each with its newline (of a whole array: jq -c '.[]')"
_MAX_ROUTES_SHOWN = 5
_MAX_COMPARED = 20  # records whose fields are compared with a name
_MAPPED, _SPELT = 0.7, 0.8  # how alike two names are, from 0 to 1, if one is the other with an error
_MIN_NAME_CHARS = 3
_HALF_HOUR = 1800.0
_ROUND_SECONDS, _MAX_AHEAD_SECONDS, _LAST_BYTES = 60.0, 300.0, 1 << 20
_WITHOUT_LEVEL = (
    "that the embedded judges read for changes alone ({}): drift and causes see their scores, but there is no level,"
    " because no accuracy was measured; the option `languages` of a judge leaves some out"
)
_UNREAD = (
    "in which the embedded judges have no measured accuracy ({}; und: not recognized, or not that of their question or"
    " contexts): their scores will be unknown, with reason language"
)
_MAX_PIECES, _MAX_LATE = 0.1, 0.5
"""Shares of the parts of requests above which pieces, and late parts, are no accidents."""


def route_warnings(samples: Sequence[Sample], routes: Sequence[str]) -> Iterator[str]:
    """Whether no sample has one of the configured routes."""
    logged = Counter(sample.route for sample in samples if sample.route)
    if (routes or logged) and samples and not any(sample.route in routes for sample in samples):
        names = ", ".join(repr(route) for route, _ in logged.most_common(_MAX_ROUTES_SHOWN))
        advice = f"list the logged ones: {names}" if names else "the records name none; map the field that does"
        yield f"every record is counted in route other; `routes`: {advice}"


def mapping_warnings(rules: RecordRules, records: Sequence[Record]) -> Iterator[str]:
    """Optional keys that are in no record, and how they are probably spelt."""
    if not records:
        return
    known = [field.path for field in log_fields(records[:_MAX_COMPARED])]
    for key, expression in rules.mapping.items():
        if key in REQUIRED:
            continue
        extract = extractor(f"mapping.{key}", expression)
        if all(_extracted(extract, record) is None for record in records):
            close = get_close_matches(expression, known, n=1, cutoff=_MAPPED)
            yield f"mapping.{key}: {expression!r} is null in every record" + _meant(close)
    if rules.format not in (AUTO, canonical.NAME):
        return
    for name in dict.fromkeys(path for path in known if path not in KEYS and len(path) > _MIN_NAME_CHARS):
        close = get_close_matches(name, KEYS, n=1, cutoff=_SPELT)
        if close and close[0] not in known:
            yield f"the key {name!r} is not read" + _meant(close)


def _extracted(extract: Callable[[Record], object], record: Record) -> object:
    try:
        return extract(record)
    except FormatError:
        return None


def _meant(close: Sequence[str]) -> str:
    return f"; did you mean {close[0]!r}?" if close else ""


def language_warnings(samples: Sequence[Sample]) -> Iterator[str]:
    """Answers in other languages than English: those that the embedded judges read for changes, and the others."""
    languages = Counter(filter(None, map(language_of_sample, samples)))
    read, unread = ([name for name in sorted(languages) if (name in LANGUAGES) is known] for known in (True, False))
    for names, what in ((read, _WITHOUT_LEVEL), (unread, _UNREAD)):
        if names:
            counts = ", ".join(f"{name}: {languages[name]}" for name in names)
            number = sum(languages[name] for name in names)
            yield f"{number} of {len(samples)} answers are in a language {what.format(counts)}"


def field_warnings(lost: Sequence[LostField]) -> Iterator[str]:
    """Optional fields that could not be read, each kind with the first error."""
    counts = Counter((one.name, one.reason) for one in lost)
    for (name, reason), number in counts.most_common():
        first = next(one.detail for one in lost if (one.name, one.reason) == (name, reason))
        yield f"{number} values of the field {name} are left out ({reason}; the first: {first})"


def time_warnings(samples: Sequence[Sample], patterns: Sequence[str], reader: LogReader) -> Iterator[str]:
    """Times that look shifted: they lie in the future, or a file was written whole hours after its last record."""
    times = [sample.at for sample in samples if sample.at is not None]
    ahead = max(times, default=0.0) - time.time()
    if ahead > _MAX_AHEAD_SECONDS:
        yield f"times lie up to {ahead / HOUR:.1f} h in the future; {TIMEZONE_ADVICE}"
        return
    files = max(_files(patterns), key=lambda path: path.stat().st_mtime, default=None)
    last = None if files is None or not times else _last_time(files, reader)
    if files is None or last is None:
        return
    behind = files.stat().st_mtime - last
    is_round = abs(behind - round(behind / _HALF_HOUR) * _HALF_HOUR) <= _ROUND_SECONDS
    if is_round and _HALF_HOUR - _ROUND_SECONDS <= abs(behind) <= MAX_ZONE_HOURS * HOUR:
        yield f"{files} was written {behind / HOUR:.1f} h after the time of its last record; {TIMEZONE_ADVICE}"


def _last_time(path: Path, reader: LogReader) -> float | None:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST_BYTES))
            line = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        parsed = reader.parse(line)
        return None if isinstance(parsed, SkipReason) else reader.read(parsed[0], "last").at
    except (OSError, FormatError):
        return None


def reject_warnings(rejected: int, records: int, limit: float) -> Iterator[str]:
    """Whether the share of rejected records is above the threshold of the alert on rejects."""
    if records and rejected > limit * records:
        yield (
            f"{rejected / records:.1%} of the records are rejected, above alerts.rejects ({limit:.1%}): "
            "RagwatchSourceRejects would fire; if these lines are no answers (health checks, errors), let `where` skip "
            "them; `ragwatch init --print FILE` proposes the condition"
        )


def pieces_fault(parts: Mapping[str, float]) -> str | None:
    """What is wrong where most parts of requests, counted by outcome, were left out; None where that is not so."""
    total, pieces, late = sum(parts.values()), parts.get(PartOutcome.PIECE, 0), parts.get(PartOutcome.LATE, 0)
    if pieces > max(MIN_PIECES, _MAX_PIECES * total):
        return (
            f"{pieces:,.0f} of {total:,.0f} parts are pieces of which an answer holds one: answers seem to be logged "
            "in pieces, and figures would be about one piece each; join them with concat: {answer: FIELD OF A PIECE} "
            "and `complete`, a condition on the last part"
        )
    if pieces + late > max(MIN_PIECES, _MAX_LATE * total):
        return (
            f"{pieces + late:,.0f} of {total:,.0f} parts arrived after their request was complete: say with "
            "`complete` or `parts` when it is, with `concat` what is logged in pieces, or let `where` skip what is "
            "no part of an answer"
        )
    return None


def incomplete_file(patterns: Sequence[str]) -> str | None:
    """Why no record of the first matching file with content is complete; None when there is no such file."""
    for path, content in _beginnings(patterns):
        if start := content.lstrip():
            fault = "is an incomplete JSON array" if start.startswith(b"[") else "has no complete line"
            if b"\r" in start and b"\n" not in start:
                fault = "has lines that end in CR alone (tr '\\r' '\\n' mends that)"
            return f"{path} {fault}, so it has no complete record; {JSONL_ADVICE}"
    return None


def document_advice(patterns: Sequence[str]) -> str | None:
    """What to do about the first matching file that is one JSON document; None if none is."""
    for path, start in _beginnings(patterns):
        if begins_document(start):
            return f"{path} is one JSON document: the daemon reads it with `documents: true`; else {JSONL_ADVICE}"
    return None


def _beginnings(patterns: Sequence[str]) -> Iterator[tuple[Path, bytes]]:
    """The matching files that can be read, each with its first bytes."""
    for path in _files(patterns):
        with suppress(OSError), path.open("rb") as file:
            yield path, file.read(4096)


def _files(patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(path for path in Path("/").glob(str(Path(pattern).absolute())[1:]) if path.is_file())


def format_advice(line: Line) -> Iterator[str]:
    """What to do when no line can be read, by the first one."""
    text = line.lstrip() if isinstance(line, bytes) else b"{"
    if text.startswith(b"["):
        yield f"the file is a JSON array; {JSONL_ADVICE}"
    elif not text.startswith(b"{") and b"{" in text and b"\0" not in text:  # a zero byte has a message of its own
        yield "there is text before the JSON; set prefix: auto in this source"
