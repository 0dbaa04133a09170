"""Spans, independent of their encoding; reading of their attributes; and their storage as bytes.

Attributes have several names for one thing, lists that are flattened to keys, and JSON inside of texts.

Keys of attributes come from outside: they are only ever keys of dictionaries, never names of Python attributes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

from ragwatch.formats.record import decode

_MAX_INDEX_DIGITS = 6
_MIN_CUT = 64
_REPR = re.compile(
    r"<[A-Z]\w*\(.*\)>|<[\w.]+ object at 0x[0-9a-fA-F]+>|<(?:async_)?(?:generator|coroutine) object.*>"
    r"|[A-Z]\w*\(\w+=.*\)",
    re.DOTALL,
)
_JSON_START = frozenset('{["')
REDACTED = "__REDACTED__"


def first(attributes: Mapping[str, object], keys: Iterable[str]) -> object:
    """Return the value of the first of `keys` that is present and not null; None if there is none."""
    for key in keys:
        value = attributes.get(key)
        if value is not None and value != REDACTED:
            return value
    return None


def decoded(value: object) -> object:
    """Return the JSON value in a text, or the value itself if it is none. Texts in JSON are decoded as well."""
    if not isinstance(value, str) or value.lstrip()[:1] not in _JSON_START:
        return value
    try:
        return decode(value)
    except orjson.JSONDecodeError:
        return _unescaped(value) or value


def _unescaped(value: str) -> list[str] | None:
    r"""Return the texts of a list in which quotes and ends of lines are as they were, as Spring AI writes it.

    None for another value, for one that is cut, and where quotes in a text may be those between two texts.

    >>> _unescaped('["Tea is "green".", "Line' + chr(10) + 'end"]'), _unescaped('["It says "a", "b"."]')
    (['Tea is "green".', 'Line\nend'], None)
    """
    inner = value.strip().removeprefix('["').removesuffix('"]')
    if len(inner) + 4 != len(value.strip()) or '\\"' in inner or '","' in inner:
        return None
    texts = inner.split('", "')
    return texts if all(text.count('"') % 2 == 0 for text in texts) else None


def is_torn(value: object) -> bool:
    """Return whether a value starts as JSON and does not end so: the SDK has cut it at its limit of characters."""
    return isinstance(value, str) and value.lstrip()[:2] in ('{"', '["', "[{") and isinstance(decoded(value), str)


def cut_length(sets: Iterable[Mapping[str, object]]) -> int:
    """Return the limit of characters at which an SDK has cut values; 0 if nothing shows that it has.

    A limit shows where no text is longer than JSON that ends too early, or than three different texts of one length.

    >>> cut_length([{"a": '[{"text": "' + "x" * 90, "b": "y" * 101}]), cut_length([{"a": "y" * 101}])
    (101, 0)
    """
    values = (value if isinstance(value, list) else (value,) for attributes in sets for value in attributes.values())
    texts = [text for some in values for text in some if isinstance(text, str)]
    length = max(map(len, texts), default=0)
    longest = {text for text in texts if len(text) == length}
    return length if length >= _MIN_CUT and (len(longest) > 2 or any(map(is_torn, longest))) else 0


def is_repr(text: str) -> bool:
    """Return whether a text is how Python prints an object, rather than a text for people."""
    stripped = text.strip()
    return stripped[-1:] in (">", ")") and _REPR.fullmatch(stripped) is not None


def plain_text(value: object) -> str | None:
    """Return a text for people; None for anything else, and for what Python prints of an object."""
    if not isinstance(value, str):
        return None
    stripped = value.strip()
    if not stripped or value == REDACTED or (stripped[-1] in ">)" and is_repr(stripped)):
        return None
    return value


def by_index(attributes: Mapping[str, object], prefix: str) -> dict[int, dict[str, object]]:
    """Return the items of a list that is flattened to keys such as `prefix.0.key`, by their index, in its order.

    >>> by_index({"docs.7.id": "h"}, "docs")
    {7: {'id': 'h'}}
    """
    items: dict[int, dict[str, object]] = {}
    begin = f"{prefix}."
    for key, value in attributes.items():
        if key.startswith(begin):
            digits, _, rest = key[len(begin) :].partition(".")
            if digits.isdecimal() and len(digits) <= _MAX_INDEX_DIGITS and digits.isascii():
                items.setdefault(int(digits), {})[rest] = value
    return dict(sorted(items.items()))


def stripped(item: Mapping[str, object], prefix: str) -> dict[str, object]:
    """Return an item with a prefix removed from its keys."""
    return {key.removeprefix(prefix): value for key, value in item.items()}


def inside(value: object, keys: Sequence[str]) -> object:
    """Return the first of `keys` in an object that has a value; None if there is none, or if it is no object."""
    if not isinstance(value, dict):
        return None
    for key in keys:
        part = value.get(key)
        if part is not None and part != "":
            return part
    return None


EARLIEST = 946_684_800 * 10**9
"""The year 2000: what is before it is no time."""
EVENT_OF = "ragwatch.event_of"
"""Attribute of a span that stands for an event of its parent, which was sent as a log record."""
NO_RESOURCE: Mapping[str, object] = {}


class Event(NamedTuple):
    """An event of a span: what happened, with attributes."""

    name: str
    attributes: dict[str, object]


class Span(NamedTuple):
    """One span. Values of attributes are JSON values."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16 hexadecimal digits
    parent_id: str  # 16 hexadecimal digits; empty for the first span of a trace
    name: str  # name of the operation
    start: int  # in nanoseconds since the epoch
    end: int  # in nanoseconds since the epoch
    attributes: dict[str, object]  # by key
    events: tuple[Event, ...] = ()  # in the order in which they were sent
    remote: bool | None = None  # whether the parent is in another process; None if the sender does not say
    dropped: int = 0  # how many attributes the SDK has dropped because of its limit
    scope: str = ""  # name of the instrumentation
    failed: bool = False  # whether the operation ended with an error
    resource: Mapping[str, object] = NO_RESOURCE  # attributes of the process

    @property
    def is_local_root(self) -> bool:
        """Whether the request that this span belongs to starts here, as far as the span itself says."""
        return not self.parent_id or self.remote is True


def with_events(spans: Iterable[Span]) -> list[Span]:
    """Return spans with the events that were sent apart from them, in the order of their time."""
    whole: list[Span] = []
    apart: dict[str, list[Span]] = {}
    for span in spans:
        if EVENT_OF in span.attributes:
            apart.setdefault(span.parent_id, []).append(span)
        else:
            whole.append(span)
    for some in apart.values():
        some.sort(key=lambda span: (span.start, span.span_id))
    return [
        span._replace(events=span.events + tuple(event for one in apart[span.span_id] for event in one.events))
        if span.span_id in apart
        else span
        for span in whole
    ]


def packed(spans: Sequence[Span]) -> bytes:
    """Return spans as bytes. Each resource is written once."""
    resources = {id(span.resource): span.resource for span in spans}
    numbers = {identity: number for number, identity in enumerate(resources)}
    rows = [
        (*span[:7], [tuple(event) for event in span.events], *span[8:12], numbers[id(span.resource)]) for span in spans
    ]
    return orjson.dumps({"resources": [*resources.values()], "spans": rows})


def unpacked(payload: bytes) -> list[Span]:
    """Return the spans in bytes that `packed` has written."""
    stored = orjson.loads(payload)
    resources = stored["resources"]
    return [
        Span._make((*row[:7], tuple(Event(*event) for event in row[7]), *row[8:12], resources[row[12]]))
        for row in stored["spans"]
    ]
