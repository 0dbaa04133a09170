"""Bytes to a record: the fast way, the mended lines, and a name for every line that cannot be read or is too large."""

import json
import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import FormatError, TooManyValuesError
from ragwatch.formats.record import decode_body, decoded_size, is_too_large, parse
from ragwatch.model.sample import RejectReason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", RejectReason.TORN_JSON),
        (b'{"a": "b', RejectReason.TORN_JSON),
        (b"{'a': 1}", RejectReason.TORN_JSON),
        (b'{"a": 1} {"a": 2}', RejectReason.TORN_JSON),
        (b'{"a": "line\nbreak"}', RejectReason.TORN_JSON),
        (b"[1]", RejectReason.NOT_AN_OBJECT),
        (b'"a"', RejectReason.NOT_AN_OBJECT),
        (b"null", RejectReason.NOT_AN_OBJECT),
        (b"true", RejectReason.NOT_AN_OBJECT),
        (b"1.5", RejectReason.NOT_AN_OBJECT),
        (b'\xef\xbb\xbf["\xff"]', RejectReason.NOT_AN_OBJECT),
        (b'{"a": NaN}', RejectReason.NOT_FINITE),
        (b'{"a": -Infinity}', RejectReason.NOT_FINITE),
        (b'{"a": 1.5, "b": 1, "c": 1e999}', RejectReason.NOT_FINITE),
        (b'{"a": NaN, "b": "\xff"}', RejectReason.NOT_FINITE),
        (b'{"a": 1' + b"0" * 5000 + b"}", RejectReason.NUMBER_TOO_LARGE),
        (b'{"a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", RejectReason.TOO_DEEP),
        (b'{"a": ' + b"[" * 100_000, RejectReason.TOO_DEEP),
        (b'{"a": "b\x00"}', RejectReason.BINARY),
        (b"\x00" * 64, RejectReason.BINARY),
    ],
)
def test_x8_x9_x10_lines_without_a_record_are_refused(line: bytes, reason: RejectReason) -> None:
    """Each line that holds no record is refused for the reason a person would name."""
    with pytest.raises(FormatError) as caught:
        parse(line)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("line", "record", "mended"),
    [
        (b'{"a": 1}', {"a": 1}, False),
        (b' {"a": 1} \r', {"a": 1}, False),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}, False),
        (b'{"a": 1, "a": 2}', {"a": 2}, False),
        (b'{"a": 12345678901234567890123}', {"a": 12345678901234567890123.0}, False),
        (b'{"a": "\xc3\xa9\xff"}', {"a": "é\ufffd"}, True),
        ('{"a": "\ufffd"}'.encode(), {"a": "\ufffd"}, False),
        (b'\xef\xbb\xbf{"a": "\xef\xbf\xbd"}', {"a": "\ufffd"}, False),
        (rb'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}, False),
        (rb'{"a": "\ud800 \\ud800 \ud83d\ude00 \n"}', {"a": "\ufffd \\ud800 \U0001f600 \n"}, True),
        (rb'{"a": "\u0000 \\u0000"}', {"a": "\ufffd \\u0000"}, True),
        (rb'{"a": "\\u0000"}', {"a": "\\u0000"}, False),
        (b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}", None, False),
    ],
)
def test_read(line: bytes, record: dict[str, object] | None, *, mended: bool) -> None:
    """What can be mended without guessing is mended, and said to be."""
    parsed, was_repaired = parse(line)
    assert was_repaired is mended
    assert record is None or parsed == record


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none()), st.binary(max_size=3))
def test_mended_text_can_be_stored(record: dict[str, object], noise: bytes) -> None:
    """Whatever is read can be written as UTF-8 without NUL, however the line was broken."""
    line = json.dumps(record | {"noise": "#"}).encode().replace(b"#", noise)
    try:
        parsed, _ = parse(line)
    except FormatError:
        return
    written = json.dumps(parsed, ensure_ascii=False)
    assert written.encode()
    assert "\\u0000" not in written.replace("\\\\", "")


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(1 << 40), 1 << 40), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)
TOO_MANY = b'{"a":[' + b"[]," * 600_000 + b"1]}"


def taken(value: object) -> int:
    """Memory of a decoded value and all in it."""
    own = sys.getsizeof(value)
    if isinstance(value, dict):
        return own + sum(taken(key) + taken(held) for key, held in value.items())
    return own + sum(map(taken, value)) if isinstance(value, list) else own


@given(VALUES)
def test_nothing_takes_more_than_its_bound(value: object) -> None:
    """Within an array, whatever the value is."""
    text = orjson.dumps([value])
    assert taken(orjson.loads(text)) <= decoded_size(text) + 200  # the array itself, and one value without separator


def test_too_many_values_are_refused() -> None:
    """As a record and as a body."""
    assert is_too_large(TOO_MANY)
    with pytest.raises(FormatError, match="96 MiB") as caught:
        parse(TOO_MANY)
    assert caught.value.reason is RejectReason.LINE_TOO_LONG
    with pytest.raises(TooManyValuesError, match="96 MiB"):
        decode_body(TOO_MANY)
