"""Selects the records of a log that also holds other lines: the options `prefix` and `where` of a source.

| line                                              | with `prefix` or `where`     | without both                |
|---------------------------------------------------|------------------------------|-----------------------------|
| a JSON object for which `where` is true           | read                         | read                        |
| ... for which it is false                         | skipped, reason where        |                             |
| ... on whose values its functions fail            | skipped, reason where_failed |                             |
| text without a JSON object, such as a traceback   | skipped, reason no_json      | rejected, reason torn_json  |
| a torn object, NUL bytes                          | rejected                     | rejected                    |
| feedback on an answer                             | read                         | read                        |

`prefix: auto` takes the first brace that a quoted key follows as the start of the object; user text at the end of a
line of another kind could be taken for a record. A pattern is matched at the start of a line, and so is stricter: a
line that it does not match is a record only if it starts with a brace.

A line or a document may hold several records, which the option `records` finds:

| line                                                       | `records`                                          |
|------------------------------------------------------------|----------------------------------------------------|
| a page of an API, `{"data": [{...}, {...}]}`               | `data`                                             |
| an array, `[{...}, {...}]`                                 | `@`                                                |
| a record as text, `{"line": "{...}"}`                      | `line`                                             |
| OTLP log records                                           | `resourceLogs[].scopeLogs[].logRecords[].body...`  |
| a conversation, `{"messages": [...]}`                      | `answers(messages)`                                |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import orjson

from ragwatch.core.sample import SkipReason
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.expressions import extractor, predicate
from ragwatch.formats.feedback import is_feedback
from ragwatch.formats.record import Line, Parse, Parsed, is_too_large, parse
from ragwatch.redaction.linear_time import check_linear_time

AUTO = "auto"
MAX_PREFIX_BYTES = 4096

_ARRAY = re.compile(rb"\[\s*(?:$|[{\]])")
Expand = Callable[[Line], Sequence[Line]]
"""The records in a line: decoded objects, or JSON as bytes. A line that is no JSON is returned as it is."""
Numbered = tuple[int, Line | SkipReason | FormatError]
"""Number of a line, and a record in it; or why it has none, or cannot be read."""
_OBJECT = re.compile(rb'\{\s*"')
_BOM = b"\xef\xbb\xbf"
_Start = Callable[[bytes], int]  # position of the JSON object in a line; -1 if it holds none


def line_parser(where: str | None = None, prefix: str | None = None) -> Parse:
    """Return the function that decodes the record in a line, or says why the line is skipped.

    Args:
        where: JMESPath condition on the record; None for all records.
        prefix: What stands before the JSON object: `auto`, or a regular expression; None if nothing does.

    >>> read = line_parser(where="event == 'answer'", prefix="auto")
    >>> read(b'12:00 INFO {"event": "answer"}')
    ({'event': 'answer'}, False)
    >>> [str(read(line)) for line in (b'12:01 INFO {"event": "health"}', b"Traceback (most recent call last):")]
    ['where', 'no_json']

    Raises:
        ConfigError: One of them is invalid; the message names it.
    """
    if where is None and prefix is None:
        return parse
    start = object_start(prefix)
    selects = None if where is None else predicate("where", where)

    def select(line: Line) -> Parsed:
        if isinstance(line, bytes):
            position = 0 if prefix is None and line[:1] == b"{" else start(line)
            if position < 0:
                if b"\x00" in line:  # a gap left by a crash may have held records
                    return parse(line)
                return SkipReason.NO_JSON
            line = line[position:] if position else line
        decoded = parse(line)
        if selects is None or is_feedback(decoded[0]):
            return decoded
        try:
            return decoded if selects(decoded[0]) else SkipReason.WHERE
        except FormatError:
            return SkipReason.WHERE_FAILED

    return select


def object_start(prefix: str | None) -> Callable[[bytes], int]:
    """Return the function that finds the position of the JSON object in a line; -1 if it holds none.

    Raises:
        ConfigError: The prefix is invalid.
    """
    return _first_brace if prefix is None else _first_object if prefix == AUTO else _pattern_end(prefix)


def _first_brace(line: bytes) -> int:
    """The start of a line that is nothing but an object."""
    text = line.removeprefix(_BOM).lstrip()
    return len(line) - len(text) if text.startswith(b"{") else -1


def _first_object(line: bytes) -> int:
    match = _OBJECT.search(line)
    return match.start() if match else _first_brace(line)


def _pattern_end(pattern: str) -> _Start:
    """The function that finds the end of a prefix."""
    try:
        compiled = check_linear_time(pattern, shortest=1)
    except ValueError as error:
        raise ConfigError(f"prefix: {error}; or write auto") from error

    def end(line: bytes) -> int:
        # Bytes that are not UTF-8 become one character each, and become the same bytes again.
        head = line[:MAX_PREFIX_BYTES].decode("utf-8", "surrogateescape")
        match = compiled.match(head)
        if match is None:
            return _first_brace(line)
        return len(match[0].encode("utf-8", "surrogateescape"))

    return end


def record_finder(expression: str, prefix: str | None = None) -> Expand:
    r"""Return the function that finds the records in a line.

    Args:
        expression: JMESPath of a record or a list of them: objects, or texts with an object in JSON. It is applied to
            an array as a whole, and where it finds nothing there, to each of its elements.
        prefix: What stands before the JSON of a line; see `line_parser`.

    >>> record_finder("data")(b'{"data": [{"answer": "a"}, "{\\"answer\\": \\"b\\"}"], "has_more": false}')
    [{'answer': 'a'}, b'{"answer": "b"}']

    Raises:
        ConfigError: The expression or the prefix is invalid.
    """
    search = extractor("records", expression)
    start = object_start(prefix)

    def expand(line: Line) -> Sequence[Line]:
        value = line if isinstance(line, dict) else _decoded(line, start)
        if value is None:
            return (line,)
        if not isinstance(value, list):
            return _lines_of(search(value))  # type: ignore[arg-type]  # an expression takes any JSON value
        whole = _lines_of(search(value))  # type: ignore[arg-type]  # the same
        return whole or [record for item in value for record in _lines_of(search(item))]

    return expand


def expanded(lines: Iterable[tuple[int, Line | FormatError]], expand: Expand | None) -> Iterator[Numbered]:
    """Yield the records in numbered lines; errors are passed on."""
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
    line = text.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].rstrip()
    return (line.startswith(b"{") and not line.endswith(b"}")) or _ARRAY.match(line) is not None


def parse_one(record: Line | SkipReason | FormatError, parse: Parse) -> Parsed:
    """Decode what `expanded` yields.

    Raises:
        FormatError: It cannot be read.
    """
    if isinstance(record, FormatError):
        raise record
    return record if isinstance(record, SkipReason) else parse(record)


def _decoded(line: bytes, start: Callable[[bytes], int]) -> object:
    """The JSON value in a line; None if there is none that can be read, which `parse` then explains."""
    text = line.strip()
    if text.startswith(b"["):
        if is_too_large(text):
            return None
        try:
            value: object = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            return value
    position = start(line)
    try:
        return None if position < 0 else parse(line[position:])[0]
    except FormatError:
        return None


def _lines_of(value: object) -> list[Line]:
    items = value if isinstance(value, list) else [value]
    return [_line_of(item) for item in items if item is not None]


def _line_of(item: object) -> Line:
    if isinstance(item, dict):
        return item
    return item.encode("utf-8", "replace") if isinstance(item, str) else orjson.dumps(item)
