"""Events: what may be reported, and the series of the last one of each kind."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from ragwatch.core.snapshot import Gauge
from ragwatch.daemon.actions import MAX_DETAIL_CHARS, actions
from ragwatch.daemon.changes import EventKind, last_events
from ragwatch.daemon.runtime import Runtime
from ragwatch.web import Action, ParameterError


async def _unused() -> None:
    raise AssertionError


def _no_runtime() -> AbstractAsyncContextManager[Runtime]:
    raise AssertionError


def report(recorded: list[tuple[str, str]]) -> Action:
    """The action, which appends to `recorded`."""
    return actions(_unused, _no_runtime, lambda kind, detail: recorded.append((kind, detail)))["/-/events"]


async def test_an_event_is_recorded() -> None:
    """With its kind; the detail is optional."""
    recorded: list[tuple[str, str]] = []
    assert await report(recorded)({"kind": "release", "detail": "v2"}) == "release recorded"
    await report(recorded)({"kind": "index"})
    assert recorded == [("release", "v2"), ("index", "")]


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
    """Kinds are few, because each is a series; those of ragwatch itself cannot be reported."""
    recorded: list[tuple[str, str]] = []
    with pytest.raises(ParameterError, match=told):
        await report(recorded)(parameters)
    assert recorded == []


def test_the_series_has_few_kinds() -> None:
    """Whatever kinds are stored, by earlier versions as well."""
    times = {**dict.fromkeys(EventKind, 3.0), "party": 5.0, "rollout": 4.0}
    gauges = last_events(times)
    assert {labels for _, labels in gauges} == {(kind,) for kind in EventKind}
    assert gauges[Gauge.LAST_EVENT, ("other",)] == 5.0
    assert last_events({}) == {}
