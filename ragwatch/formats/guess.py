"""Guessing a log's shape from a few of its records, for `ragwatch map FILE`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ragwatch.core.sample import NOTHING
from ragwatch.errors import FormatError
from ragwatch.formats import FORMATS, fields
from ragwatch.formats.custom import NAME as CUSTOM
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.shape import Record, RecordReader
from ragwatch.formats.times import epoch_seconds

_DEEPEST = 4
_SHOWN = 3
_EARLIEST = 946_684_800.0  # the year 2000
_LONGEST_ROUTE = 128
_LONGEST_ID = 80
_SCORES = ("score", "similarity", "relevance_score", "relevance", "_score", "distance")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The likelier name stands first.
_QUESTION = ("question", "query", "user_query", "user_input", "prompt", "input", "user_message", "search", "ask", "q")
_ANSWER = ("answer", "response", "output", "completion", "reply", "result", "generated_text", "assistant", "text", "a")
_CONTEXTS = (
    *("contexts", "context", "documents", "docs", "chunks", "passages", "retrieved", "retrieved_documents"),
    *("source_documents", "sources", "hits", "results"),
)
_OTHER: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "id": ("id", "request_id", "requestId", "uuid", "run_id"),
        "at": (
            *(
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
            ),
            *(
                "epoch_ms",
                "ts_us",
                "timestamp_us",
                "ts_ns",
                "timestamp_ns",
                "time_unix_nano",
                "timeUnixNano",
                "datetime",
            ),
            *("event_time", "logged_at", "start_time", "date"),
        ),
        "route": ("route", "endpoint", "pipeline", "path", "handler", "operation", "channel"),
        "trace_id": ("trace_id", "traceId"),
    }
)


@dataclass(frozen=True, slots=True)
class FormatGuess:
    """What a log looks like.

    Attributes:
        format: A known format, `custom` for a proposed mapping, None when no record gives a hint.
        share: Records that it reads / records seen; None of no records.
        errors: What it says of the first records that it does not read.
        mapping: Its expressions, as a configuration could hold them.
        certain: False when the mapping was put together from likely names: a person should look at it.
        apart: Contexts and answers are there, and never in one record.
    """

    format: str | None
    share: float | None
    errors: tuple[str, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    certain: bool = False
    apart: bool = False


def guess(records: Sequence[Record]) -> FormatGuess:
    """The known format that reads most of the records, or a mapping of likely fields when none reads any."""
    if not records:
        return FormatGuess(None, None)
    tried = [_tried(name, shape, records, shape.MAPPING, certain=True) for name, shape in FORMATS.items()]
    best = max(tried, key=lambda found: found.share or 0.0)
    if best.share == 1.0:
        return best
    likely = [_likely(record) for record in records]
    mapping = _voted(likely)
    proposed = FormatGuess(None, 0.0)
    if any({"answer", "contexts"} <= each.keys() for each in likely):
        proposed = _tried(CUSTOM, MappingReader(mapping), records, mapping, certain=False)
    if best.share or proposed.share:
        return max(best, proposed, key=lambda found: found.share or 0.0)
    retrieved, answered = (sum(key in each for each in likely) for key in ("contexts", "answer"))
    if retrieved and (answered or len(likely) > retrieved):
        return FormatGuess(None, 0.0, (_apart(retrieved, answered, len(likely)),), mapping, apart=True)
    close = next((found for found in tried if FORMATS[str(found.format)].matches(records[0])), None)
    return close or FormatGuess(None, 0.0, (f"no field looks like {_lacking(mapping)}",), mapping)


def propose(records: Sequence[Record]) -> dict[str, str]:
    """An expression for each field whose name and content look right in most records; maybe none."""
    return _voted([_likely(record) for record in records])


def _voted(likely: Sequence[Mapping[str, str]]) -> dict[str, str]:
    votes: dict[str, Counter[str]] = {}
    for found in likely:
        for key, expression in found.items():
            votes.setdefault(key, Counter())[expression] += 1
    return {key: counts.most_common(1)[0][0] for key, counts in votes.items()}


def _apart(retrieved: int, answered: int, of: int) -> str:
    said = f"an answer in {answered} others" if answered else "no answer was recognised in any"
    return (
        f"retrieval and answer seem to be in separate records: contexts are in {retrieved} of {of} records, {said}; "
        "a sample is one record, so log the answer together with the contexts that it was made from"
    )


def _lacking(mapping: Mapping[str, str]) -> str:
    return " or ".join(key for key in ("answer", "contexts") if key not in mapping)


def _tried(
    name: str, reader: RecordReader, records: Sequence[Record], mapping: Mapping[str, str], *, certain: bool
) -> FormatGuess:
    errors: list[str] = []
    for record in records:
        try:
            reader.read(record, "?")
        except FormatError as error:
            errors.append(str(error))
    share = 1.0 - len(errors) / len(records)
    return FormatGuess(name, share, tuple(errors[:_SHOWN]), mapping, certain)


def _likely(record: Record) -> dict[str, str]:
    places = list(_walk(record, "", _DEEPEST))
    lists = [(path, key, form) for path, key, value in places if (form := _passages(value)) is not None]
    found = {}
    passages = _best([(path + form, key) for path, key, form in lists], _CONTEXTS, strict=False)
    if passages:
        found["contexts"] = passages
    inside = [f"{path}[0]" for path, _, _ in lists]
    places = [each for each in places if not any(path in each[0] for path in inside)]  # a passage is no answer
    texts = [(path, key) for path, key, value in places if isinstance(value, str) and value]
    found |= {
        name: path for name, keys in (("question", _QUESTION), ("answer", _ANSWER)) if (path := _best(texts, keys))
    }
    for name, keys in _OTHER.items():
        path = _best([(path, key) for path, key, value in places if _FITS[name](value)], keys)
        if path:
            found[name] = path
    return found


def _best(places: Sequence[tuple[str, str]], names: Sequence[str], *, strict: bool = True) -> str | None:
    """The path whose key is the likeliest name; of equals, the one met first, which is the shallowest."""
    known = [(names.index(key), path) for path, key in places if key in names]
    if known:
        return min(known, key=lambda entry: entry[0])[1]
    return None if strict or not places else places[0][0]


def _walk(value: Mapping[str, Any], prefix: str, room: int) -> Iterator[tuple[str, str, Any]]:
    """Path, last key and value of every field down to `room` levels, level by level."""
    level = [(prefix, value)]
    for _ in range(room):
        deeper: list[tuple[str, Mapping[str, Any]]] = []
        for path, found in level:
            for key, part in found.items():
                name = key if _PLAIN.fullmatch(key) else '"{}"'.format(key.replace("\\", "\\\\").replace('"', '\\"'))
                here = f"{path}.{name}" if path else name
                opened = fields.embedded(part)
                place = here if opened is part else f"from_json({here})"
                yield place, key, opened
                if isinstance(opened, dict):
                    deeper.append((place, opened))
                elif isinstance(opened, list) and opened and isinstance(opened[0], dict):
                    deeper.append((f"{place}[0]", opened[0]))
        level = deeper


def _passages(value: object) -> str | None:
    """What to append to the path of a list of passages; None when the value is no such list."""
    if not isinstance(value, list) or not value:
        return None
    item = value[0]
    if isinstance(item, str):
        return None if are_ids([each for each in value if isinstance(each, str)]) else ""
    if not isinstance(item, dict) or "role" in item:
        return None
    text_key = next((key for key in fields.TEXT_KEYS if isinstance(item.get(key), str)), None)
    if text_key is None:
        return None
    id_key = next((key for key in fields.CONTEXT_ID_KEYS if key in item), "id")
    score_key = next((key for key in _SCORES if isinstance(item.get(key), (int, float))), "score")
    return f"[].{{id: {id_key}, text: {text_key}, score: {score_key}}}"


def are_ids(texts: Sequence[str]) -> bool:
    """Whether all of some texts are names of passages rather than passages: one short ASCII word each.

    >>> are_ids(["doc-17#3", "6f1c"]), are_ids(["doc-17#3", "Tea is green."])
    (True, False)
    """
    return bool(texts) and all(len(each) <= _LONGEST_ID and each.isascii() and len(each.split()) == 1 for each in texts)


def _is_scalar(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    """Whether a value is a moment of our days, in any unit; a duration is none."""
    try:
        return epoch_seconds(value, "") >= _EARLIEST
    except FormatError:
        return False


def _is_route(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_ROUTE and not any(map(str.isspace, value))


_FITS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {"id": _is_scalar, "at": _is_time, "route": _is_route, "trace_id": _is_scalar}
)
