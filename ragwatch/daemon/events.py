"""Kinds of events, and the time of the last one of each kind for the series that dashboards annotate with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ragwatch.core.snapshot import Gauge, Gauges

RECENT_SECONDS = 7 * 86400.0


class EventKind(StrEnum):
    """Kind of an event: the first three are reported to ragwatch, the others it finds itself."""

    RELEASE = "release"
    INDEX = "index"
    OTHER = "other"
    JUDGE = "judge"
    DRIFT = "drift"
    VERSION = "version"
    RELOAD = "reload"
    CANARY = "canary"


REPORTED = (EventKind.RELEASE, EventKind.INDEX, EventKind.OTHER)


def last_events(times: Mapping[str, float]) -> Gauges:
    """Return the gauges of the last event by kind; an unknown kind counts as `other`, which bounds the series.

    >>> last_events({"release": 3.0, "rollout": 1.0, "party": 2.0})[Gauge.LAST_EVENT, ("other",)]
    2.0
    """
    newest: dict[tuple[Gauge, tuple[str, ...]], float] = {}
    for name, at in times.items():
        kind = EventKind(name) if name in set(EventKind) else EventKind.OTHER
        cell = Gauge.LAST_EVENT, (str(kind),)
        newest[cell] = max(at, newest.get(cell, at))
    return newest
