"""Addresses to listen on, the requests with which clients send records to a source, and the replies.

Independent of HTTP and gRPC libraries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

MAX_PORT = 65535
PATTERN = r"^.+:\d{1,5}$"


def checked_port(address: str) -> str:
    """Return an address whose port exists.

    Raises:
        ValueError: It does not.
    """
    port = int(address.rpartition(":")[2])
    if port > MAX_PORT:
        raise ValueError(f"port {port} does not exist; give one from 0 to {MAX_PORT}")
    return address


def host_of(address: str) -> str:
    """Return the name or address of a machine, without its port.

    >>> host_of("[::1]:80"), host_of("localhost:80")
    ('::1', 'localhost')
    """
    return address.rpartition(":")[0].strip("[]")


def is_loopback(address: str) -> bool:
    """Return whether only this machine can connect.

    >>> is_loopback("[::1]:80"), is_loopback("localhost:80"), is_loopback("0.0.0.0:80"), is_loopback("rag:80")
    (True, True, False, False)
    """
    host = host_of(address)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


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
        address: As `host:port`.
        max_message_bytes: Largest message, as sent.
        receiving: How many messages are received at once.
    """

    source: str
    address: str
    max_message_bytes: int
    receiving: int
