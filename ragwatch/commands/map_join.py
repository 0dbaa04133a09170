"""Proposes a source of kind `join` where an id repeats over records of different shapes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from ragwatch.commands.log_head import LogHead
from ragwatch.formats import CUSTOM, FORMATS, TRACES
from ragwatch.formats.guess import FormatGuess, guess, scalar_paths
from ragwatch.sources.join.merge import PARTS, RecordPart, merged

_ID_NAMES = (*("trace", "request", "req", "correlation", "transaction", "txn", "run", "uuid"),)
# Ids that several requests share.
_OTHER_IDS = frozenset(
    {
        *("user_id", "userId", "session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId"),
        *("tenant_id", "tenantId", "customer_id", "client_id", "project_id", "model_id", "doc_id", "chunk_id", "pid"),
        *("process_id", "worker_id", "thread", "chat_id", "host_id", "parent_id", "span_id", "spanId", "file_id"),
    }
)
_MAX_CANDIDATES = 8
_KIND_NAMES = ("type", "run_type", "event", "kind")
_MIN_SHARE = 0.5  # of the requests that have records of different shapes
_MIN_REQUESTS = 2
_MAX_PARTS = 200


@dataclass(frozen=True, slots=True)
class JoinGuess:
    """A guessed join.

    Attributes:
        by: Expression of the id.
        number: Number of parts of most requests.
        requests: Number of requests whose parts are all in the records.
        guess: Format of the joined records.
        strays: Number of records without the id.
    """

    by: str
    number: int
    requests: int
    guess: FormatGuess
    strays: int


def guess_join(logs: Sequence[LogHead]) -> JoinGuess | None:
    """Return how the records of some logs can be joined to samples; None if no id repeats over different shapes."""
    placed = [(place, record) for place, log in enumerate(logs) for record in log.bare]
    candidates = (_of_path(path, placed) for path in _id_paths(placed))
    best = max(filter(None, candidates), key=lambda one: (one.guess.share or 0.0, one.requests), default=None)
    return best if best is not None and (best.guess.share or 0.0) >= _MIN_SHARE else None


def _id_paths(placed: Sequence[tuple[int, Mapping[str, object]]]) -> list[str]:
    """Paths of fields that are named like an id, the most frequent first."""
    paths = Counter(path for _, record in placed for path, key in scalar_paths(record) if _is_id(key))
    return [path for path, times in paths.most_common(_MAX_CANDIDATES) if times > 1]


def _is_id(name: str) -> bool:
    return name in _ID_NAMES or (name.lower().endswith(("id", "uuid")) and name not in _OTHER_IDS)


def _of_path(path: str, placed: Sequence[tuple[int, Mapping[str, object]]]) -> JoinGuess | None:
    groups: defaultdict[str, list[RecordPart]] = defaultdict(list)
    shapes: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    strays = 0
    for place, record in placed:
        value = _at(record, path)
        if value is None:
            strays += 1
            continue
        groups[str(value)].append(RecordPart(place, orjson.dumps(record)))
        shapes[str(value)].add(_shape(record))
    several = [group for group, parts in groups.items() if 1 < len(parts) <= _MAX_PARTS and len(shapes[group]) > 1]
    if len(several) < max(_MIN_REQUESTS, _MIN_SHARE * len(groups)):
        return None
    number = Counter(len(groups[group]) for group in several).most_common(1)[0][0]
    whole = [group for group in several if len(groups[group]) == number]
    records = [{**merged(groups[group], group)} for group in whole]
    traced = guess(records)  # traces are read from their parts
    if traced.format in TRACES and traced.share:
        return JoinGuess(path, number, len(several), traced, strays)
    for record in records:
        del record[PARTS]
    return JoinGuess(path, number, len(whole), guess(records), strays)


def _shape(record: Mapping[str, object]) -> frozenset[str]:
    """The fields of a record that have a value, and its kind where it names one."""
    names = {key for key, value in record.items() if value is not None}
    return frozenset(names | {f"{key}={record[key]}" for key in _KIND_NAMES if isinstance(record.get(key), str)})


def _at(record: Mapping[str, object], path: str) -> object:
    value: object = record
    for key in [path.strip('"')] if path.startswith('"') else path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None


def join_yaml(proposal: JoinGuess, logs: Sequence[tuple[str, LogHead]]) -> Iterator[str]:
    """Yield the lines of YAML for a source of kind `join`."""
    share = proposal.guess.share or 0.0
    yield f"# {proposal.requests} requests are in {proposal.number} records each, with the same {proposal.by};"
    yield f"# joined, {share:.0%} of them can be read. A whole source, in place of kind, name and path:"
    yield "kind: join"
    yield "name: app"
    yield "of:"
    for number, (name, log) in enumerate(logs, start=1):
        inner = {"kind": "tail", "name": "parts" if len(logs) == 1 else f"part{number}", "path": name}
        if log.prefixed:
            inner["prefix"] = "auto"
        if proposal.strays or (log.texts.counts and not log.prefixed):
            inner["where"] = f"{proposal.by} != `null`"
        yield f"  - {json.dumps(inner, ensure_ascii=False)}"
    yield f"by: {json.dumps(proposal.by)}"
    yield "within: 5m"
    if proposal.guess.format in TRACES:
        yield "complete: '`false`' # nothing says how many rows a trace has: wait for the whole time"
    elif proposal.number > 2:
        yield f"parts: {proposal.number}"
    yield f"format: {proposal.guess.format}"
    if proposal.guess.format in FORMATS and (bias := FORMATS[str(proposal.guess.format)].KNOWN_BIAS):
        yield f"# known bias: {bias}"
    if proposal.guess.format == CUSTOM:
        yield "mapping:"
        mapping = {key: path for key, path in proposal.guess.mapping.items() if key != "id"}
        yield from (f"  {key}: {json.dumps(expression)}" for key, expression in mapping.items())
