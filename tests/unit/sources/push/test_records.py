"""Records of a body: whether they stay decoded or are encoded again makes no difference to what is read of them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.sample import SkipReason
from ragwatch.errors import FormatError
from ragwatch.formats.record import Parse, objects_size, parse
from ragwatch.formats.selection import line_parser
from ragwatch.sources.push.records import KEPT_DECODED, MAX_RECORDS, ContentHashes, as_feedback, records_of
from ragwatch.sources.requests.queue import RefusedError

FILLER = "The old mill stands by the river. " * 20
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.text(max_size=9), st.just("\x00")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
ELEMENTS = st.lists(st.one_of(st.dictionaries(st.sampled_from(["id", "event", "text"]), VALUES), VALUES), max_size=4)


def read(line: bytes | dict[str, Any], parser: Parse) -> object:
    """What intake makes of an element."""
    try:
        return parser(line)
    except FormatError as error:
        return str(error)


@given(ELEMENTS, st.booleans())
def test_decoded_or_not(elements: list[Any], long: bool) -> None:  # noqa: FBT001 - drawn
    """Elements of an array with much text stay objects; they are read, selected and refused as their own lines are."""
    padded = [{**one, "padding": FILLER} if long and isinstance(one, dict) else one for one in elements]
    records = records_of(json.dumps(padded).encode(), lines=False)
    for parser in (parse, line_parser(where="event")):
        assert [read(record, parser) for record in records] == [
            read(json.dumps(one).encode(), parser) for one in padded
        ]


def test_objects_of_much_text_are_not_encoded_again() -> None:
    """What was decoded once stays so, unless it would take much more memory than its text, or holds NUL."""
    few, many = {"question": FILLER}, {str(number): number for number in range(500)}
    assert records_of(json.dumps([few, few]).encode(), lines=False) == [few, few]
    assert objects_size(json.dumps([many]).encode()) > KEPT_DECODED * len(json.dumps([many]))
    assert records_of(json.dumps([many]).encode(), lines=False) == [orjson.dumps(many)]
    (encoded,) = records_of(json.dumps([{"question": FILLER + "\x00"}]).encode(), lines=False)
    assert parse(encoded) == ({"question": FILLER + "\ufffd"}, True)


def test_where_selects_decoded_records() -> None:
    """A condition is about the record, however it arrived."""
    (kept, left) = records_of(json.dumps([{"event": FILLER}, {"other": FILLER}]).encode(), lines=False)
    select = line_parser(where="event", prefix="auto")
    assert select(kept) == ({"event": FILLER}, False)
    assert select(left) is SkipReason.WHERE


def test_a_hash_is_that_of_the_content() -> None:
    """Equal records have one hash, decoded or not; others have others, however deeply their fields are nested."""
    one, other = {"question": FILLER}, {"question": "Why?"}
    hashes = ContentHashes([one, orjson.dumps(one), other, other | {"deep": json.loads("[" * 500 + "]" * 500)}])
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
    assert (len(hashes), list(hashes[1:3])) == (4, [hashes[1], hashes[2]])


def test_lines_are_bounded_before_they_are_split() -> None:
    """Blank lines count, so that a body of line ends takes little memory."""
    assert records_of(b"{}\r\n\n \n{}\n", lines=True) == [b"{}", b"{}"]
    assert len(records_of(b"{}\n" * MAX_RECORDS, lines=True)) == MAX_RECORDS
    for body in (b"{}\n" * (MAX_RECORDS + 1), b"{}" + b"\n" * (2 * MAX_RECORDS) + b"{}"):
        with pytest.raises(RefusedError, match=f"more than {MAX_RECORDS} records"):
            records_of(body, lines=True)


@pytest.mark.parametrize(
    ("body", "comment"),
    [
        (b'{\n  "id": "r1",\n  "comment": "\\ud83d"\n}', "\ufffd"),
        (b'\xef\xbb\xbf{\r\n  "id": "r1",\r\n  "comment": "caf\xe9"\r\n}', "caf\ufffd"),
        (b'{"id": "r1", "comment": "a\\u0000b"}', "a\ufffdb"),
        (b'{"id": "r1", "comment": "\\ud83d"}', "\ufffd"),
        (b'{"id": "r1", "comment": "caf\xe9"}', "caf\ufffd"),
        (b'\xef\xbb\xbf{"id": "r1", "comment": "a"}', "a"),
        (b'[{"id": "r1", "comment": "a\\u0000b"}]', "a\ufffdb"),
        (b'[{"id": "r1", "comment": "\\ud83d"}]', "\ufffd"),
    ],
)
def test_feedback_is_repaired_as_in_a_log(body: bytes, comment: str) -> None:
    """A character that cannot be stored makes feedback no unknown answer."""
    (record,) = records_of(body, lines=False)
    assert as_feedback(record) == {"feedback_for": "r1", "comment": comment}


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        ({"feedback_for": None, "id": "r1"}, "r1"),
        ({"feedback_for": "", "id": "", "request_id": 7}, 7),
        ({"feedback_for": "r1", "id": "f9"}, "r1"),
        ({"feedback_for": None}, ""),
        ({}, ""),
    ],
)
def test_feedback_is_for_the_first_id_that_is_one(sent: dict[str, Any], given: object) -> None:
    """Null and empty columns hide no id; feedback without any is still feedback, and is refused as such."""
    named = as_feedback(orjson.dumps(sent))
    assert isinstance(named, dict)
    assert named["feedback_for"] == given
