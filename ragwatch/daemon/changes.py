"""Stores as events what changed in ragwatch itself: its configuration, and the versions of its judges.

Charts and dashboards mark them, because a figure may change with them. Of several workers over one store, one stores
each event.

The kinds of events stand here, too, and the time of the last one of each kind.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum

from ragwatch.config import Config
from ragwatch.daemon.process import SharedState, holder
from ragwatch.errors import StoreError
from ragwatch.ports import RecordedEvent
from ragwatch.statistics.snapshot import Gauge, Gauges

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


JUDGES = "judge versions"  # name of the state that holds the version of each judge
_SECTIONS = {"route_thresholds": "thresholds"}  # fields of the settings that are part of another section
ONE_CHANGE_SECONDS = 300.0  # within which workers load the same configuration


def record_reload(shared: SharedState, before: Config, after: Config, worker: str | None = None) -> None:
    """Store that another configuration is in force, by default in this worker; one that says the same is no change."""
    sections = changed_sections(before, after)
    if sections:
        _record(shared, EventKind.RELOAD, f"configuration changed: {', '.join(sections)}", worker)


def record_judges(shared: SharedState, versions: Mapping[str, str], watched: str) -> None:
    """Store which judges have another version than before; the one that drift detection watches does that itself."""
    with suppress(StoreError):  # where nothing can be written, the next start does it
        before = shared.store.recall(JUDGES) or {}
        if before == versions:
            return
        for name, version in versions.items():
            if name != watched and before.get(name, version) != version:
                _record(shared, EventKind.JUDGE, f"judge {name} is {version} now, and was {before[name]}")
        shared.store.remember(JUDGES, dict(versions))


def changed_sections(before: Config, after: Config) -> list[str]:
    """Name the sections of the configuration that differ.

    Never their values, which may be secrets.
    """
    settings = [name for name in type(after.settings).model_fields if _differs(before.settings, after.settings, name)]
    parts = [name for name in ("sources", "judges", "store", "canaries", "anchors") if _differs(before, after, name)]
    return sorted({*(_SECTIONS.get(name, name) for name in settings), *parts})


def _differs(before: object, after: object, name: str) -> bool:
    return bool(getattr(before, name) != getattr(after, name))


def _record(shared: SharedState, kind: EventKind, detail: str, worker: str | None = None) -> None:
    name = f"event {hashlib.blake2b(detail.encode(), digest_size=8).hexdigest()}"
    now = shared.clock()
    with suppress(StoreError):  # the change itself is done
        if shared.store.claim(name, worker or holder(), now=now, seconds=ONE_CHANGE_SECONDS):
            shared.store.record(RecordedEvent(now, str(kind), detail))
