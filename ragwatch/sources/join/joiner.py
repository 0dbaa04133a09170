"""Joins the records of requests by id, in memory; what changes is handed to the store with each batch."""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.record import Record
from ragwatch.model.sample import Sample
from ragwatch.ports import Part
from ragwatch.sources.join.merge import MIN_PIECES, WHOLE, Pieces, RecordPart, is_piece, json_of, merged, shape_of
from ragwatch.statistics.tally import PartOutcome

_MAX_EXPIRED = 500  # requests that are joined at once although parts are missing
_REMEMBERED = 3  # times as long as a part waits: how long late parts of a request are recognised
Read = Callable[[Record], Sample | None]
Whole = Callable[[Sequence[RecordPart], Record], bool]
"""Whether no part of a request is missing, given its parts and the merged record."""


class JoinLimits(NamedTuple):
    """Limits of what waits."""

    seconds: float  # how long a part waits
    groups: int
    size: int  # bytes of all parts


class Stream(NamedTuple):
    """How answers in pieces are joined."""

    pieces: Pieces  # how their fields are put together
    # whether a part is the last one of its request; None where only silence ends it
    ends: Callable[[Record], bool] | None = None
    # names of sources in which equal pieces are different ones; a client may send a part again
    files: frozenset[str] = frozenset()


class Changes(NamedTuple):
    """What has to be stored after some records."""

    hold: tuple[Part, ...]  # parts that wait from now on
    release: tuple[str, ...]  # groups whose parts were stored before and wait no longer
    outcomes: Counter[PartOutcome]


@dataclass(slots=True)
class _Group:
    """The parts of one request, by name, their shapes, and since when it has waited.

    That is since its first part, or for answers in pieces since the newest one.
    """

    since: float
    parts: dict[str, Part] = field(default_factory=dict)
    shapes: set[int] = field(default_factory=set)
    stored: bool = False
    ended: bool = False


class _Done(NamedTuple):
    """A request that was joined or given up: names and shapes of its parts, and since when it waited."""

    parts: frozenset[str]
    shapes: frozenset[int]
    since: float


class Joiner:
    """Joins parts of requests.

    Args:
        names: Names of the sources of the parts, in the order of the configuration.
        by: Extracts the id of a record.
        whole: Decides whether a request is complete.
        read: Reads a record as a sample, although it may lack parts; None if it cannot.
        stream: How answers in pieces are joined; None for whole ones.
    """

    def __init__(
        self,
        names: Sequence[str],
        by: Callable[[Record], object],
        *,
        whole: Whole,
        read: Read,
        limits: JoinLimits,
        stream: Stream | None = None,
    ) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._by = by
        self._whole = whole
        self._read = read
        self._stream = stream
        self._pieces = WHOLE if stream is None else stream.pieces
        self._limits = limits
        self._groups: OrderedDict[str, _Group] = OrderedDict()  # by arrival of the first part
        self._done: OrderedDict[str, _Done] = OrderedDict()
        self._size = 0
        self._held: dict[str, list[Part]] = {}
        self._released: list[str] = []
        self._outcomes: Counter[PartOutcome] = Counter()
        self.waiting = Counter(dict.fromkeys(names, 0))

    def restore(self, parts: Iterable[Part], now: float) -> None:
        """Take back the parts that waited when the process ended: they wait from now on.

        Those of sources that are gone are released.
        """
        for part in parts:
            if part.name.partition("/")[0] in self._places:
                self._keep(part, orjson.loads(part.payload), now)
                self._groups[part.group].stored = True
            else:
                self._released.append(part.group)

    def add(self, source: str, record: Record, now: float, at: float) -> bytes | None:
        """Take one record. Returns the joined record as JSON if it completes a request.

        Waiting is measured by `now`, in monotonic seconds; `at` is stored with it, in seconds since the epoch.

        Raises:
            FormatError: It has no id, or cannot be joined.
        """
        group = fields.identity(self._by(record), "by")
        if group is None:
            raise fields.missing("by", "gives no id in this record; let `where` skip records that are no part")
        text = json_of(record)
        name = f"{source}/{hashlib.blake2b(text, digest_size=16).hexdigest()}"
        done = self._done.get(group)
        if done is not None and now - done.since < _REMEMBERED * self._limits.seconds:
            self._outcomes[_after(done, name, shape_of(record))] += 1
            return None
        waiting = self._groups.get(group)
        if waiting is not None and name in waiting.parts:
            stream = self._stream  # of files, equal pieces are pieces of their own
            if stream is None or source not in stream.files or not any(stream.pieces.texts_in(record).values()):
                self._outcomes[PartOutcome.REPEATED] += 1
                return None
            name = f"{name}.{len(waiting.parts)}"
        part = Part(group, name, text, at)
        self._keep(part, record, now)
        joined = self._joined(group)
        if group in self._groups:
            self._held.setdefault(group, []).append(part)
        while len(self._groups) > self._limits.groups or self._size > self._limits.size:
            self._drop(next(iter(self._groups)), PartOutcome.DROPPED)  # the oldest
        return joined

    def expire(self, now: float) -> list[bytes]:
        """End the wait of requests whose parts have waited too long. Call it only when every source is read to its end.

        Returns the joined records, as JSON, of those that can be read without the missing parts.
        """
        joined: list[bytes] = []
        while self._groups and len(joined) < _MAX_EXPIRED:
            group, waiting = next(iter(self._groups.items()))
            if now - waiting.since < self._limits.seconds:
                break
            is_whole = self._stream is None or self._stream.ends is None or waiting.ended
            if not is_whole:  # its end is missing
                self._drop(group, PartOutcome.ORPHANED)
            elif (text := self._drop_joined(group)) is not None:
                joined.append(text)
        return joined

    def changes(self) -> Changes:
        """Return what changed since the last call."""
        hold = tuple(part for parts in self._held.values() for part in parts)
        for group in self._held:
            self._groups[group].stored = True
        changes = Changes(hold, tuple(dict.fromkeys(self._released)), self._outcomes)
        self._held, self._released, self._outcomes = {}, [], Counter()
        return changes

    def _keep(self, part: Part, record: Record, now: float) -> None:
        group = self._groups.setdefault(part.group, _Group(now))
        group.parts[part.name] = part
        group.shapes.add(shape_of(record))
        if self._stream is not None:
            group.since = now
            self._groups.move_to_end(part.group)
            group.ended = group.ended or (self._stream.ends is not None and holds(self._stream.ends, record))
        self.waiting[part.name.partition("/")[0]] += 1
        self._size += len(part.payload)

    def _joined(self, group: str) -> bytes | None:
        """The record of a group that is complete; None while parts are missing."""
        waiting = self._groups[group]
        if self._stream is not None and self._stream.ends is not None and not waiting.ended:
            return None  # the parts of a stream are many: they are merged once
        try:
            parts = self._parts(group)
            record = merged(parts, group, self._pieces)
            if not self._whole(parts, record):
                return None
            return self._drop_joined(group, record)
        except FormatError:
            self._drop(group, PartOutcome.DROPPED)
            self._outcomes[PartOutcome.DROPPED] -= 1  # the last part is rejected
            raise

    def _drop_joined(self, group: str, record: dict[str, object] | None = None) -> bytes | None:
        """Forget the parts of a group, and return their record, if it can be read and holds no mere piece.

        A record that is given is complete: intake says why where it cannot be read.

        Raises:
            FormatError: The record that is given cannot be encoded.
        """
        parts = self._groups[group].parts
        try:
            joined = merged(self._parts(group), group, self._pieces) if record is None else record
            sample = self._read(joined) if record is None or len(parts) >= MIN_PIECES else None
            outcome = PartOutcome.ORPHANED if sample is None and record is None else PartOutcome.JOINED
            if sample is not None and self._stream is None and is_piece(joined, sample.answer):
                outcome = PartOutcome.PIECE
            text = json_of(joined) if outcome is PartOutcome.JOINED else None
        except FormatError:
            if record is not None:
                raise
            outcome, text = PartOutcome.ORPHANED, None
        self._drop(group, outcome)
        return text

    def _parts(self, group: str) -> list[RecordPart]:
        waiting = self._groups[group].parts.values()
        return [RecordPart(self._places[part.name.partition("/")[0]], part.payload) for part in waiting]

    def _drop(self, group: str, outcome: PartOutcome) -> None:
        """Forget the parts of a group, and remember that it is done."""
        waiting = self._groups.pop(group)
        self._held.pop(group, None)
        if waiting.stored:
            self._released.append(group)
        for part in waiting.parts.values():
            self._size -= len(part.payload)
            self.waiting[part.name.partition("/")[0]] -= 1
        self._outcomes[outcome] += len(waiting.parts)
        self._done[group] = _Done(frozenset(waiting.parts), frozenset(waiting.shapes), waiting.since)
        while len(self._done) > self._limits.groups:
            self._done.popitem(last=False)


def holds(condition: Callable[[Record], bool], record: Record) -> bool:
    """Whether a condition is true. One that fails is false: it may be about a part that is missing."""
    try:
        return condition(record)
    except FormatError:
        return False


def _after(done: _Done, name: str, shape: int) -> PartOutcome:
    """What a part is that arrives after its request was joined or given up."""
    if name in done.parts:
        return PartOutcome.REPEATED
    return PartOutcome.PIECE if shape in done.shapes else PartOutcome.LATE
