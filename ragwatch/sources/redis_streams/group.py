"""Commands on one stream of a Redis server, for one consumer of a group. Failures are translated to our errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ragwatch.errors import SourceError
from ragwatch.sources.messages import consumer_name, missing_package
from ragwatch.sources.redis_streams.entry_id import START, EntryId
from ragwatch.sources.redis_streams.options import Options

CLAIMED_AT_ONCE = 100
_RAW = ("XAUTOCLAIM", "XCLAIM", "XPENDING", "XRANGE", "XREVRANGE", "XREADGROUP", "XINFO STREAM", "XINFO GROUPS")
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


class GroupGoneError(Exception):
    """The consumer group does not exist: a failover or FLUSHALL has lost it, or it was never created."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a stream.

    Attributes:
        fields: Its fields and values.
    """

    id: EntryId
    fields: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Delivered:
    """An entry that was delivered to a consumer and is not acknowledged.

    Attributes:
        times: How often it was delivered.
    """

    id: EntryId
    times: int


@dataclass(frozen=True, slots=True)
class GroupState:
    """What a consumer group has not stored yet.

    Attributes:
        unread: Entries that were not delivered; None if the server does not know.
        pending: Entries that were delivered and are not acknowledged.
        oldest: The oldest of both; None if there is none.
    """

    unread: int | None
    pending: int
    oldest: EntryId | None


class ConsumerGroup:
    """One consumer of a group. Every method raises SourceError when the server fails.

    Args:
        options: Address, stream and group.

    Raises:
        ConfigError: The extra is not installed, or the address is wrong.
    """

    def __init__(self, options: Options) -> None:
        try:
            import redis  # noqa: PLC0415 - an extra
            from redis.backoff import NoBackoff  # noqa: PLC0415 - the same
            from redis.retry import Retry  # noqa: PLC0415 - the same
        except ImportError:
            raise missing_package(options.name, "redis_streams", "redis", "redis") from None
        self._errors = redis.exceptions
        self._stream, self._group, self._dead = options.stream, options.group, options.dead_stream
        self._where = f"redis stream {options.stream} at {options.url}"
        self.consumer = consumer_name(options.consumer)
        tls = (
            {} if options.ca_file is None or not options.url.startswith("rediss") else {"ssl_ca_certs": options.ca_file}
        )
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

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        errors = self._errors
        try:
            yield
        except errors.RedisError as error:
            if str(error).startswith(("NOGROUP", "no such key")):
                raise GroupGoneError from None
            self._client.connection_pool.disconnect()  # after a failover, its address is looked up again
            raise SourceError(f"{self._where}: {self._reason(error)}") from error

    def _reason(self, error: Exception) -> str:
        text, errors = str(error), self._errors
        reasons: tuple[tuple[type[Exception], str], ...] = (
            (errors.AuthenticationError, f"the server refuses the login ({text}); correct username and password"),
            (errors.NoPermissionError, f"the user may not do this ({text}); allow this key and the dead letters"),
            (errors.TimeoutError, "the server does not answer in time"),
            (errors.ConnectionError, f"the server cannot be reached ({text}); start it, or correct url"),
        )
        if text.startswith("WRONGTYPE"):
            return "the key holds no stream; correct stream"
        if "unknown command" in text:
            return f"the server is too old ({text}); Redis 6.2 or newer is needed"
        return next((why for kind, why in reasons if isinstance(error, kind)), f"the server refuses: {text}")

    def _do(self, *command: object) -> Any:  # noqa: ANN401 - a reply of the server
        with self._explained():
            return self._client.execute_command(*command)

    def _in_group(self, command: str, *arguments: object) -> Any:  # noqa: ANN401 - a reply of the server
        return self._do(command, self._stream, self._group, *arguments)

    def exists(self) -> bool:
        """Whether the stream exists."""
        return bool(self._do("EXISTS", self._stream))

    def create(self, after: EntryId | None) -> bool:
        """Create the group, and the stream where it does not exist. False if there is a group.

        Args:
            after: The last entry that the group needs not read; None for the end of the stream.
        """
        stream = self._info() if self.exists() else {}
        last = EntryId.parse(stream.get("last-generated-id", b"0-0"))
        after = last if after is None else min(after, START if after > last else after)
        added = stream.get("entries-added", 0 if not stream else None)
        read: int | None = None
        if added is not None and after >= last:
            read = added
        elif added is not None and after == START:
            read = added - stream["length"]
        known = () if read is None or not self._counts_reads() else ("ENTRIESREAD", read)
        try:
            self._in_group("XGROUP CREATE", str(after), "MKSTREAM", *known)
        except SourceError as error:
            if "BUSYGROUP" in str(error):
                return False
            raise
        return True

    def _counts_reads(self) -> bool:
        """Whether the server counts what a group has read: Redis 7.0 and newer."""
        version = str(self._do("INFO", "server").get("redis_version", "0"))
        return int(version.partition(".")[0]) >= 7

    def _info(self) -> dict[str, Any]:
        return _named(self._do("XINFO STREAM", self._stream))

    def read(self, count: int) -> list[Entry]:
        """Return entries that no consumer has read; they are pending for this one from now on."""
        options = ("COUNT", count, "STREAMS", self._stream, ">")
        reply = self._do("XREADGROUP", "GROUP", self._group, self.consumer, *options)
        return _entries(reply[0][1]) if reply else []

    def own(self, count: int) -> list[Delivered]:
        """Return the oldest entries that are pending for this consumer."""
        reply = self._in_group("XPENDING", "-", "+", count, self.consumer)
        return [Delivered(EntryId.parse(row[0]), int(row[3])) for row in reply]

    def take_over(self, idle_seconds: float, start: str) -> tuple[str, int, int]:
        """Make idle entries of other consumers pending for this one. Their number of deliveries does not change.

        Returns:
            Where to continue, `0-0` when all were looked at; how many were taken over; how many were deleted.
        """
        milliseconds = max(1, int(idle_seconds * 1000))
        options = ("COUNT", CLAIMED_AT_ONCE, "JUSTID")
        reply = self._in_group("XAUTOCLAIM", self.consumer, milliseconds, start, *options)
        taken = [one for one in reply[1] if one is not None]
        return reply[0].decode(), len(taken), len(reply[2]) if len(reply) > 2 else 0

    def deliver(self, ids: Sequence[EntryId]) -> list[Entry]:
        """Return pending entries, and count the delivery. Deleted ones are left out and are pending no longer."""
        reply = self._in_group("XCLAIM", self.consumer, 0, *map(str, ids)) if ids else []
        entries = _entries(reply)
        if len(entries) < len(ids):  # before Redis 7.0 they stay pending
            left = {entry.id for entry in entries}
            self.acknowledge([one for one in ids if one not in left])
        return entries

    def stored(self, ids: Sequence[EntryId]) -> list[Entry]:
        """Return entries by id, as far as the stream has them, without reading them as a consumer."""
        with self._explained():
            pipeline = self._client.pipeline(transaction=False)
            for one in ids:
                pipeline.execute_command("XRANGE", self._stream, str(one), str(one))
            return [entry for reply in pipeline.execute() for entry in _entries(reply)]

    def newest(self, count: int) -> list[Entry]:
        """Return the newest entries, in order, without reading them as a consumer."""
        return _entries(self._do("XREVRANGE", self._stream, "+", "-", *("COUNT", count)))[::-1]

    def acknowledge(self, ids: Sequence[EntryId], dead: Sequence[tuple[Entry, int]] = ()) -> None:
        """Acknowledge entries, after dead letters among them are copied with how often they were delivered."""
        if not ids:
            return
        with self._explained():
            pipeline = self._client.pipeline(transaction=True)
            for entry, times in dead:
                reason = {"ragwatch_reason": f"delivered {times} times and never stored", "ragwatch_id": str(entry.id)}
                fields: dict[Any, Any] = {**entry.fields, **reason}
                pipeline.xadd(self._dead, fields)
            pipeline.execute_command("XACK", self._stream, self._group, *map(str, ids))
            pipeline.execute()

    def stored_until(self) -> EntryId:
        """The id up to which everything is acknowledged.

        Raises:
            GroupGoneError: There is no such group.
        """
        oldest = self._oldest_pending()
        if oldest is not None:
            return oldest.before()
        return EntryId.parse(self._state_of_group()["last-delivered-id"])

    def _oldest_pending(self) -> EntryId | None:
        """The oldest entry that any consumer of the group has not acknowledged."""
        oldest = self._in_group("XPENDING")[1]
        return None if oldest is None else EntryId.parse(oldest)

    def _state_of_group(self) -> dict[str, Any]:
        groups = (_named(one) for one in self._do("XINFO GROUPS", self._stream))
        group = next((one for one in groups if one["name"] == self._group.encode()), None)
        if group is None:
            raise GroupGoneError
        return group

    def state(self) -> GroupState:
        """What is not stored yet.

        Raises:
            GroupGoneError: There is no such group.
        """
        group = self._state_of_group()
        unread, pending = group.get("lag"), int(group["pending"])
        following = None
        if unread != 0:
            after = f"({group['last-delivered-id'].decode()}"
            following = next(iter(self._following(after)), None)
            unread = 0 if following is None else unread
        waiting = [] if following is None else [following.id]
        if pending and (oldest := self._oldest_pending()) is not None:
            waiting.append(oldest)
        return GroupState(None if unread is None else int(unread), pending, min(waiting, default=None))

    def _following(self, after: str) -> list[Entry]:
        return _entries(self._do("XRANGE", self._stream, after, "+", *("COUNT", 1)))

    def count_trimmed(self) -> int:
        """How many entries were trimmed before they were read, since this was asked last; 0 where nobody knows."""
        try:
            return int(self._do("EVAL", _COUNT_TRIMMED, 1, self._stream, self._group))
        except SourceError as error:
            if isinstance(error.__cause__, self._errors.ResponseError):  # scripts, or the option, are not available
                return 0
            raise


def _named(reply: Sequence[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


def _entries(reply: Sequence[Any]) -> list[Entry]:
    """Entries of a reply; those without content were deleted."""
    return [
        Entry(EntryId.parse(row[0]), dict(zip(row[1][::2], row[1][1::2], strict=True)))
        for row in reply
        if row is not None and row[1] is not None
    ]
