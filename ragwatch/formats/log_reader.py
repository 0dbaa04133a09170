"""Reads the records of one log as its source is configured: `format`, `mapping`, `records`, `where` and the like."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from ragwatch import formats
from ragwatch.errors import ConfigError
from ragwatch.formats import canonical, fields
from ragwatch.formats.canonical import LostField, read_without_wrong_fields
from ragwatch.formats.corpus import Corpus
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.fields import without_offset
from ragwatch.formats.record import Line, Parse, Parsed, Record
from ragwatch.formats.selection import line_parser, record_finder
from ragwatch.formats.split import KINDS, Splitter
from ragwatch.model.sample import Context, Sample, SkipReason


@dataclass(frozen=True, slots=True)
class RecordRules:
    """How the records of a log are read."""

    format: str = "auto"  # name of a format
    # Expressions of the format `custom`; with another one, in place of what it reads
    mapping: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None  # JMESPath condition on records; None for all
    prefix: str | None = None  # what stands before the JSON object of a line; see `selection.line_parser`
    # Kind of the passages in a text, or an object with `by`, `after` and `before`; None to take texts whole
    split: str | Mapping[str, str] | None = None
    records: str | None = None  # JMESPath of the records in a line that holds several; None where a line is one
    timezone: str | None = None  # name of the time zone of times without an offset; None for UTC
    # Where the texts of contexts are that are logged as ids; see `corpus`. None if they are texts.
    resolve: Mapping[str, str] | None = None
    encoding: str | None = None  # name of the encoding of files; None for UTF-8


class LogReader:
    """Converts lines of a log to samples.

    `parse` decodes the record in a line, or says why the line is skipped. `expand` finds the records in a line that
    holds several; it is None where a line is one.
    """

    def __init__(self, rules: RecordRules) -> None:
        self._parse = line_parser(rules.where, rules.prefix)
        self.parse: Parse = self._parse if rules.timezone is None else self._parse_in_zone
        self.expand = None if rules.records is None else record_finder(rules.records, rules.prefix)
        self.encoding = rules.encoding
        self._reader = formats.build(rules.format, rules.mapping or None)
        self._splitter = None if rules.split is None else _splitter(rules.split)
        self._zone = None if rules.timezone is None else _time_zone(rules.timezone)
        self._corpus = None if rules.resolve is None else Corpus(rules.resolve)
        is_plain = self._splitter is None and self._zone is None and self._corpus is None
        self.read = self._reader.read if is_plain else self._read_changed

    def read_without_wrong_fields(
        self, record: Record, fallback_id: str, complete: Callable[[Record], Record] | None = None
    ) -> tuple[Sample, tuple[LostField, ...]]:
        """Return the sample in a record, and the optional fields that were left out because they are wrong.

        `complete` adds fields of the canonical format to the record.
        """
        failed: tuple[LostField, ...] = ()
        if isinstance(self._reader, MappingReader):
            extracted, failed = self._reader.extract_what_it_can(record)
            extracted = extracted if complete is None else complete(extracted)
        else:
            extracted = self._reader.extract(record if complete is None else complete(record))
        sample, lost = read_without_wrong_fields(self._changed(extracted), fallback_id)
        return self._split(sample), (*failed, *lost)

    def _read_changed(self, record: Record, fallback_id: str) -> Sample:
        return self._split(canonical.read(self._changed(self._reader.extract(record)), fallback_id))

    def _changed(self, record: Record) -> Record:
        """A record with times in UTC and the texts of its contexts."""
        if self._zone is not None:
            record = _in_zone(record, self._zone)
        return record if self._corpus is None else self._corpus.with_texts(record)

    def _parse_in_zone(self, line: Line) -> Parsed:
        """Decode a record; the time of feedback is read without the rest of this reader."""
        parsed = self._parse(line)
        if self._zone is None or isinstance(parsed, SkipReason) or not is_feedback(parsed[0]):
            return parsed
        return _in_zone(parsed[0], self._zone), parsed[1]

    def _split(self, sample: Sample) -> Sample:
        return sample if self._splitter is None else split_contexts(sample, self._splitter)


def _time_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        message = f"timezone: {name!r} is not in the time zone database; write one such as Europe/Berlin"
        raise ConfigError(message) from error


def _in_zone(record: Record, zone: ZoneInfo) -> dict[str, object]:
    """A record with its times that have no offset in seconds since the epoch."""
    moments = {key: without_offset(record[key]) for key in fields.TIME_KEYS if key in record}
    local = {key: moment.replace(tzinfo=zone).timestamp() for key, moment in moments.items() if moment is not None}
    return {**record, **local}


def _splitter(option: str | Mapping[str, str]) -> Splitter:
    parts = {"by": option} if isinstance(option, str) else dict(option)
    kind = parts.pop("by", "auto")
    after, before = parts.pop("after", ""), parts.pop("before", "")
    if parts:
        raise ConfigError(f"split.{next(iter(parts))}: unknown, use by, after and before")
    if kind not in KINDS:
        raise ConfigError(f"split: unknown {kind!r}, use one of {', '.join(KINDS)}")
    return Splitter(kind, after, before)


def split_contexts(sample: Sample, cut: Splitter) -> Sample:
    """Replace each context of a sample by the passages in it, and a prompt as question by the question in it."""
    contexts: list[Context] = []
    question, divided = sample.question, False
    for context in sample.contexts:
        if question is None or context.text in question:  # the prompt is all that was logged of the question
            question = cut.question(context.text)
        passages = cut.passages(context.text, question)
        divided = divided or passages is not None
        contexts += [context] if passages is None else map(Context, passages)
    if sample.contexts and not divided:
        raise fields.missing("contexts", f"is one text in which split ({cut.kind}) tells no passages apart")
    return sample._replace(question=question, contexts=tuple(contexts))
