"""Messages in an export request are counted before it is decoded; what is damaged is left to the decoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.sources.otlp import protobuf_request
from ragwatch.sources.otlp.protobuf_request import UNCOUNTED_BYTES, check_size
from ragwatch.sources.otlp.request import MAX_SPANS
from ragwatch.sources.requests.queue import RefusedError

SPAN = b"\x0a\x10" + bytes(15) + b"\x01\x12\x08" + bytes(7) + b"\x01"


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((number << 3 | 2, *length, size)) + content


def request_of(spans: bytes) -> bytes:
    """A request with these encoded spans."""
    return field(1, field(2, spans))


@pytest.mark.parametrize(
    ("spans", "limit"),
    [
        (field(2, SPAN) * (MAX_SPANS + 1), "50000 spans"),
        pytest.param(field(2, SPAN + field(9, b"") * 700_000), "96 MiB", marks=pytest.mark.costly),
        pytest.param(
            field(2, SPAN + field(11, field(3, field(2, field(5, field(1, b"") * 700_000))))),
            "96 MiB",
            marks=pytest.mark.costly,
        ),
    ],
    ids=["spans", "attributes", "values of an array in an event"],
)
def test_more_than_a_limit_is_refused(spans: bytes, limit: str) -> None:
    """With 413 and the name of the limit."""
    with pytest.raises(RefusedError, match=limit) as caught:
        protobuf_request.spans_of(request_of(spans))
    assert caught.value.status == 413


def test_long_texts_are_no_messages() -> None:
    """A text of a megabyte counts as one value, whatever bytes it has."""
    attribute = field(9, field(1, b"input.value") + field(2, field(1, b"\x4a\x00" * UNCOUNTED_BYTES)))
    assert len(protobuf_request.spans_of(request_of(field(2, SPAN + attribute))).spans) == 1


@given(st.binary(max_size=40))
def test_damaged_requests_end_the_walk(noise: bytes) -> None:
    """Whatever stands behind a large field, the walk ends without an error of its own."""
    check_size(field(7, bytes(UNCOUNTED_BYTES)) + noise)
