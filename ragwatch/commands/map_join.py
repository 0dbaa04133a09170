"""Proposes a source of kind `join` where an id repeats over records of different shapes."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from ragwatch.commands.log_head import LogHead
from ragwatch.errors import FormatError
from ragwatch.formats import CUSTOM, FORMATS, TRACES, build, fields, names
from ragwatch.formats.expressions import extractor
from ragwatch.formats.fields import epoch_seconds
from ragwatch.formats.guessing.guess import FormatGuess, guess
from ragwatch.formats.guessing.log_fields import log_fields
from ragwatch.sources.join.merge import (
    KIND_NAMES,
    MIN_PIECES,
    PARTS,
    Pieces,
    RecordPart,
    is_piece,
    merged,
    shape_of,
    text_paths,
)

_MAX_CANDIDATES = 8
_MIN_SHARE = 0.5  # of the requests that have records of different shapes
_MIN_REQUESTS = 2
_MAX_PARTS = 500
_WORD = re.compile(r"\w+")
_PLAIN = re.compile(r'[A-Za-z0-9_.]+|"[A-Za-z0-9_.]+"')


@dataclass(frozen=True, slots=True)
class StreamGuess:
    """How requests end whose answers are logged in pieces."""

    piece: str | None  # expression of a piece; None where a whole answer stands beside them
    complete: str | None  # condition on the last part; None if nothing marks it


@dataclass(frozen=True, slots=True)
class JoinGuess:
    """A guessed join."""

    by: str  # expression of the id
    number: int  # number of parts of most requests
    requests: int  # number of requests whose parts are all in the records
    guess: FormatGuess  # format of the joined records
    strays: int  # number of records without the id
    stream: StreamGuess | None = None  # how answers in pieces are joined; None if they are whole


def guess_join(logs: Sequence[LogHead]) -> JoinGuess | None:
    """Return how the records of some logs can be joined to samples; None if no id repeats over different shapes."""
    placed = [(place, record) for place, log in enumerate(logs) for record in log.bare]
    candidates = (_of_path(path, placed) for path in _id_paths(placed))
    best = max(filter(None, candidates), key=lambda one: (one.guess.share, one.requests), default=None)
    return best if best is not None and best.guess.share >= _MIN_SHARE else None


def _id_paths(placed: Sequence[tuple[int, Mapping[str, object]]]) -> list[str]:
    """Paths of fields that are named like an id, the most frequent first."""
    known = [field for field in log_fields([record for _, record in placed]) if not field.in_list]
    times = Counter(
        {
            field.path: len(field.values)
            for field in known
            if names.is_request_id(field.names[-1]) and _PLAIN.fullmatch(field.path)
        }
    )
    return [path for path, number in times.most_common(_MAX_CANDIDATES) if number > 1]


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
    if (streamed := _streamed(path, [(group, groups[group]) for group in several], strays)) is not None:
        return streamed
    number = Counter(len(groups[group]) for group in several).most_common(1)[0][0]
    whole = [group for group in several if len(groups[group]) == number]
    records = [{**merged(groups[group], group)} for group in whole]
    traced = guess(records)  # traces are read from their parts
    if traced.format in TRACES and traced.share:
        return JoinGuess(path, number, len(several), traced, strays)
    rows = [record.pop(PARTS) for record in records]
    joined = guess(records)
    return JoinGuess(
        path, number, len(whole), replace(joined, problems=joined.problems + _hidden(joined, rows)), strays
    )


def _hidden(joined: FormatGuess, groups: Sequence[object]) -> tuple[str, ...]:
    """Which fields of a sample have several values in a request, of which only the last one would be read."""
    read = " ".join(joined.mapping.get(part) or part for part in ("question", "contexts", "answer"))
    values: defaultdict[tuple[int, str], set[bytes]] = defaultdict(set)
    for number, rows in enumerate(groups):
        for row in rows if isinstance(rows, list) else ():
            for name in row.keys() & set(_WORD.findall(read)):
                values[number, name].add(orjson.dumps(row[name]))
    several = sorted({name for (_, name), different in values.items() if len(different - {b"null"}) > 1})
    return tuple(
        f"several records of a request hold {name}, and only the last one is read: map the one that is meant, as "
        f"parts[0].{name}, or all of them, as parts[].{name}[]"
        for name in several
    )


def _streamed(path: str, groups: Sequence[tuple[str, list[RecordPart]]], strays: int) -> JoinGuess | None:
    """The join of requests of which most hold an answer in pieces; None if they do not."""
    rows = [[orjson.loads(part.text) for part in parts] for _, parts in groups]
    places = Counter(filter(None, map(_piece_path, rows)))
    if not places or places.total() < _MIN_SHARE * len(groups):
        return None
    piece = places.most_common(1)[0][0]
    marks = Counter(filter(None, map(_mark_of, rows)))
    complete = next((mark for mark, times in marks.most_common(1) if times >= _MIN_SHARE * len(groups)), None)
    number = Counter(map(len, rows)).most_common(1)[0][0]
    join = JoinGuess(path, number, len(groups), FormatGuess(None, 0.0), strays)
    plain = [merged(parts, group) for group, parts in groups]
    whole = guess([{key: value for key, value in record.items() if key != PARTS} for record in plain])
    if whole.share >= _MIN_SHARE and not _holds_pieces(whole, plain):
        return replace(join, guess=whole, stream=StreamGuess(None, complete))
    pieces = Pieces({"answer": extractor("piece", piece)})
    records = [merged(parts, group, pieces) for group, parts in groups]
    for record in records:
        del record[PARTS]
    return replace(join, guess=guess(records), stream=StreamGuess(piece, complete))


def _piece_path(rows: Sequence[Mapping[str, object]]) -> str | None:
    """Where records of one shape hold several different texts that are words together; None if they do not."""
    shapes: defaultdict[int, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        shapes[shape_of(row)].append(text_paths(row))
    for texts in shapes.values():
        for path in texts[0] if len(texts) >= MIN_PIECES else ():
            values = [one[path] for one in texts if path in one]
            is_prose = any(character.isspace() for value in values for character in value)
            if len(set(values)) >= MIN_PIECES and is_prose and not all(map(_is_time, values)):
                return path
    return None


def _is_time(text: str) -> bool:
    try:
        epoch_seconds(text, "")
    except FormatError:
        return False
    return True


def _mark_of(rows: Sequence[Mapping[str, object]]) -> str | None:
    """A condition that is true for the last of some records only, by the kind that it names; None if there is none."""
    for name in KIND_NAMES:
        value = rows[-1].get(name)
        if isinstance(value, str) and "'" not in value and sum(row.get(name) == value for row in rows) == 1:
            return f"{name} == '{value}'"
    return None


def _holds_pieces(whole: FormatGuess, records: Sequence[Mapping[str, object]]) -> bool:
    reader = build(str(whole.format), whole.mapping if whole.format == CUSTOM else None)
    for record in records:
        try:
            if is_piece(record, reader.read(record, "?").answer):
                return True
        except FormatError:
            continue
    return False


def _shape(record: Mapping[str, object]) -> frozenset[str]:
    """The fields of a record that have a value, and its kind where it names one."""
    names = {key for key, value in record.items() if value is not None}
    return frozenset(names | {f"{key}={record[key]}" for key in KIND_NAMES if isinstance(record.get(key), str)})


def _at(record: Mapping[str, object], path: str) -> object:
    value = fields.at(record, [path.strip('"')] if path.startswith('"') else path.split("."))
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None


def join_yaml(proposal: JoinGuess, logs: Sequence[tuple[str, LogHead]]) -> Iterator[str]:
    """Yield the lines of YAML for a source of kind `join`."""
    share = proposal.guess.share or 0.0
    records = f"{'about ' if proposal.stream is not None else ''}{proposal.number} records"
    yield f"# {proposal.requests} requests are in {records} each, with the same {proposal.by};"
    yield f"# joined, {share:.0%} of them can be read. A whole source, in place of kind, name and path:"
    yield from (f"# {problem}" for problem in proposal.guess.problems)
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
    if proposal.stream is not None:
        yield from _stream_lines(proposal.stream)
    elif proposal.guess.format in TRACES:
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


def _stream_lines(stream: StreamGuess) -> Iterator[str]:
    if stream.piece is not None:
        yield "# answers are logged in pieces, which concat joins in the order of the log:"
        yield f"concat: {{answer: {json.dumps(stream.piece)}}}"
    if stream.complete is not None:
        yield f"complete: {json.dumps(stream.complete)} # the last record of a request"
    elif stream.piece is None:
        yield "complete: '`false`' # nothing marks the last record of a request: wait for the whole time"
    else:
        yield "# nothing marks the last piece: an answer ends when no part of it came for the time of within"
