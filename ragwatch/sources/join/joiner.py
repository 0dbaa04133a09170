"""Joins the records of requests by id, in memory; what changes is handed to the store with each batch."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragwatch.core.tally import PartOutcome
from ragwatch.errors import FormatError
from ragwatch.formats import fields
from ragwatch.formats.shape import Record
from ragwatch.ports import Part
from ragwatch.sources.join.merge import RecordPart, json_of, merged

_MAX_EXPIRED = 500  # requests that are joined at once although parts are missing
_REMEMBERED = 3  # times as long as a part waits: how long late parts of a request are recognised
Whole = Callable[[Sequence[RecordPart], Record], bool]
"""Whether no part of a request is missing, given its parts and the merged record."""


class JoinLimits(NamedTuple):
    """Limits of what waits.

    Attributes:
        seconds: How long a part waits.
        groups: Number of requests.
        size: Bytes of all parts.
    """

    seconds: float
    groups: int
    size: int


class Changes(NamedTuple):
    """What has to be stored after some records.

    Attributes:
        hold: Parts that wait from now on.
        release: Groups whose parts were stored before and wait no longer.
        outcomes: Number of parts by outcome.
    """

    hold: tuple[Part, ...]
    release: tuple[str, ...]
    outcomes: Counter[PartOutcome]


@dataclass(slots=True)
class _Group:
    """The parts of one request, by name, and since when the first of them has waited."""

    since: float
    parts: dict[str, Part] = field(default_factory=dict)
    stored: bool = False


class _Done(NamedTuple):
    """A request that was joined or given up: the names of its parts, and since when the first of them waited."""

    parts: frozenset[str]
    since: float


class Joiner:
    """Joins parts of requests.

    Args:
        names: Names of the sources of the parts, in the order of the configuration.
        by: Extracts the id of a record.
        whole: Decides whether a request is complete.
        readable: Decides whether a record can be read, although it may lack parts.
        limits: Limits of what waits.
    """

    def __init__(
        self,
        names: Sequence[str],
        by: Callable[[Record], object],
        *,
        whole: Whole,
        readable: Callable[[Record], bool],
        limits: JoinLimits,
    ) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._by = by
        self._whole = whole
        self._readable = readable
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
                self._keep(part, now)
                self._groups[part.group].stored = True
            else:
                self._released.append(part.group)

    def add(self, source: str, record: Record, now: float, at: float) -> bytes | None:
        """Take one record. Returns the joined record as JSON if it completes a request.

        Args:
            source: Name of its source.
            record: The record.
            now: Monotonic seconds, by which waiting is measured.
            at: Seconds since the epoch, which are stored with it.

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
            self._outcomes[PartOutcome.REPEATED if name in done.parts else PartOutcome.LATE] += 1
            return None
        waiting = self._groups.get(group)
        if waiting is not None and name in waiting.parts:
            self._outcomes[PartOutcome.REPEATED] += 1
            return None
        part = Part(group, name, text, at)
        self._keep(part, now)
        joined = self._joined(group)
        if joined is None:
            self._held.setdefault(group, []).append(part)
            self._evict()
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
            record = merged(self._parts(group), group)
            try:
                text = json_of(record) if self._readable(record) else None
            except FormatError:
                text = None
            joined += [] if text is None else [text]
            self._drop(group, PartOutcome.ORPHANED if text is None else PartOutcome.JOINED)
        return joined

    def changes(self) -> Changes:
        """Return what changed since the last call."""
        hold = tuple(part for parts in self._held.values() for part in parts)
        for group in self._held:
            self._groups[group].stored = True
        changes = Changes(hold, tuple(dict.fromkeys(self._released)), self._outcomes)
        self._held, self._released, self._outcomes = {}, [], Counter()
        return changes

    def _keep(self, part: Part, now: float) -> None:
        self._groups.setdefault(part.group, _Group(now)).parts[part.name] = part
        self.waiting[part.name.partition("/")[0]] += 1
        self._size += len(part.payload)

    def _joined(self, group: str) -> bytes | None:
        """The record of a group that is complete; None while parts are missing."""
        parts = self._parts(group)
        record = merged(parts, group)
        try:
            if not self._whole(parts, record):
                return None
            joined = json_of(record)
        except FormatError:
            self._drop(group, PartOutcome.DROPPED)
            self._outcomes[PartOutcome.DROPPED] -= 1  # the last part is rejected
            raise
        self._drop(group, PartOutcome.JOINED)
        return joined

    def _parts(self, group: str) -> list[RecordPart]:
        waiting = self._groups[group].parts.values()
        return [RecordPart(self._places[part.name.partition("/")[0]], part.payload) for part in waiting]

    def _evict(self) -> None:
        """Drop the oldest requests while more wait than may."""
        while len(self._groups) > self._limits.groups or self._size > self._limits.size:
            self._drop(next(iter(self._groups)), PartOutcome.DROPPED)

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
        self._done[group] = _Done(frozenset(waiting.parts), waiting.since)
        while len(self._done) > self._limits.groups:
            self._done.popitem(last=False)


def by_number(parts: int) -> Whole:
    """Complete with a number of parts."""
    return lambda received, _: len(received) >= parts


def by_condition(condition: Callable[[Record], bool]) -> Whole:
    """Complete when a condition is true. A condition that fails is false: it may be about a part that is missing."""

    def whole(_: Sequence[RecordPart], record: Record) -> bool:
        try:
            return condition(record)
        except FormatError:
            return False

    return whole


def can_be_read(read: Callable[[Record, str], object], required: Sequence[str] = ()) -> Callable[[Record], bool]:
    """Whether a record can be read as a sample, with every required attribute."""

    def readable(record: Record) -> bool:
        try:
            sample = read(record, "?")
        except FormatError:
            return False
        return all(getattr(sample, name) is not None for name in required)

    return readable
