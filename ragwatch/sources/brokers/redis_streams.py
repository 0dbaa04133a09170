"""Source kind `redis_streams`: reads a Redis stream as a member of a consumer group.

Entries of a consumer that is gone are taken over. From its third delivery on an entry is delivered alone, so that no
other is given up with it. The server has to be Redis 6.2 or newer.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, SecretStr

from ragwatch.errors import SourceError
from ragwatch.model.sample import LossReason
from ragwatch.sources.brokers import ALONE_FROM, NO_ANSWER, Address, BrokerOptions, needed, reason
from ragwatch.sources.brokers.consumer import BrokerSource, Client, Delivery, Fetched, GoneError, Progress

CLAIMED_AT_ONCE = 100
_CLAIMS_PER_IDLE_TIME = 2
_MAX_CLAIM_SECONDS = 30.0
_MAX_SEQUENCE = (1 << 64) - 1
_RAW = ("XAUTOCLAIM", "XCLAIM", "XPENDING", "XRANGE", "XREVRANGE", "XREADGROUP", "XINFO STREAM", "XINFO GROUPS")
_REASONS = (
    (("wrongtype",), "the key holds no stream; correct stream"),
    (("unknown command",), "the server is too old ({}); Redis 6.2 or newer is needed"),
    (("authenticationerror",), "the server refuses the login ({}); correct username and password"),
    (("nopermissionerror",), "the user may not do this ({}); allow this key and the dead letters"),
    (("timeouterror",), NO_ANSWER),
    (("connectionerror",), "the server cannot be reached ({}); start it, or correct url"),
)
"""By what the error says, or the name of its class or a base of that."""
_COUNT_TRIMMED = """
local function fields(reply)
  local named = {}
  for place = 1, #reply, 2 do named[reply[place]] = reply[place + 1] end
  return named
end
local function before(one, other)
  local a, b = string.match(one, '(%d+)-(%d+)')
  local c, d = string.match(other, '(%d+)-(%d+)')
  if a ~= c then return #a < #c or (#a == #c and a < c) end
  return #b < #d or (#b == #d and b < d)
end
local stream = fields(redis.call('XINFO', 'STREAM', KEYS[1]))
for _, reply in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = fields(reply)
  if group['name'] == ARGV[1] and group['entries-read'] and stream['entries-added'] then
    local last, left = group['last-delivered-id'], nil
    local first = stream['first-entry'] and stream['first-entry'][1]
    if not first or before(last, first) then left = stream['length']
    elseif not before(last, stream['last-generated-id']) then left = 0 end
    if left then
      local lost = stream['entries-added'] - group['entries-read'] - left
      if lost > 0 then
        redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], last, 'ENTRIESREAD', stream['entries-added'] - left)
        return lost
      end
    end
  end
end
return 0
"""
"""Counts entries that were trimmed before the group read them, and notes in the group that they are counted.

In one script, so that of several consumers one counts them.
"""


class Options(BrokerOptions):
    """Options of a source of kind `redis_streams`."""

    url: Annotated[Address, Field(pattern=r"^(redis|rediss|unix)://")] = Field(
        "redis://127.0.0.1:6379/0", description="Address of the server; `rediss://` for TLS."
    )
    username: str | None = Field(None, description="User, for servers with ACLs.")
    password: SecretStr | None = Field(None, description="Password.")
    ca_file: Path | None = Field(None, description="Certificates of authorities to trust, for `rediss://`.")
    stream: str = Field(min_length=1, description="Key of the stream.")
    field: str = Field("data", min_length=1, description="Field of an entry that has the record, as a JSON object.")
    group: str = Field("ragwatch", min_length=1, description="Consumer group; created if it does not exist.")
    consumer: str | None = Field(
        None, min_length=1, description="Name in the group, the same after a restart; null for that of the machine."
    )
    claim_idle_seconds: float = Field(
        60.0, gt=0, description="Time after which entries of another consumer are taken over; longer than any commit."
    )
    dead_letters: str | None = Field(
        None, min_length=1, description="Stream of dead letters; null for the name of the stream and `:dead`."
    )


Row = tuple[bytes, Sequence[bytes] | None]
"""An entry as the server sends it: its id, and its fields and values in turn; none if it was deleted."""


class EntryId(NamedTuple):
    """The id of an entry, in the order of the stream: milliseconds since the epoch, and a sequence number."""

    milliseconds: int
    sequence: int

    @classmethod
    def parse(cls, text: bytes | str) -> EntryId:
        """Read an id as Redis writes it. Raises ValueError if it is none.

        >>> EntryId.parse(b"1700000000000-3")
        EntryId(milliseconds=1700000000000, sequence=3)
        """
        milliseconds, _, sequence = (text if isinstance(text, str) else text.decode("ascii")).partition("-")
        return cls(int(milliseconds), int(sequence))

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.sequence}"

    def before(self) -> EntryId:
        """Return the largest id before this one.

        >>> str(EntryId(5, 3).before()), str(EntryId(5, 0).before()), str(EntryId(0, 0).before())
        ('5-2', '4-18446744073709551615', '0-0')
        """
        if self.sequence:
            return EntryId(self.milliseconds, self.sequence - 1)
        return EntryId(self.milliseconds - 1, _MAX_SEQUENCE) if self.milliseconds else self


class RedisClient(Client):
    """One consumer of a group. See `consumer.Client`."""

    def __init__(self, options: Options, progress: Progress) -> None:
        with needed(options.name, "redis_streams", "redis", "redis"):
            import redis  # noqa: PLC0415 - an extra
            from redis.backoff import NoBackoff  # noqa: PLC0415 - the same
            from redis.retry import Retry  # noqa: PLC0415 - the same
        self._errors = redis.exceptions
        self._options, self._stream, self._group = options, options.stream, options.group
        self._progress = progress
        self.what = f"stream {options.stream}"
        self.value = f"field {options.field}"
        self._consumer = options.consumer or socket.gethostname()
        self._own_first = True
        self._claim_from = "0-0"
        self._claim_at = -math.inf
        tls = {"ssl_ca_certs": options.ca_file} if options.ca_file and options.url.startswith("rediss") else {}
        self._client: Any = redis.Redis.from_url(
            options.url,
            username=options.username,
            password=None if options.password is None else options.password.get_secret_value(),
            protocol=2,
            socket_timeout=options.timeout_seconds,
            socket_connect_timeout=options.timeout_seconds,
            retry=Retry(NoBackoff(), 0),
            **tls,
        )
        for command in _RAW:  # replies as they are, whatever the version of the library makes of them
            self._client.set_response_callback(command, lambda reply, **_: reply)

    def check_cursor(self, cursor: str) -> None:
        """A cursor is the id of an entry."""
        EntryId.parse(cursor)

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._errors.RedisError as error:
            if str(error).startswith(("NOGROUP", "no such key")):
                raise GoneError from None
            self._own_first = True  # entries may have been delivered without arriving
            self._client.connection_pool.disconnect()  # after a failover, its address is looked up again
            kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
            why = reason(str(error), _REASONS, "the server refuses: {}", kinds)
            raise SourceError(f"redis {self.what} at {self._options.url}: {why}") from error

    def _do(self, *command: object) -> Any:  # noqa: ANN401 - a reply of the server
        with self._explained():
            return self._client.execute_command(*command)

    def _in_group(self, command: str, *arguments: object) -> Any:  # noqa: ANN401 - a reply of the server
        return self._do(command, self._stream, self._group, *arguments)

    def join(self) -> None:
        """Create the group where it does not exist."""
        if self.joined:
            return
        known = self._progress.cursors.get(self._stream)
        start = EntryId(0, 0) if self._options.start == "beginning" else None
        if self._create(start if known is None else EntryId.parse(known)) and known is not None:
            self._progress.resets["group_recreated"] += 1
        self._progress.cursors.setdefault(self._stream, str(self._stored_until()))
        self.joined = self._own_first = True

    def _create(self, after: EntryId | None) -> bool:
        """Create the group, and the stream where it does not exist. False if there is a group.

        Args:
            after: The last entry that the group needs not read; None for the end of the stream.
        """
        stream = _named(self._do("XINFO STREAM", self._stream)) if self._do("EXISTS", self._stream) else {}
        last = EntryId.parse(stream.get("last-generated-id", b"0-0"))
        start = EntryId(0, 0)
        after = last if after is None else min(after, start if after > last else after)
        added = stream.get("entries-added", 0 if not stream else None)
        read: int | None = None
        if added is not None and after >= last:
            read = added
        elif added is not None and after == start:
            read = added - stream["length"]
        known: tuple[object, ...] = ()
        if read is not None:  # a server from Redis 7.0 on counts what a group has read
            version = str(self._do("INFO", "server").get("redis_version", "0"))
            known = ("ENTRIESREAD", read) if int(version.partition(".")[0]) >= 7 else ()
        try:
            self._in_group("XGROUP CREATE", str(after), "MKSTREAM", *known)
        except SourceError as error:
            if "BUSYGROUP" in str(error):
                return False
            raise
        return True

    def _state(self) -> dict[str, Any]:
        """What the server says of the group."""
        groups = (_named(one) for one in self._do("XINFO GROUPS", self._stream))
        group = next((one for one in groups if one["name"] == self._group.encode()), None)
        if group is None:
            raise GoneError
        return group

    def _oldest_pending(self) -> EntryId | None:
        """The oldest entry that any consumer of the group has not acknowledged."""
        oldest = self._in_group("XPENDING")[1]
        return None if oldest is None else EntryId.parse(oldest)

    def _stored_until(self) -> EntryId:
        """The id up to which everything is acknowledged."""
        oldest = self._oldest_pending()
        return EntryId.parse(self._state()["last-delivered-id"]) if oldest is None else oldest.before()

    def measure(self) -> None:
        """Ask how much the group has not acknowledged, and whether some was trimmed before it was read."""
        unread, pending, oldest = self._counted()
        if unread and (trimmed := self._trimmed()):
            self._progress.lost[LossReason.TRIMMED] += trimmed
            unread, pending, oldest = self._counted()
        self.unread = None if unread is None else unread + pending, oldest

    def _counted(self) -> tuple[int | None, int, float]:
        """Entries that were not delivered, and those not acknowledged; and when the oldest of both was written."""
        group = self._state()
        unread, pending, oldest = group.get("lag"), int(group["pending"]), math.inf
        if unread != 0:
            after = f"({group['last-delivered-id'].decode()}"
            following = self._entries(self._do("XRANGE", self._stream, after, "+", *("COUNT", 1)))
            unread = unread if following else 0
            oldest = min((one.number / 1000 for one in following), default=oldest)
        if pending and (held := self._oldest_pending()) is not None:
            oldest = min(oldest, held.milliseconds / 1000)
        return None if unread is None else int(unread), pending, oldest

    def _trimmed(self) -> int:
        """How many entries were trimmed before they were read, since this was asked last; 0 where nobody knows."""
        try:
            return int(self._do("EVAL", _COUNT_TRIMMED, 1, self._stream, self._group))
        except SourceError as error:
            if isinstance(error.__cause__, self._errors.ResponseError):  # scripts, or the option, are not available
                return 0
            raise

    def fetch(self) -> Fetched:
        """Entries that were delivered before and not acknowledged, else new ones, pending for this consumer then."""
        if time.monotonic() >= self._claim_at:
            self._take_over()
        deliveries: list[Delivery] = []
        while self._own_first and not deliveries:
            deliveries = self._delivered_before()
        if not deliveries:
            options = ("COUNT", self._options.batch_records, "STREAMS", self._stream, ">")
            reply = self._do("XREADGROUP", "GROUP", self._group, self._consumer, *options)
            deliveries = self._entries(reply[0][1]) if reply else []
        return Fetched(self._stream, f"redis {self.what}", str(self._stored_until()), deliveries)

    def _take_over(self) -> None:
        """Take over some entries that another consumer has not acknowledged for long. This counts no delivery."""
        idle = self._options.claim_idle_seconds
        options = (max(1, int(idle * 1000)), self._claim_from, "COUNT", CLAIMED_AT_ONCE, "JUSTID")
        reply = self._in_group("XAUTOCLAIM", self._consumer, *options)
        self._claim_from = reply[0].decode()
        if self._claim_from == "0-0":  # all were looked at
            self._claim_at = time.monotonic() + min(idle / _CLAIMS_PER_IDLE_TIME, _MAX_CLAIM_SECONDS)
        self._progress.lost[LossReason.DELETED] += len(reply[2]) if len(reply) > 2 else 0
        self._own_first = self._own_first or any(one is not None for one in reply[1])

    def _delivered_before(self) -> list[Delivery]:
        """Entries that this consumer was given and has not acknowledged."""
        rows = self._in_group("XPENDING", "-", "+", self._options.batch_records, self._consumer)
        self._own_first = bool(rows)
        times = {EntryId.parse(row[0]): int(row[3]) for row in rows}
        limit = self._options.max_deliveries
        dying = [one for one, before in times.items() if before >= limit]
        together = [one for one, before in times.items() if before < min(ALONE_FROM, limit) - 1]
        ready = together or [one for one, before in times.items() if before < limit][:1]
        claimed = self._in_group("XCLAIM", self._consumer, 0, *map(str, ready)) if ready else []
        deliveries = [*self._entries(claimed, times), *self._stored(dying, times)]
        missing = sorted({*ready, *dying} - {one.handle[0] for one in deliveries})
        self._progress.lost[LossReason.DELETED] += len(missing) - len(self._stored(missing, times))
        if missing:  # before Redis 7.0 they stay pending
            self._in_group("XACK", *map(str, missing))
        return deliveries

    def _stored(self, ids: Sequence[EntryId], times: dict[EntryId, int]) -> list[Delivery]:
        """Entries by id, as far as the stream has them, without reading them as a consumer."""
        with self._explained():
            pipeline = self._client.pipeline(transaction=False)
            for one in ids:
                pipeline.execute_command("XRANGE", self._stream, str(one), str(one))
            return [entry for reply in pipeline.execute() for entry in self._entries(reply, times)]

    def _entries(self, reply: Iterable[Row | None], times: dict[EntryId, int] | None = None) -> list[Delivery]:
        """Entries of a reply; those without content were deleted."""
        deliveries, field = [], self._options.field.encode()
        for row in reply:
            if row is not None and row[1] is not None:
                one, fields = EntryId.parse(row[0]), dict(zip(row[1][::2], row[1][1::2], strict=True))
                before = (times or {}).get(one, 0)
                offset, number = one.milliseconds << 64 | one.sequence, one.milliseconds
                deliveries.append(Delivery(offset, number, fields.get(field), before, (one, fields)))
        return deliveries

    def newest(self, count: int) -> Fetched | None:
        """The newest entries, in order."""
        if not self._do("EXISTS", self._stream):
            return None
        entries = self._entries(self._do("XREVRANGE", self._stream, "+", "-", *("COUNT", count)))
        return Fetched(self._stream, f"redis {self.what}", "0-0", entries[::-1])

    def acknowledge(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Acknowledge entries, after dead letters among them are copied."""
        if not fetched.deliveries:
            return
        with self._explained():
            pipeline = self._client.pipeline(transaction=True)
            for one in dead:
                reason = {"ragwatch_reason": one.why, "ragwatch_id": str(one.handle[0])}
                pipeline.xadd(self._options.dead_letters or f"{self._stream}:dead", {**one.handle[1], **reason})
            ids = [str(one.handle[0]) for one in fetched.deliveries]
            pipeline.execute_command("XACK", self._stream, self._group, *ids)
            pipeline.execute()


def _named(reply: Sequence[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


def build(options: Options) -> BrokerSource:
    """Build a source from its options. Raises ConfigError if the extra is not installed."""
    return BrokerSource(options, RedisClient)
