"""What sources of kinds with a broker share: options, messages, and the batch of some messages."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from ragwatch.core.sample import LossReason, RejectReason
from ragwatch.core.tally import Tallies, Tally
from ragwatch.core.units import size_bytes
from ragwatch.errors import ConfigError
from ragwatch.ports import Batch, Rejection
from ragwatch.sources.record_options import RecordOptions

Size = Annotated[int, BeforeValidator(size_bytes)]
MEASURE_SECONDS = 1.0
"""Time between two questions to a broker about how much is unread."""
PEEKED = 100
"""Records that `ragwatch check` reads."""


def _no_credentials(value: str) -> str:
    for address in value.split(","):
        if "@" in address.rpartition("://")[2].partition("/")[0]:
            raise ValueError("holds a user or a password, which would be shown; give them as username and password")
    return value


Address = Annotated[str, Field(min_length=1), AfterValidator(_no_credentials)]


class BrokerOptions(RecordOptions):
    """Options that sources of all kinds with a broker have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    name: str = Field(
        min_length=1, description="Name of the source: the label `source`, and part of every sample's key."
    )
    start: Literal["beginning", "end"] = Field(
        "end", description="Where the consumer group starts if it does not exist yet."
    )
    batch_records: int = Field(200, ge=1, le=10_000, description="Records read and stored at once.")
    max_record_bytes: Size = Field(4 << 20, gt=0, description="A longer record is counted as `line_too_long`.")
    max_deliveries: int = Field(
        5, ge=2, le=100, description="Deliveries without being stored after which a record is a dead letter."
    )
    timeout_seconds: float = Field(5.0, gt=0, le=60, description="How long an answer of the broker is waited for.")


@dataclass(frozen=True, slots=True)
class Message:
    """A record as the broker delivered it.

    Attributes:
        offset: Its position; part of the fallback id of a record without one.
        number: How people find it: see the kind.
        value: The record; None if the message has none.
    """

    offset: int
    number: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Incidents:
    """What happened to a stream since the last batch.

    Attributes:
        lost: Records that will never be read, by reason.
        resets: Restarts of the consumer group, by reason.
    """

    lost: Counter[LossReason] = field(default_factory=Counter)
    resets: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return any(self.lost.values()) or any(self.resets.values())

    def take(self) -> Incidents:
        """Return what has happened, and forget it here."""
        taken = Incidents(Counter(self.lost), Counter(self.resets))
        self.lost.clear()
        self.resets.clear()
        return taken


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Where messages come from.

    Attributes:
        source: Name of the source.
        stream: Identity of the stream in it.
        name: Display name of the stream.
        value: Where a message has its record, as text for people.
        max_bytes: Largest record.
    """

    source: str
    stream: str
    name: str
    value: str
    max_bytes: int


def batch_of(
    place: StreamPlace,
    messages: Sequence[Message],
    cursor: str,
    *,
    dead: Mapping[int, int] | None = None,
    incidents: Incidents | None = None,
) -> Batch:
    """Build the batch of some messages.

    Args:
        place: Where they come from.
        messages: In order.
        cursor: Resumes after them.
        dead: Dead letters: number of the message, and how often it was delivered.
        incidents: What happened to the stream.
    """
    lines: list[Message] = []
    rejections = [
        Rejection(RejectReason.UNDELIVERABLE, place.name, number, "", f"was delivered {times} times and never stored")
        for number, times in (dead or {}).items()
    ]
    for message in messages:
        value = message.value
        if not value:
            rejections.append(
                Rejection(RejectReason.MISSING_FIELD, place.name, message.number, "", f"has no {place.value}")
            )
        elif len(value) > place.max_bytes:
            detail = f"has {len(value)} bytes, more than max_record_bytes"
            rejections.append(Rejection(RejectReason.LINE_TOO_LONG, place.name, message.number, "", detail))
        else:
            lines.append(message)
    happened = incidents or Incidents()
    tallies: Tallies = Counter(
        {(Tally.LOST, (place.source, str(reason))): times for reason, times in happened.lost.items() if times}
    )
    return Batch(
        stream=place.stream,
        file=place.name,
        lines=[message.value for message in lines if message.value],
        offsets=[message.offset for message in lines],
        numbers=[message.number for message in lines],
        cursor=cursor,
        rejections=rejections,
        resets=dict(happened.resets),
        tallies=tallies,
    )


def consumer_name(given: str | None) -> str:
    """Name of this consumer: the one that is given, else the name of the machine."""
    return given or socket.gethostname()


def missing_package(source: str, kind: str, package: str, extra: str) -> ConfigError:
    """The error of a kind whose library is not installed."""
    return ConfigError(
        f"sources.{source}.kind: {kind} needs the package {package}; run pip install 'ragwatch-exporter[{extra}]'"
    )
