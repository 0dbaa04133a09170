"""Selects the records of a log that also holds other lines: the options `prefix`, `where` and `records` of a source.

docs/logs.md has a table of what is read, skipped and rejected, and one of lines that hold several records.

`prefix: auto` takes the first brace that a quoted key follows as the start of the object; user text at the end of a
line of another kind could be taken for a record. A pattern is matched at the start of a line, and so is stricter: a
line that it does not match is a record only if it starts with a brace.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import orjson

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.expressions import extractor, predicate
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.record import Line, Parse, Parsed, is_too_large, parse
from ragwatch.model.sample import SkipReason
from ragwatch.redaction.linear_time import check_linear_time

AUTO = "auto"
_MAX_PREFIX_BYTES = 4096

_ARRAY = re.compile(rb"\[\s*(?:$|[{\]])")
Expand = Callable[[Line], Sequence[Line]]
"""The records in a line: decoded objects, or JSON as bytes. A line that is no JSON is returned as it is."""
_OBJECT = re.compile(rb'\{\s*"')
_BOM = b"\xef\xbb\xbf"


def line_parser(where: str | None = None, prefix: str | None = None) -> Parse:
    """Return the function that decodes the record in a line, or says why the line is skipped.

    Args:
        where: JMESPath condition on the record; None for all records.
        prefix: What stands before the JSON object: `auto`, or a regular expression; None if nothing does.
    """
    if where is None and prefix is None:
        return parse
    start = _object_start(prefix)
    selects = None if where is None else predicate("where", where)

    def select(line: Line) -> Parsed:
        if isinstance(line, bytes):
            position = 0 if prefix is None and line[:1] == b"{" else start(line)
            if position < 0 and b"\x00" not in line:  # NUL: a gap left by a crash, which may have held records
                return SkipReason.NO_JSON
            line = line[position:] if position > 0 else line
        decoded = parse(line)
        if selects is None or is_feedback(decoded[0]):
            return decoded
        try:
            return decoded if selects(decoded[0]) else SkipReason.WHERE
        except FormatError:
            return SkipReason.WHERE_FAILED

    return select


def _first_brace(line: bytes) -> int:
    """The start of a line that is nothing but an object."""
    text = line.removeprefix(_BOM).lstrip()
    return len(line) - len(text) if text.startswith(b"{") else -1


def _object_start(prefix: str | None) -> Callable[[bytes], int]:
    """The function that finds the position of the JSON object in a line; -1 if it holds none."""
    if prefix is None:
        return _first_brace
    if prefix == AUTO:
        return lambda line: match.start() if (match := _OBJECT.search(line)) else _first_brace(line)
    try:
        compiled = check_linear_time(prefix, shortest=1)
    except ValueError as error:
        raise ConfigError(f"prefix: {error}; or write auto") from error

    def end(line: bytes) -> int:
        # Bytes that are not UTF-8 become one character each, and become the same bytes again.
        match = compiled.match(line[:_MAX_PREFIX_BYTES].decode("utf-8", "surrogateescape"))
        return _first_brace(line) if match is None else len(match[0].encode("utf-8", "surrogateescape"))

    return end


def record_finder(expression: str, prefix: str | None = None) -> Expand:
    r"""Return the function that finds the records in a line.

    Args:
        expression: JMESPath of a record or a list of them: objects, or texts with an object in JSON. It is applied to
            an array as a whole, and where it finds nothing there, to each of its elements.
        prefix: What stands before the JSON of a line; see `line_parser`.

    >>> record_finder("data")(b'{"data": [{"answer": "a"}, "{\\"answer\\": \\"b\\"}"], "has_more": false}')
    [{'answer': 'a'}, b'{"answer": "b"}']
    """
    search = extractor("records", expression)
    start = _object_start(prefix)

    def expand(line: Line) -> Sequence[Line]:
        value = line if isinstance(line, dict) else _decoded(line, start)
        if value is None:
            return (line,)
        whole = _lines_of(search(value))  # type: ignore[arg-type]  # an expression takes any JSON value
        if whole or not isinstance(value, list):
            return whole
        return [record for item in value for record in _lines_of(search(item))]

    return expand


def expanded(
    lines: Iterable[tuple[int, Line | FormatError]], expand: Expand | None
) -> Iterator[tuple[int, Line | SkipReason | FormatError]]:
    """Yield number and records of numbered lines; or why a line has none, or cannot be read."""
    for number, line in lines:
        if expand is None or isinstance(line, FormatError):
            yield number, line
            continue
        try:
            records = expand(line)
        except FormatError as error:
            yield number, error
        else:
            yield from ((number, record) for record in records or (SkipReason.NO_RECORDS,))


def begins_document(text: bytes) -> bool:
    r"""Return whether a file begins a JSON value over many lines, or an array.

    >>> [begins_document(text) for text in (b'{\n  "a": 1', b'[{"a": 1},', b'{"a": 1}\n', b'[WARN] late')]
    [True, True, False, False]
    """
    line = text.removeprefix(_BOM).lstrip().partition(b"\n")[0].rstrip()
    return (line.startswith(b"{") and not line.endswith(b"}")) or _ARRAY.match(line) is not None


def parse_one(record: Line | SkipReason | FormatError, parse: Parse) -> Parsed:
    """Decode what `expanded` yields; an error is raised."""
    if isinstance(record, FormatError):
        raise record
    return record if isinstance(record, SkipReason) else parse(record)


def _decoded(line: bytes, start: Callable[[bytes], int]) -> object:
    """The JSON value in a line; None if there is none that can be read, which `parse` then explains."""
    text = line.strip()
    if text.startswith(b"["):
        if is_too_large(text):
            return None
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(text)
    position = start(line)
    with suppress(FormatError):
        return None if position < 0 else parse(line[position:])[0]
    return None


def _lines_of(value: object) -> list[Line]:
    items = value if isinstance(value, list) else [value]
    lines = (item.encode("utf-8", "replace") if isinstance(item, str) else item for item in items if item is not None)
    return [line if isinstance(line, dict | bytes) else orjson.dumps(line) for line in lines]
