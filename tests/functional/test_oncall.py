"""Somebody is called: a broken retriever becomes one page that names its stage, mending ends it, and silence is told.

A real RAG service, ragwatch, Prometheus and Alertmanager on loopback, with windows of seconds instead of hours. What
has to be waited for is played by four stories at the same time (`oncall_stories`); each test tells how one ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from support.oncall_fleet import JOB, Fleet, plan
from support.oncall_stage import Stage, until
from support.oncall_stories import STORIES

pytestmark = pytest.mark.alone


@dataclass
class Played:
    """The stage, what runs on it, and how each story goes."""

    stage: Stage
    fleet: Fleet
    stories: Mapping[str, Future[dict[str, float]]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """All stories, begun."""
    folder = tmp_path_factory.mktemp("oncall")
    fleet = Fleet(folder)
    with ExitStack() as stack:
        stage = stack.enter_context(Stage(fleet.jobs).open(folder, lambda stage: plan(stage, fleet)))
        stack.enter_context(fleet)
        pool = stack.enter_context(ThreadPoolExecutor())
        yield Played(stage, fleet, {each.__name__: pool.submit(each, stage, fleet) for each in STORIES})


@pytest.mark.parametrize("story", [each.__name__ for each in STORIES])
def test_what_was_played(story: str, played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """Each story asserts what it is about, and tells how long things took."""
    took = played.stories[story].result()
    with capsys.disabled():
        for what, seconds in took.items():
            print(f"\n  {what}: {seconds:.1f} s", end="")


def test_stopping_everything_is_told(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is left that could be wrong: somebody is called for that, and for nothing else."""
    for each in played.stories.values():
        each.exception()
    before, begun = len(played.stage.heard), time.monotonic()
    played.fleet.stop()
    until("that no ragwatch is left", lambda: played.stage.told("oncall", JOB, "RagwatchAbsent", since=before))
    with capsys.disabled():
        print(f"\n  from the end of everything to its notification: {time.monotonic() - begun:.1f} s", end="")
    calls: list[dict[str, Any]] = [
        body for place, body in played.stage.heard[before:] if place == "oncall" and body["status"] == "firing"
    ]
    assert {alert["labels"]["alertname"] for body in calls for alert in body["alerts"]} == {"RagwatchAbsent"}
