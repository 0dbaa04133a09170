"""Guessing a log's shape from a few of its records, for `ragwatch map FILE`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ragwatch.core.sample import NOTHING
from ragwatch.errors import FormatError
from ragwatch.formats import FORMATS, fields
from ragwatch.formats.custom import NAME as CUSTOM
from ragwatch.formats.custom import Custom
from ragwatch.formats.shape import Reader, Record

_DEEPEST = 4
_SHOWN = 3
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
        "at": ("at", "timestamp", "ts", "created_at", "created", "@timestamp", "time"),
        "route": ("route", "endpoint", "pipeline"),
        "trace_id": ("trace_id", "traceId"),
    }
)


@dataclass(frozen=True, slots=True)
class Guess:
    """What a log looks like.

    Attributes:
        format: A known format, `custom` for a proposed mapping, None when no record gives a hint.
        share: Records that it reads / records seen; None of no records.
        errors: What it says of the first records that it does not read.
        mapping: Its expressions, as a configuration could hold them.
        certain: False when the mapping was put together from likely names: a person should look at it.
    """

    format: str | None
    share: float | None
    errors: tuple[str, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    certain: bool = False


def guess(records: Sequence[Record]) -> Guess:
    """The known format that reads most of the records, or a mapping of likely fields when none reads any."""
    if not records:
        return Guess(None, None)
    tried = [_tried(name, shape, records, shape.MAPPING, certain=True) for name, shape in FORMATS.items()]
    best = max(tried, key=lambda found: found.share or 0.0)
    if best.share:
        return best
    mapping = propose(records)
    if "answer" in mapping and "contexts" in mapping:
        return _tried(CUSTOM, Custom(mapping), records, mapping, certain=False)
    close = next((found for found in tried if FORMATS[str(found.format)].matches(records[0])), None)
    return close or Guess(None, 0.0, (f"no field looks like {_lacking(mapping)}",), mapping)


def propose(records: Sequence[Record]) -> dict[str, str]:
    """An expression for each field whose name and content look right in most records; maybe none."""
    votes: dict[str, Counter[str]] = {}
    for record in records:
        for key, expression in _likely(record).items():
            votes.setdefault(key, Counter())[expression] += 1
    return {key: found.most_common(1)[0][0] for key, found in votes.items()}


def _lacking(mapping: Mapping[str, str]) -> str:
    return " or ".join(key for key in ("answer", "contexts") if key not in mapping)


def _tried(name: str, reader: Reader, records: Sequence[Record], mapping: Mapping[str, str], *, certain: bool) -> Guess:
    errors: list[str] = []
    for record in records:
        try:
            reader.read(record, "?")
        except FormatError as error:
            errors.append(str(error))
    share = 1.0 - len(errors) / len(records)
    return Guess(name, share, tuple(errors[:_SHOWN]), mapping, certain)


def _likely(record: Record) -> dict[str, str]:
    places = list(_walk(record, "", _DEEPEST))
    lists = [(path, key, form) for path, key, value in places if (form := _passages(value)) is not None]
    found = {}
    passages = _best([(path + form, key) for path, key, form in lists], _CONTEXTS, strict=False)
    if passages:
        found["contexts"] = passages
    texts = [(path, key) for path, key, value in places if isinstance(value, str) and value]
    found |= {
        name: path for name, keys in (("question", _QUESTION), ("answer", _ANSWER)) if (path := _best(texts, keys))
    }
    scalars = [(path, key) for path, key, value in places if isinstance(value, (str, int, float))]
    return found | {name: path for name, keys in _OTHER.items() if (path := _best(scalars, keys))}


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
        return ""
    if not isinstance(item, dict) or "role" in item:
        return None
    text_key = next((key for key in fields.TEXT_KEYS if isinstance(item.get(key), str)), None)
    if text_key is None:
        return None
    id_key = next((key for key in fields.CONTEXT_ID_KEYS if key in item), "id")
    return f"[].{{id: {id_key}, text: {text_key}, score: score}}"
