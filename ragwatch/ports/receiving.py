"""Requests with which clients send records to a source, and the replies; independent of the web framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A POST request of a client that has the right `ingest`.

    Attributes:
        path: Its path, without parameters.
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
    """The response to a request."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[IncomingRequest], Awaitable[Reply]]
