"""Requests with which clients send records to a source, and the replies; independent of HTTP and gRPC libraries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A POST request, or a call over gRPC, of a client that has the right `ingest`.

    Attributes:
        path: Its path, without parameters. That of a call names service and method.
        headers: Header values by lower-case name; of repeated headers the last.
        chunks: The body as it arrives, as the client encoded it. A body that arrives too slowly ends the request.
        client: Who the client says it is, as authenticated; empty without authentication.
    """

    path: str
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    client: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request.

    Attributes:
        status: HTTP status.
        body: In the content type.
        content_type: Type of the body.
        headers: Further headers.
        problem: Why the request is refused, as text for people; empty if it is not.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


Handler = Callable[[IncomingRequest], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class GrpcListener:
    """An address on which calls over gRPC are received for one source.

    Attributes:
        source: Name of the source.
        address: As `host:port`.
        max_message_bytes: Largest message, as sent.
        receiving: How many messages are received at once.
    """

    source: str
    address: str
    max_message_bytes: int
    receiving: int
