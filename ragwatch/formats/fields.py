"""Fields that formats share, and times. Errors name the path of the field."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from sys import float_info

import orjson

from ragwatch.errors import FormatError
from ragwatch.formats import names
from ragwatch.formats.record import Record, decode
from ragwatch.model.sample import NO_METADATA, Context, RejectReason

TEXT_KEYS = ("text", "content", "page_content", "chunk", "body")
ID_KEYS = ("id", "request_id", "run_id")
LIST_KEYS = ("contexts", "documents", "results", "context", "retrieved_contexts", "source_documents", "chunks", "hits")
CONTEXT_ID_KEYS = ("id", "chunk_id", "doc_id", "document_id")
DATE_KEYS = ("updated_at", "last_updated", "modified_at", "last_modified", "indexed_at", "version")
"""Names of the date of a document; a version counts only where it is a date."""
REFERENCE_KEYS = ("reference_answer", "ground_truth", "expected_answer", "gold_answer", "expected_output", "ideal")
"""Other names of `reference`. A value that is no text, such as a list of ids, is another thing under this name."""
TIME_KEYS = ("at", "timestamp", "ts", "created_at", "created")
EARLIEST, LATEST = 946_684_800.0, 4_102_444_800.0
"""The years 2000 to 2099: other times are a zero, a duration, a counter or a number in another unit."""
MAX_NUMBER = float_info.max
MAX_METADATA_DEPTH = 32
_IDS_ADVICE = "hold ids instead of texts; log the texts that the retriever returned, or set `resolve` of the source"
_SLASHED = re.compile(r"\d{4}/\d\d/\d\d[ T]")  # 2026/01/31 09:30:00
_OF_WEB_SERVERS = re.compile(r"\d\d/[A-Z][a-z]{2}/\d{4}(?::\d\d){3} [+-]\d{4}")  # 31/Jan/2026:09:30:00 +0000
_OF_MAIL = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} ")  # Sat, 31 Jan 2026 09:30:00 GMT
# Texts with the escapes that Python prints, and a list of not too many of them.
_LITERAL = re.compile(r"""'[^'\\]*(?:\\[\\'"nrtxuU][^'\\]*)*'|"[^"\\]*(?:\\[\\'"nrtxuU][^"\\]*)*\"""")
_PRINTED = re.compile(rf"\[\s*(?:(?:{_LITERAL.pattern})[\s,]*){{1,1000}}\]")
_DATED = re.compile(r"20\d\d-?\d\d-?\d\d(?:[T ].{1,30})?")
_ID = re.compile(r"(?=.*(?:\d|[A-Za-z][-_#/:.][A-Za-z]))[A-Za-z0-9_#/:.@+=|~-]{1,80}")
_TELLING = names.place("question", "prompt")  # rank below which a name says that a user asked the question
_KINDS = {str: "text", list: "a list", dict: "an object", bool: "a boolean", type(None): "null"}
_DATE, _SECOND = len("20260501"), len("20260501100000")
_DATES = (_DATE, _SECOND)  # as numbers of seconds these would be a time in 1970 and one after 2286
# A number above a limit is in that fraction of a second: seconds reach 1e11 in the year 5138.
_MAX_SECONDS = 10**11
_UNITS = ((10**17, 10**9), (10**14, 10**6), (_MAX_SECONDS, 10**3))


def missing(path: str, message: str = "is missing") -> FormatError:
    """Return the error for a missing field."""
    return FormatError(RejectReason.MISSING_FIELD, path, message)


def wrong(path: str, expected: str, value: object) -> FormatError:
    """Return the error for a field of the wrong type."""
    return FormatError(RejectReason.WRONG_TYPE, path, f"must be {expected}, not {_KINDS.get(type(value), 'a number')}")


def required(record: Record, key: str) -> object:
    """Return the value under `key`, which may be null."""
    try:
        return record[key]
    except KeyError:
        raise missing(key) from None


def text(value: object, path: str) -> str:
    """Return a text, never null."""
    if isinstance(value, str):
        return value
    raise wrong(path, "text", value)


def optional_text(value: object, path: str) -> str | None:
    """Return a text, or None for null."""
    return None if value is None else text(value, path)


def identity(value: object, path: str) -> str | None:
    """Return an id from text or an integer; None for null and for empty text.

    Floats are refused: JSON integers beyond 64 bits are rounded to floats, and two requests could get the same id.
    """
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise wrong(path, "text or an integer of at most 64 bits", value)


def first(record: Record, keys: Sequence[str]) -> tuple[str, object]:
    """Return the first of `keys` that has a value, and that value; the last key and None if there is none.

    An empty text is a value only where there is no other.

    >>> first({"text": "", "content": "c"}, TEXT_KEYS), first({"text": ""}, TEXT_KEYS)
    (('content', 'c'), ('text', ''))
    """
    empty = None
    for key in keys:
        value = record.get(key)
        if value is not None:
            if value != "":
                return key, value
            empty = empty or key
    return (keys[-1], None) if empty is None else (empty, "")


def at(value: object, path: Iterable[str]) -> object:
    """Return what a path of names leads to in an object; None if it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def embedded(value: object) -> object:
    """Decode a JSON object or array that was logged as text, or a printed list of texts; return all else unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return decode(value)
    except orjson.JSONDecodeError:
        return value if _PRINTED.fullmatch(value.strip()) is None else _printed(value)


def _printed(value: str) -> object:
    """The texts of a list as Python or numpy prints it; the text itself where one of them cannot be read."""
    try:
        texts = [str(ast.literal_eval(text)) for text in _LITERAL.findall(value)]
        "".join(texts).encode()  # half of a character is no text
    except (SyntaxError, ValueError):
        return value
    return texts


_tuple = tuple.__new__  # bypasses `Context.__new__`, in half the time
_CONTAINERS = frozenset({dict, list})
_SELDOM = frozenset({"step", *DATE_KEYS})


def contexts(value: object, path: str) -> tuple[Context, ...]:
    """Return contexts from a list of texts or of objects with a text (see TEXT_KEYS), in the order of the list.

    A single text or object is one context; JSON that was logged as text is decoded. Contexts that are all ids of
    passages, each one short word with a digit or a mark inside, are an error.
    """
    if not isinstance(value, list):
        value = _list_of(value, path)
    parsed: list[Context] = []
    for item in value:
        # Fast path for the most common context, an object with text, id and score, at a third of the cost.
        if type(item) is dict:
            try:
                passage, name, score = item["text"], item["id"], item["score"]
            except KeyError:
                pass
            else:
                # Excludes infinity and NaN: score - score is 0 for every finite number.
                if (
                    type(passage) is str
                    and passage
                    and (type(name) is str or (name is None and len(item) == 3))
                    and (score is None or (type(score) is float and score - score == 0.0))
                    and (len(item) == 3 or _SELDOM.isdisjoint(item))
                ):
                    parsed.append(_tuple(Context, (passage, name, score, None, None)))
                    continue
        parsed.append(_context(item, path, len(parsed)))
    if parsed and " " not in parsed[0][0] and all(_ID.fullmatch(passage.text.strip()) for passage in parsed):
        raise FormatError(RejectReason.CONTEXT_IDS, path, _IDS_ADVICE)
    return tuple(parsed)


def _list_of(value: object, path: str) -> list[object]:
    """Contexts that were not logged as a list, but as text, as JSON in a text, or as one object."""
    decoded = embedded(value)
    if isinstance(decoded, dict):
        inner = first(decoded, LIST_KEYS)[1]
        if isinstance(inner, list):
            return inner
        if first(decoded, TEXT_KEYS)[1] is not None:
            return [decoded]
    if isinstance(decoded, list):
        return decoded
    if isinstance(value, str):
        return [value] if value.strip() else []
    raise wrong(path, "a list", value)


def _context(item: object, path: str, rank: int) -> Context:
    if isinstance(item, str):
        return Context(item)
    if not isinstance(item, dict):
        raise wrong(f"{path}[{rank}]", "text or an object", item)
    key, passage = first(item, TEXT_KEYS)
    if passage is None:
        key, passage = _named("text", item)
    if passage is None:
        raise missing(f"{path}[{rank}].text", f"is missing (none of {', '.join(TEXT_KEYS)})")
    if not isinstance(passage, str):
        raise wrong(f"{path}[{rank}].{key}", "text", passage)
    name = item.get("id")
    if not isinstance(name, str):
        key, name = first(item, CONTEXT_ID_KEYS)
        key, name = _named("context_id", item) if name is None else (key, name)
        name = None if name is None else identity(name, f"{path}[{rank}].{key}")
    score = item.get("score")
    if score is not None:
        if not isinstance(score, (int, float)) or isinstance(score, bool) or not abs(score) <= MAX_NUMBER:
            raise wrong(f"{path}[{rank}].score", "a finite number", score)
        score = float(score)
    step = item.get("step")
    key, date = logged_date(item)
    date = None if date is None else plausible_time(date, f"{path}[{rank}].{key}")
    return Context(passage, name, score, step if isinstance(step, str) else None, date)


def logged_date(item: Record) -> tuple[str, object]:
    """Return the name and value of the date of a document; None as value if it has none."""
    key, value = first(item, DATE_KEYS)
    is_date = value != "" if key != DATE_KEYS[-1] else isinstance(value, str) and _DATED.fullmatch(value)
    return key, value if is_date else None


def _named(part: str, item: Record) -> tuple[str, object]:
    """The field of an object with the most likely name of a part, and its value; None if there is none."""
    name = names.best(part, (key for key, value in item.items() if isinstance(value, (str, int)) and value != ""))
    return ("", None) if name is None else (name, item[name])


def metadata(record: Record) -> Mapping[str, object]:
    """Return the record's metadata, including its top-level `trace_id`."""
    values = record.get("metadata")
    trace_id = record.get("trace_id")
    if values is None:
        return {"trace_id": trace_id} if isinstance(trace_id, str) else NO_METADATA
    if not isinstance(values, dict):
        raise wrong("metadata", "an object", values)
    # Most metadata is flat, which this check finds out in C.
    if not _CONTAINERS.isdisjoint(map(type, values.values())) and not _shallow(values, MAX_METADATA_DEPTH):
        # Deeper values could not be stored: JSON encoders have a lower limit than decoders.
        raise FormatError(RejectReason.TOO_DEEP, "metadata", f"is nested deeper than {MAX_METADATA_DEPTH}")
    return {**values, "trace_id": trace_id} if isinstance(trace_id, str) else values


def _shallow(value: dict[str, object] | list[object], depth: int) -> bool:
    if not depth:
        return False
    parts = value.values() if isinstance(value, dict) else value
    return all(_shallow(part, depth - 1) for part in parts if isinstance(part, (dict, list)))


def asked(record: Record) -> str | None:
    """Return the question beside a response that does not hold it; None if the record names none."""
    if "question" in record:
        text_of = record["question"]
        return text_of if isinstance(text_of, str) and text_of.strip() else None
    for key, value in record.items():
        if isinstance(value, str) and value.strip() and names.rank("question", key) < _TELLING:
            return value
    return None


def epoch_seconds(value: object, path: str) -> float:
    """Convert ISO 8601 text (UTC if it has no offset) or a number of s, ms, us or ns to seconds since the epoch."""
    if isinstance(value, str):
        return _from_text(value, path)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _from_number(value, path)
    raise _no_time(value, path)


def plausible_time(value: object, path: str) -> float:
    """Convert the time of an answer or a document, which lies between `EARLIEST` and `LATEST`."""
    seconds = epoch_seconds(value, path)
    if EARLIEST <= seconds <= LATEST:
        return seconds
    message = f"{str(value)[:40]!r} is no plausible time of an answer or document, which lies in the years 2000 to 2099"
    raise FormatError(RejectReason.IMPLAUSIBLE_TIME, path, message)


def without_offset(value: object) -> datetime | None:
    """Return the moment in an ISO 8601 text that has a time of day and no offset; None for anything else."""
    if not isinstance(value, str) or len(value) <= len("2026-05-01") or value.replace(".", "", 1).isdecimal():
        return None
    try:
        moment = _moment(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _moment(text: str) -> datetime:
    """Read a moment in ISO 8601, or as Go, web servers and mail write it; ValueError if it is none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        if _OF_WEB_SERVERS.fullmatch(text):
            return datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
        if _OF_MAIL.match(text):
            with suppress(OverflowError):  # a number that is too large for a part of a date
                return parsedate_to_datetime(text)
        if not _SLASHED.match(text):
            raise
        return datetime.fromisoformat(text.replace("/", "-", 2))


def _from_text(text: str, path: str) -> float:
    # Digits are read as a number before a date: ISO's basic format allows any separator instead of T, so that one in
    # two hundred timestamps in milliseconds, such as "1794010112345", would also be valid as 23:45 of 1 January 1794.
    compact = text.isdecimal() and len(text) in _DATES
    if compact or not text.replace(".", "", 1).isdecimal():
        iso = f"{text[:_DATE]}T{text[_DATE:]}" if compact and len(text) > _DATE else text
        with suppress(ValueError):
            moment = _moment(iso)
            return _from_number((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), path)
    try:
        # Integers stay integers: as floats, nanoseconds would be off by hundreds.
        return _from_number(int(text) if len(text) < 20 and text.isdecimal() else float(text), path)
    except ValueError:
        raise _no_time(text, path) from None


def _from_number(number: float, path: str) -> float:
    if 0 <= number <= _MAX_SECONDS:
        return float(number)
    if not 0 <= number <= MAX_NUMBER:
        raise _no_time(number, path)
    return number / next(per_second for limit, per_second in _UNITS if number > limit)


def _no_time(value: object, path: str) -> FormatError:
    message = f"must be ISO 8601 or a number of seconds since 1970, not {str(value)[:40]!r}"
    return FormatError(RejectReason.WRONG_TYPE, path, message)
