"""How much memory a request in protobuf takes once it is decoded, from its bytes alone, before anything is built.

Two bytes are enough for an attribute, which takes seventy once it is decoded. Messages within messages are counted; the
walk ends as soon as there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragwatch.formats.record import ADVICE, MAX_DECODED_BYTES
from ragwatch.sources.otlp.request import MAX_SPANS, too_many_spans
from ragwatch.sources.requests.queue import RefusedError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_MESSAGE = 160
"""Bytes of the smallest message, with the object of Python that is made of it."""
UNCOUNTED_BYTES = MAX_DECODED_BYTES // _MESSAGE  # a message takes two bytes, so that these are 80 MiB at most
_MAX_DEPTH = 100  # protobuf itself refuses deeper messages
_SPANS = frozenset({"opentelemetry.proto.trace.v1.Span", "opentelemetry.proto.logs.v1.LogRecord"})


def check_size(body: bytes, kind: Descriptor = ExportTraceServiceRequest.DESCRIPTOR) -> None:
    """Refuse a request of a kind that would take too much memory. What is damaged is left to the decoder.

    Raises:
        RefusedError: 413.
    """
    if len(body) > UNCOUNTED_BYTES:
        _Walk(body).messages(0, len(body), kind, 0)


class _Walk:
    """Counts the messages in a body."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._left = (MAX_DECODED_BYTES - len(body)) // _MESSAGE
        self._spans_left = MAX_SPANS

    def messages(self, at: int, end: int, kind: Descriptor, depth: int) -> None:
        """Count the messages in the one from `at` to `end`. Raises RefusedError: 413: there are too many."""
        body, kinds = self._body, _kinds(kind)
        while at < end:
            tag, at = _varint(body, at)
            wire = tag & 7
            if wire == 2:
                length, at = _varint(body, at)
                inner = kinds.get(tag >> 3)
                if inner is not None and at + length <= end and depth < _MAX_DEPTH:
                    self._count(inner)
                    if length:
                        self.messages(at, at + length, inner, depth + 1)
                at += length
            elif wire == 0:
                _, at = _varint(body, at)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:  # a group, or garbage: the decoder says so
                return

    def _count(self, kind: Descriptor) -> None:
        self._left -= 1
        if self._left < 0:
            raise RefusedError(413, f"the request is too large: {ADVICE}; send fewer spans at a time")
        if kind.full_name in _SPANS:
            self._spans_left -= 1
            if self._spans_left < 0:
                raise too_many_spans()


@cache
def _kinds(kind: Descriptor) -> Mapping[int, Descriptor]:
    """The messages that a message can hold, by number of the field."""
    return {field.number: field.message_type for field in kind.fields if field.message_type is not None}


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Read a number; the place behind it is behind the body where the number is cut off."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > 63:
            return value, at
        shift += 7
    return 0, len(body)
