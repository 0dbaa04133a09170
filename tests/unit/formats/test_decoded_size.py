"""The bound on decoded JSON is never too low, and large texts beyond it are refused before they are decoded."""

from __future__ import annotations

import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.sample import RejectReason
from ragwatch.errors import FormatError, TooManyValuesError
from ragwatch.formats.record import decode_body, decoded_size, is_too_large, parse

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
