"""Reads a Redis stream as a member of a consumer group; acknowledges what the store has.

Order: read, store (records and cursor in one transaction), acknowledge. Whatever fails in between is delivered again,
and recognised by its id. Entries of a consumer that is gone are taken over. An entry that was delivered
`max_deliveries` times without being stored is copied to the stream of dead letters; from its third delivery on it is
delivered alone, so that no other entry goes with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragwatch.core.sample import LossReason
from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError
from ragwatch.ports import Batch
from ragwatch.sources.messages import MEASURE_SECONDS, PEEKED, Incidents, Message, StreamPlace, batch_of
from ragwatch.sources.redis_streams.entry_id import START, EntryId
from ragwatch.sources.redis_streams.group import ConsumerGroup, Entry, GroupGoneError, GroupState
from ragwatch.sources.redis_streams.options import Options

ALONE_FROM = 3
"""Deliveries from which on an entry is in a batch of its own."""
_CLAIMS_PER_IDLE_TIME = 2
_MAX_CLAIM_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """A batch that is not committed.

    Attributes:
        ids: Entries to acknowledge.
        dead: Those to copy as dead letters, and how often each was delivered.
    """

    batch: Batch
    ids: Sequence[EntryId]
    dead: Sequence[tuple[Entry, int]]


class RedisStreamsSource:
    """See `ports.Source` and the module.

    Args:
        options: What to read.
        monotonic: Seconds, for waiting.
        clock: Seconds since the epoch, for ages.
    """

    recognises_resent = True

    def __init__(
        self,
        options: Options,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = options.name
        self._options = options
        self._monotonic = monotonic
        self._clock = clock
        self._group = ConsumerGroup(options)
        display = f"redis stream {options.stream}"
        field = f"field {options.field}"
        self._place = StreamPlace(options.name, options.stream, display, field, options.max_record_bytes)
        self._field = options.field.encode()
        self._cursor: EntryId | None = None
        self._joined = False
        self._own_first = True
        self._idle = False
        self._claim_from = "0-0"
        self._claim_at = self._measure_at = float("-inf")
        self._incidents = Incidents()
        self._reading: _Reading | None = None
        self._unacknowledged: list[_Reading] = []
        self._state: GroupState | None = None

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Remember where to continue if the server has lost the consumer group."""
        stored = cursors.get(self._options.stream)
        self._cursor = None if stored is None else EntryId.parse(stored)

    def read(self) -> Batch | None:
        """Return entries that are not stored yet: first those that were delivered before.

        Raises:
            SourceError: The server cannot be reached, or refuses.
        """
        if self._reading is None:
            try:
                self._reading = self._next_or_rejoin()
            except SourceError:
                self._own_first, self._state = True, None  # entries may have been delivered without arriving
                raise
        return None if self._reading is None else self._reading.batch

    def commit(self, batch: Batch) -> None:
        """Acknowledge the entries of a batch. If that fails they are acknowledged before the next read.

        Raises:
            SourceError: The server cannot be reached.
        """
        reading = self._reading
        if reading is None or reading.batch is not batch:
            return
        self._reading = None
        self._cursor = EntryId.parse(batch.cursor)
        self._unacknowledged.append(reading)
        self._acknowledge()

    def lag(self) -> Lag:
        """Entries that are not stored, and the age of the oldest; unknown while the server cannot be reached."""
        state = self._state
        if state is None:
            return Lag(None, None)
        seconds = 0.0 if state.oldest is None else max(0.0, self._clock() - state.oldest.milliseconds / 1000)
        return Lag(None, seconds, records=None if state.unread is None else state.unread + state.pending)

    def close(self) -> None:
        """Close connections. What is not acknowledged is delivered again at the next start."""
        self._group.close()

    def peek(self) -> tuple[str, Batch | None]:
        """See `capabilities.SupportsPeek`."""
        if not self._group.exists():
            return f"the stream {self._options.stream} does not exist; ragwatch creates it at its start", None
        entries = self._group.newest(PEEKED)
        if not entries:
            return f"the stream {self._options.stream} is empty", None
        return f"the stream {self._options.stream} has records", batch_of(self._place, self._messages(entries), "0-0")

    def _next_or_rejoin(self) -> _Reading | None:
        """Read; once more if the server has lost the group."""
        try:
            return self._next()
        except GroupGoneError:
            self._joined = False
        try:
            return self._next()
        except GroupGoneError as error:
            raise SourceError(f"{self._place.name}: the consumer group was deleted twice in a row") from error

    def _next(self) -> _Reading | None:
        self._acknowledge()
        self._join()
        now = self._monotonic()
        if now >= self._measure_at:
            self._measure(now)
        if now >= self._claim_at:
            self._take_over(now)
        if self._own_first:
            if (reading := self._delivered_before()) is not None:
                return reading
            self._own_first = False
        entries = self._group.read(self._options.batch_records)
        if entries or self._incidents:
            self._idle = False
            return self._reading_of(entries, [entry.id for entry in entries])
        if not self._idle:  # nothing is left to read: say so at once
            self._idle = True
            self._measure(now)
        return None

    def _join(self) -> None:
        """Create the group where it does not exist: after what is stored, else where the options say."""
        if self._joined:
            return
        known = self._cursor
        created = self._group.create(known or (START if self._options.start == "beginning" else None))
        if created and known is not None:
            self._incidents.resets["group_recreated"] += 1
        self._cursor = known or self._group.stored_until()
        self._joined = self._own_first = True

    def _measure(self, now: float) -> None:
        """Ask how much is unread, and whether some of it was trimmed."""
        self._measure_at = now + MEASURE_SECONDS
        state = self._group.state()
        if state.unread and (trimmed := self._group.count_trimmed()):
            self._incidents.lost[LossReason.TRIMMED] += trimmed
            state = self._group.state()
        self._state = state

    def _take_over(self, now: float) -> None:
        """Take over some entries that another consumer has not acknowledged for long."""
        idle = self._options.claim_idle_seconds
        self._claim_from, taken, deleted = self._group.take_over(idle, self._claim_from)
        if self._claim_from == "0-0":  # all were looked at
            self._claim_at = now + min(idle / _CLAIMS_PER_IDLE_TIME, _MAX_CLAIM_SECONDS)
        self._incidents.lost[LossReason.DELETED] += deleted
        self._own_first = self._own_first or taken > 0

    def _delivered_before(self) -> _Reading | None:
        """Entries that this consumer was given and has not acknowledged."""
        own = self._group.own(self._options.batch_records)
        if not own:
            return None
        times = {one.id: one.times for one in own}
        dying = [one.id for one in own if one.times >= self._options.max_deliveries]
        together = [one.id for one in own if one.times < ALONE_FROM]
        ready = together or [one.id for one in own if one.times < self._options.max_deliveries][:1]
        entries = self._group.deliver(ready)
        dead = [(entry, times[entry.id]) for entry in self._group.stored(dying)]
        present = {entry.id for entry in entries} | {entry.id for entry, _ in dead}
        missing = [one for one in (*ready, *dying) if one not in present]
        self._incidents.lost[LossReason.DELETED] += len(missing) - len(self._group.stored(missing))
        return self._reading_of(entries, [*ready, *dying], dead)

    def _reading_of(
        self, entries: Sequence[Entry], ids: Sequence[EntryId], dead: Sequence[tuple[Entry, int]] = ()
    ) -> _Reading:
        batch = batch_of(
            self._place,
            self._messages(entries),
            str(self._group.stored_until()),
            dead={entry.id.milliseconds: times for entry, times in dead},
            incidents=self._incidents.take(),
        )
        return _Reading(batch, ids, dead)

    def _messages(self, entries: Sequence[Entry]) -> list[Message]:
        return [Message(entry.id.offset, entry.id.milliseconds, entry.fields.get(self._field)) for entry in entries]

    def _acknowledge(self) -> None:
        """Acknowledge what is stored, dead letters included."""
        while self._unacknowledged:
            reading = self._unacknowledged[0]
            self._group.acknowledge(reading.ids, reading.dead)
            self._unacknowledged.pop(0)


def build(options: Options) -> RedisStreamsSource:
    """Build a source from its options.

    Raises:
        ConfigError: The extra is not installed.
    """
    return RedisStreamsSource(options)
