"""Changes of ragwatch itself become events, each once; and what others may report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from support.kit import Clock

from ragwatch.board import Board
from ragwatch.config import Config, parse
from ragwatch.daemon.actions import MAX_DETAIL_CHARS, actions
from ragwatch.daemon.changes import (
    ONE_CHANGE_SECONDS,
    EventKind,
    changed_sections,
    last_events,
    record_judges,
    record_reload,
)
from ragwatch.daemon.runtime import Runtime
from ragwatch.daemon.shared import SharedState
from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry
from ragwatch.web import Action, ParameterError

SOURCE = {"kind": "tail", "name": "app", "path": "app.jsonl"}


def config(tmp_path: Path, **sections: Any) -> Config:
    """A configuration with these sections."""
    return parse({"sources": [SOURCE], "state": str(tmp_path / "state"), **sections}, folder=tmp_path)


@pytest.fixture
def clock() -> Clock:
    """A clock wound by hand."""
    return Clock()


@pytest.fixture
def shared(tmp_path: Path, clock: Clock) -> Iterator[SharedState]:
    """What workers over an empty store share."""
    with closing(SqliteStore(tmp_path / "state")) as store:
        yield SharedState(store, Board(), Telemetry(), clock)


def details(shared: SharedState) -> list[tuple[str, str]]:
    """Kinds and details of the stored events."""
    return [(event.kind, event.detail) for event in shared.store.events(0.0)]


@pytest.mark.parametrize(
    ("sections", "changed"),
    [
        ({}, []),
        ({"thresholds": {"faithfulness": 0.9}}, ["thresholds"]),
        ({"routes": ["faq"], "thresholds": {"routes": {"faq": {"faithfulness": 0.5}}}}, ["routes", "thresholds"]),
        ({"judges": [{"name": "other", "kind": "lexical"}]}, ["judges"]),
        ({"redaction": {"salt": "secret"}}, ["redaction"]),
    ],
)
def test_sections_that_differ_are_named(tmp_path: Path, sections: dict[str, Any], changed: list[str]) -> None:
    """As in the file, without their values."""
    assert changed_sections(config(tmp_path), config(tmp_path, **sections)) == changed


def test_another_configuration_is_an_event_once(tmp_path: Path, shared: SharedState, clock: Clock) -> None:
    """Workers load the same file one after the other; what says the same is no change; a later change is another."""
    before, after = config(tmp_path), config(tmp_path, drain=5)
    record_reload(shared, before, before)
    record_reload(shared, before, after)
    event = ("reload", "configuration changed: drain")
    assert details(shared) == [event]
    record_reload(shared, before, after, "another worker")
    assert details(shared) == [event]
    clock.now += ONE_CHANGE_SECONDS + 1
    record_reload(shared, after, before)
    assert details(shared) == [event, event]


def test_another_version_of_a_judge_is_an_event(shared: SharedState) -> None:
    """A new judge is none; the judge that drift detection reads announces its versions itself."""
    for versions in ({"a": "1", "b": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "2", "c": "1"}, {"b": "2"}):
        record_judges(shared, versions, "a")
    assert details(shared) == [("judge", "judge b is 2 now, and was 1")]


def test_a_store_that_is_full_stops_nothing(tmp_path: Path, shared: SharedState) -> None:
    """The change is in force, and is not stored."""
    shared.store.engine._writer.execute("PRAGMA query_only=ON")  # type: ignore[attr-defined]  # of SQLite
    record_reload(shared, config(tmp_path), config(tmp_path, drain=5))
    record_judges(shared, {"a": "1"}, "")
    assert details(shared) == []


async def _unused() -> None:
    raise AssertionError


def _no_runtime() -> AbstractAsyncContextManager[Runtime]:
    raise AssertionError


def report(recorded: list[tuple[str, str]]) -> Action:
    """The action, which appends to `recorded`."""
    return actions(_unused, _no_runtime, lambda kind, detail: recorded.append((kind, detail)))["/-/events"]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({}, "kind: '' is not known; use one of: release, index, other"),
        ({"kind": "judge"}, "kind: 'judge' is not known"),
        ({"kind": "release", "text": "v2"}, "text: is not known; use kind, detail"),
        ({"kind": "release", "detail": "x" * (MAX_DETAIL_CHARS + 1)}, "501 characters, at most 500"),
    ],
)
async def test_other_events_are_refused(parameters: dict[str, str], told: str) -> None:
    """Kinds are few, because each is a series; those of ragwatch itself cannot be reported. The detail is optional."""
    recorded: list[tuple[str, str]] = []
    with pytest.raises(ParameterError, match=told):
        await report(recorded)(parameters)
    assert await report(recorded)({"kind": "release", "detail": "v2"}) == "release recorded"
    await report(recorded)({"kind": "index"})
    assert recorded == [("release", "v2"), ("index", "")]


def test_the_series_has_few_kinds() -> None:
    """Whatever kinds are stored, by earlier versions as well."""
    times = {**dict.fromkeys(EventKind, 3.0), "party": 5.0, "rollout": 4.0}
    gauges = last_events(times)
    assert {labels for _, labels in gauges} == {(kind,) for kind in EventKind}
    assert gauges[Gauge.LAST_EVENT, ("other",)] == 5.0
    assert last_events({}) == {}
