"""Guesses the format of a log from a few of its records, for `ragwatch map FILE`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ragwatch.errors import FormatError
from ragwatch.formats import FORMATS, fields
from ragwatch.formats.custom import NAME as CUSTOM
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.shape import Record, RecordReader
from ragwatch.formats.times import epoch_seconds

_MAX_DEPTH = 4
_MAX_SHOWN_ERRORS = 3
_MIN_TIME = 946_684_800.0  # the year 2000
_MAX_ROUTE_CHARS = 128
_MESSAGE_PARTS = ("text", "output_text", "input_text", "thinking", "tool_use")
_MAX_ID_CHARS = 80
_SCORE_NAMES = ("score", "similarity", "relevance_score", "relevance", "_score", "distance")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Most likely names first.
QUESTION_NAMES = (
    "question",
    "query",
    "user_query",
    "user_input",
    "prompt",
    "input",
    "user_message",
    "search",
    "ask",
    "q",
)
ANSWER_NAMES = (
    "answer",
    "response",
    "output",
    "completion",
    "reply",
    "result",
    "generated_text",
    "assistant",
    "text",
    "a",
)
_CONTEXT_NAMES = (
    *("contexts", "context", "documents", "docs", "chunks", "passages", "retrieved", "retrieved_documents"),
    *("source_documents", "sources", "hits", "results"),
)
_HISTORY_NAMES = ("history", "chat_history", "conversation", "messages")
_OTHER_NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "id": ("id", "request_id", "requestId", "uuid", "run_id"),
        "at": (
            "at",
            "timestamp",
            "ts",
            "created_at",
            "created",
            "@timestamp",
            "time",
            "timestamp_ms",
            "ts_ms",
            "time_ms",
            "epoch_ms",
            "ts_us",
            "timestamp_us",
            "ts_ns",
            "timestamp_ns",
            "time_unix_nano",
            "timeUnixNano",
            "datetime",
            "event_time",
            "logged_at",
            "start_time",
            "date",
        ),
        "route": ("route", "endpoint", "pipeline", "path", "handler", "operation", "channel"),
        "relevant_ids": ("relevant_ids", "relevant_doc_ids", "gold_ids", "expected_ids", "reference_context_ids"),
        "trace_id": ("trace_id", "traceId"),
    }
)


@dataclass(frozen=True, slots=True)
class FormatGuess:
    """The guessed format of a log.

    Attributes:
        format: A known format, `custom` for a proposed mapping, None if no record gives a hint.
        share: Share of the records that it can read; None without records.
        errors: Errors of the first records that it cannot read.
        mapping: Its JMESPath expressions, as in the configuration.
        certain: False if the mapping was guessed from field names and needs review.
        apart: Whether contexts and answers occur only in separate records.
    """

    format: str | None
    share: float | None
    errors: tuple[str, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)
    certain: bool = False
    apart: bool = False


def guess(records: Sequence[Record]) -> FormatGuess:
    """Return the known format that reads most of the records, or a mapping of likely fields if none reads any."""
    if not records:
        return FormatGuess(None, None)
    guesses = [_try_format(name, shape, records, shape.MAPPING, certain=True) for name, shape in FORMATS.items()]
    best = max(guesses, key=lambda candidate: candidate.share or 0.0)
    if best.share == 1.0:
        return best
    likely = [_likely_fields(record) for record in records]
    whole = [names for names in likely if {"answer", "contexts"} <= names.keys()]
    mapping = _most_voted(whole or likely)  # other records of a mixed log have no vote
    proposed = FormatGuess(None, 0.0)
    if whole:
        proposed = _try_format(CUSTOM, MappingReader(mapping), records, mapping, certain=False)
    if best.share or proposed.share:
        return max(best, proposed, key=lambda candidate: candidate.share or 0.0)
    retrieved, answered = (sum(key in names for names in likely) for key in ("contexts", "answer"))
    if retrieved and (answered or len(likely) > retrieved):
        return FormatGuess(None, 0.0, (_apart(retrieved, answered, len(likely)),), mapping, apart=True)
    close = next((candidate for candidate in guesses if FORMATS[str(candidate.format)].matches(records[0])), None)
    return close or FormatGuess(None, 0.0, (f"no field looks like {_lacking(mapping)}",), mapping)


def propose(records: Sequence[Record]) -> dict[str, str]:
    """Return an expression for each field whose name and content look right in most records; may be empty."""
    likely = [_likely_fields(record) for record in records]
    return _most_voted([names for names in likely if "answer" in names] or likely)


def scalar_paths(record: Record) -> Iterator[tuple[str, str]]:
    """Yield path and name of the fields that hold a text or a number, in the record and in the objects in it."""
    for path, key, value in _walk(record, "", _MAX_DEPTH):
        if _is_scalar(value) and re.fullmatch(r'[A-Za-z0-9_.]+|"[A-Za-z0-9_.]+"', path):
            yield path, key


def _most_voted(likely: Sequence[Mapping[str, str]]) -> dict[str, str]:
    votes: dict[str, Counter[str]] = {}
    for mapping in likely:
        for key, expression in mapping.items():
            votes.setdefault(key, Counter())[expression] += 1
    return {key: counts.most_common(1)[0][0] for key, counts in votes.items()}


def _apart(retrieved: int, answered: int, of: int) -> str:
    answers = f"an answer in {answered} others" if answered else "no answer was recognised in any"
    return (
        f"retrieval and answer seem to be in separate records: contexts are in {retrieved} of {of} records, {answers}; "
        "a sample is one record, so log the answer together with the contexts that it was made from"
    )


def _lacking(mapping: Mapping[str, str]) -> str:
    return " or ".join(key for key in ("answer", "contexts") if key not in mapping)


def _try_format(
    name: str, reader: RecordReader, records: Sequence[Record], mapping: Mapping[str, str], *, certain: bool
) -> FormatGuess:
    errors: list[str] = []
    for record in records:
        try:
            reader.read(record, "?")
        except FormatError as error:
            errors.append(str(error))
    share = 1.0 - len(errors) / len(records)
    return FormatGuess(name, share, tuple(errors[:_MAX_SHOWN_ERRORS]), mapping, certain)


def _likely_fields(record: Record) -> dict[str, str]:
    values = list(_walk(record, "", _MAX_DEPTH))
    lists = [(path, key, projection) for path, key, value in values if (projection := _passages(value)) is not None]
    mapping = {}
    passages = _best([(path + projection, key) for path, key, projection in lists], _CONTEXT_NAMES, strict=False)
    if passages:
        mapping["contexts"] = passages
    inside = [f"{path}[0]" for path, _, _ in lists]
    # A passage is not an answer.
    values = [value for value in values if not any(path in value[0] for path in inside)]
    texts = [(path, key) for path, key, value in values if isinstance(value, str) and value]
    mapping |= {
        name: path
        for name, keys in (("question", QUESTION_NAMES), ("answer", ANSWER_NAMES))
        if (path := _best(texts, keys))
    }
    conversations = [(path, key) for path, key, value in values if _is_conversation(value)]
    if path := _best(conversations, _HISTORY_NAMES):
        mapping["history"] = path
    for name, keys in _OTHER_NAMES.items():
        path = _best([(path, key) for path, key, value in values if _FITS[name](value)], keys)
        if path:
            mapping[name] = path
    return mapping


def _best(paths: Sequence[tuple[str, str]], names: Sequence[str], *, strict: bool = True) -> str | None:
    """Return the path whose key is the most likely name; among equals the first, which is the shallowest."""
    candidates = [(names.index(key), path) for path, key in paths if key in names]
    if candidates:
        return min(candidates, key=lambda candidate: candidate[0])[1]
    return None if strict or not paths else paths[0][0]


def _walk(value: Mapping[str, object], prefix: str, depth: int) -> Iterator[tuple[str, str, object]]:
    """Yield path, last key and value of every field down to `depth` levels, breadth first."""
    level = [(prefix, value)]
    for _ in range(depth):
        deeper: list[tuple[str, Mapping[str, object]]] = []
        for path, parent in level:
            for key, item in parent.items():
                name = key if _IDENTIFIER.fullmatch(key) else _quoted(key)
                child = f"{path}.{name}" if path else name
                decoded = fields.embedded(item)
                location = child if decoded is item else f"from_json({child})"
                yield location, key, decoded
                if isinstance(decoded, dict):
                    deeper.append((location, decoded))
                elif isinstance(decoded, list) and decoded and isinstance(decoded[0], dict):
                    deeper.append((f"{location}[0]", decoded[0]))
        level = deeper


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _passages(value: object) -> str | None:
    """Return the projection to append to the path of a list of passages; None if the value is no such list."""
    if not isinstance(value, list) or not value:
        return None
    item = value[0]
    if isinstance(item, str):
        return None if are_ids([text for text in value if isinstance(text, str)]) else ""
    if not isinstance(item, dict) or "role" in item or item.get("type") in _MESSAGE_PARTS:
        return None
    text_key = next((key for key in fields.TEXT_KEYS if isinstance(item.get(key), str)), None)
    if text_key is None:
        return None
    id_key = next((key for key in fields.CONTEXT_ID_KEYS if key in item), "id")
    score_key = next((key for key in _SCORE_NAMES if isinstance(item.get(key), (int, float))), "score")
    return f"[].{{id: {id_key}, text: {text_key}, score: {score_key}}}"


def _is_conversation(value: object) -> bool:
    """Return whether a value is a list of messages, each with a role."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "role" in item for item in value)


def are_ids(texts: Sequence[str]) -> bool:
    """Return whether all texts are ids of passages rather than passages: one short ASCII word each.

    >>> are_ids(["doc-17#3", "6f1c"]), are_ids(["doc-17#3", "Tea is green."])
    (True, False)
    """
    return bool(texts) and all(
        len(text) <= _MAX_ID_CHARS and text.isascii() and len(text.split()) == 1 for text in texts
    )


def _is_scalar(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    """Return whether a value is a time since 2000, in any unit; a duration is not."""
    try:
        return epoch_seconds(value, "") >= _MIN_TIME
    except FormatError:
        return False


def _is_route(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_ROUTE_CHARS and not any(map(str.isspace, value))


def _is_id_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_scalar, value))


_FITS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {"id": _is_scalar, "at": _is_time, "route": _is_route, "trace_id": _is_scalar, "relevant_ids": _is_id_list}
)
