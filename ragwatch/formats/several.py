"""Finds the records in a line or a document that holds several: the option `records` of a source.

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
from ragwatch.errors import FormatError
from ragwatch.formats.expressions import extractor
from ragwatch.formats.record import Line, Parse, Parsed, is_too_large, parse
from ragwatch.formats.selection import object_start

_ARRAY = re.compile(rb"\[\s*(?:$|[{\]])")
Expand = Callable[[Line], Sequence[Line]]
"""The records in a line: decoded objects, or JSON as bytes. A line that is no JSON is returned as it is."""
Numbered = tuple[int, Line | SkipReason | FormatError]
"""Number of a line, and a record in it; or why it has none, or cannot be read."""


def record_finder(expression: str, prefix: str | None = None) -> Expand:
    r"""Return the function that finds the records in a line.

    Args:
        expression: JMESPath of a record or a list of them: objects, or texts with an object in JSON. It is applied to
            an array as a whole, and where it finds nothing there, to each of its elements.
        prefix: What stands before the JSON of a line; see `selection.line_parser`.

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
