"""Protocol of sources with the batches that they deliver, and the requests in which clients send records to them.

Requests, replies and addresses are independent of HTTP and gRPC libraries.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Protocol

from ragwatch.formats.record import Line
from ragwatch.model.sample import RejectReason
from ragwatch.ports.rows import Part
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import TallyKey


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that could not be read as a Sample, with what is needed to find and fix it."""

    reason: RejectReason
    file: str  # display name of the file or stream
    line: int  # 1-based line number, 0 if unknown
    field: str = ""  # path of the invalid field, empty if the whole record is invalid
    detail: str = ""


@dataclass(slots=True)
class BatchReport:
    """What intake did with the records of a batch, for a source that has to answer its clients.

    Intake empties and fills it before the batch is committed.
    """

    # rejected records; `line` is the number of the record in the batch
    rejections: list[Rejection] = field(default_factory=list)
    resent: list[int] = field(default_factory=list)  # numbers of the records that were received before


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one stream, and the cursor after the last of them."""

    stream: str  # identity of the stream inside its source (a file, a partition)
    file: str  # its display name
    lines: Sequence[Line]  # raw records without line ends, or decoded ones; empty lines are left out
    # start offset of each line in the stream; part of the id of records without one, else not asked for
    offsets: Sequence[int]
    numbers: Sequence[int]  # 1-based number of each line
    cursor: str  # opaque state that resumes after the last line
    rejections: Sequence[Rejection] = ()  # records that could not be read as a line (too long, binary ...)
    # restarts of the stream, counted by reason (`truncated`, `replaced` ...)
    resets: Mapping[str, int] = field(default_factory=dict)
    hold: Sequence[Part] = ()  # parts that wait for others; they are stored with the batch
    release: Collection[str] = ()  # groups of parts that wait no longer
    # counters of the source itself; they are added with the batch
    tallies: Mapping[TallyKey, float] = field(default_factory=dict)
    report: BatchReport | None = None  # to be filled with what intake did with the records


class Source(Protocol):
    """A transport that delivers records. Called from one thread at a time; may block on disk I/O."""

    name: str

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue after the stored cursors, by stream. Called once, before the first read."""

    def read(self) -> Batch | None:
        """Return the next records, None if there are none. Returns the same records until they are committed.

        Raises:
            SourceError: The source cannot be read at present.
        """

    def commit(self, batch: Batch) -> None:
        """Advance past a batch that the store has admitted."""

    def lag(self) -> Lag:
        """Return the age and size of the records that are not read yet."""

    def close(self) -> None:
        """Close files and connections. May be called again."""


MAX_PORT = 65535
PATTERN = r"^.+:\d{1,5}$"


def checked_port(address: str) -> str:
    """Return an address whose port exists. Raises `ValueError` if it does not."""
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
    """A POST request, or a call over gRPC, of a client that has the right `ingest`."""

    path: str  # its path, without parameters; that of a call names service and method
    headers: Mapping[str, str]  # header values by lower-case name; of repeated headers the last
    # the body as it arrives, as the client encoded it; a body that arrives too slowly ends the request
    chunks: AsyncIterator[bytes]
    client: str = ""  # who the client says it is, as authenticated; empty without authentication


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request."""

    status: int  # HTTP status
    body: bytes = b""  # in the content type
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""  # why the request is refused, as text for people; empty if it is not


Handler = Callable[[IncomingRequest], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class GrpcListener:
    """An address on which calls over gRPC are received for one source."""

    source: str
    address: str  # as `host:port`
    max_message_bytes: int  # largest message, as sent
    receiving: int  # how many messages are received at once
