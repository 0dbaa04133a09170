"""Crontab expressions follow crontab(5); suites that run at the start run in time, and once."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.canaries import ScriptedProbe, a_canary, a_canary_loop, a_failure, a_suite_of
from support.kit import Clock
from support.patience import DEADLINE

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.config.crontab import week_days
from ragwatch.daemon import schedule
from ragwatch.daemon.process import SharedState
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.schedule import JobSchedule, next_delay, retention_trigger, trigger_of
from ragwatch.pipeline.canaries import CanarySuite
from ragwatch.pipeline.leadership import Leadership
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

SATURDAY = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def times(schedule: str, count: int) -> list[str]:
    """Fire times of a schedule, from a Saturday noon on, without jitter."""
    trigger, now, fire_times = trigger_of(schedule, 0.0), SATURDAY, []
    for _ in range(count):
        fires = trigger.get_next_fire_time(None, now)
        assert fires is not None
        fire_times.append(f"{fires:%a %d %H:%M}")
        now = fires + timedelta(seconds=1)
    return fire_times


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 6 * * 0", ["Sun 22 06:00", "Sun 29 06:00"]),
        ("0 6 * * 7", ["Sun 22 06:00", "Sun 29 06:00"]),
        ("0 6 * * 1-5", ["Mon 23 06:00", "Tue 24 06:00"]),
        ("0 6 * * fri-sun", ["Sun 22 06:00", "Fri 27 06:00"]),
        ("0 6 * * */3", ["Sun 22 06:00", "Wed 25 06:00"]),
        ("0 6 * * 4/2", ["Thu 26 06:00", "Sat 28 06:00"]),
        ("0 6 23 * 2", ["Mon 23 06:00", "Tue 24 06:00"]),
        ("0 6 */2 * 2", ["Tue 01 06:00", "Tue 15 06:00"]),
        ("*/30 * * * *", ["Sat 21 12:00", "Sat 21 12:30"]),
    ],
)
def test_when_it_runs(schedule: str, expected: list[str]) -> None:
    """Weeks begin on Sunday, 7 is Sunday too, and of two kinds of days either will do."""
    assert times(schedule, len(expected)) == expected


@pytest.mark.parametrize("field", ["8", "0-9", "mon-xyz", "5-2", "1,,2", "*/0", "l", "thu-tue", "1-5-6"])
def test_what_is_no_day(field: str) -> None:
    """Neither a number from 0 to 7, a name, a range nor a step."""
    with pytest.raises(ValueError, match=r"no day of a week|ends before it begins"):
        week_days(field)


@pytest.mark.parametrize("schedule", ["0 6 * *", "0 6 * * * *", "@daily", "99 6 * * 1", "0 0 30 2 *"])
def test_what_is_no_crontab(schedule: str) -> None:
    """The wrong number of fields, a field that is none, or a day that never comes: the suite would never run."""
    with pytest.raises(ValueError, match=r"fields|Error validating|never"):
        trigger_of(schedule, 0.0)


def test_retention_runs_soon_after_the_start() -> None:
    """Retention runs a minute after the start, for processes that restart every half an hour; then every hour."""
    trigger, now = retention_trigger(SATURDAY), SATURDAY
    fire_times: list[datetime] = []
    for _ in range(3):
        fires = trigger.get_next_fire_time(fire_times[-1] if fire_times else None, now)
        assert fires is not None
        fire_times.append(fires)
        now = fires
    assert [at - SATURDAY for at in fire_times] == [timedelta(minutes=minutes) for minutes in (1, 61, 121)]


REFUSED = a_failure("connect")


class Stage:
    """A schedule, and runtimes with one suite that runs at the start and then once a day."""

    def __init__(self, folder: Path, store: SqliteStore, telemetry: Telemetry) -> None:
        self.folder, self.shared = folder, SharedState(store, Board(), telemetry, Clock())
        self.schedule = JobSchedule(telemetry, Leadership(store, telemetry=telemetry))

    def runtime(self, service: ScriptedProbe, **place: Any) -> Runtime:
        """Build a runtime whose suite queries this service."""
        log = {"kind": "tail", "name": "app", "path": str(self.folder / "app.jsonl")}
        made = build(
            parse({"sources": [log], "canaries": [a_suite_of(**place)]}, folder=self.folder), self.shared, tuple
        )
        scripted = CanarySuite("docs", (a_canary("d1"),), (1,), service)
        return replace(made, canaries=a_canary_loop(self.shared.store, scripted, clock=self.shared.clock))

    async def ended(self) -> None:
        """Wait until all jobs have ended."""
        await asyncio.gather(*self.schedule.tasks)


@pytest.fixture
async def stage(tmp_path: Path, store: SqliteStore, telemetry: Telemetry) -> AsyncIterator[Stage]:
    """A schedule that is shut down at the end."""
    scripted = Stage(tmp_path, store, telemetry)
    yield scripted
    scripted.schedule.shutdown()


async def test_a_service_that_does_not_listen_yet(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is retried until it reaches the service, and not again; of the failed runs only one is counted."""
    monkeypatch.setattr(schedule, "MIN_RETRY_SECONDS", 0.0)
    service = ScriptedProbe(first=[REFUSED] * 5)
    stage.schedule.start(stage.runtime(service))
    await asyncio.wait_for(service.busy.wait(), DEADLINE)
    await stage.ended()
    tallies = stage.shared.store.tallies()
    assert len(service.asked) == 6
    assert tallies[Tally.CANARY_RUNS, ("docs",)] == 2
    assert tallies[Tally.CANARY_FAILURES, ("docs", "connect")] == 1


def test_retries_back_off_exponentially() -> None:
    """The delay starts at 5 seconds and doubles up to 5 minutes."""
    waits: list[float] = []
    for _ in range(8):
        waits.append(next_delay(waits[-1] if waits else None))
    assert waits == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


@pytest.mark.parametrize(
    ("reloads", "expected"),
    [
        ([({}, 0), ({}, 0), ({}, 0), ({"tau": 0.9}, 0), ({"tau": 0.9}, 0), ({}, 0)], [1, 0, 0, 1, 0, 1]),
        ([({}, 1), ({}, 1), ({}, 0), ({}, 0)], [1, 1, 1, 0]),
    ],
    ids=["changed", "refused"],
)
async def test_a_reload_runs_suites_that_are_new_to_the_service(
    stage: Stage, reloads: list[tuple[dict[str, Any], int]], expected: list[int]
) -> None:
    """A reload runs a suite again only if the suite has changed, or has not reached the service yet."""
    asked = []
    for place, refusals in reloads:
        service = ScriptedProbe(first=[REFUSED] * refusals)
        stage.schedule.start(stage.runtime(service, **place))
        await stage.ended()
        asked.append(len(service.asked))
    assert asked == expected


def times_of(stage: Stage) -> dict[str, datetime]:
    """When each job runs next."""
    return {job.id: job.next_run_time for job in stage.schedule._scheduler.get_jobs()}


@pytest.mark.parametrize("cron", [False, True])
async def test_a_reload_moves_no_times(stage: Stage, *, cron: bool) -> None:
    """Jobs run when they would have run without it, also a suite whose queries have changed."""
    schedule = "0 6 * * *" if cron else "1h"
    stage.schedule.start(stage.runtime(ScriptedProbe(), schedule=schedule, jitter="1m"))
    before = times_of(stage)
    assert set(before) == {"memory", "keeping", "canaries docs"}
    for place in ({}, {"tau": 0.9}):
        stage.schedule.start(stage.runtime(ScriptedProbe(), schedule=schedule, jitter="1m", **place))
        assert times_of(stage) == before


@pytest.mark.parametrize("hours", [0.0, -3.0, 3.0])
async def test_a_clock_that_is_set_back_delays_no_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """All get new times, within an interval from now; where it is right or set forward they keep them."""
    stage.schedule.start(stage.runtime(ScriptedProbe(), schedule="1h", jitter="0s"))
    before = times_of(stage)
    monkeypatch.setattr(schedule, "monotonic", lambda: time.monotonic() - 3600.0 * hours)
    await stage.schedule.follow_clock()
    after = times_of(stage)
    assert after.keys() == before.keys()
    assert [after[name] > at for name, at in before.items()] == [hours < 0.0] * 3
    assert max(after.values()) <= datetime.now(UTC) + timedelta(hours=1)


async def test_a_changed_schedule_starts_anew(stage: Stage) -> None:
    """So does a suite that was taken out for a while; the other jobs stay."""
    stage.schedule.start(stage.runtime(ScriptedProbe(), jitter="0s"))
    first = times_of(stage)
    stage.schedule.start(stage.runtime(ScriptedProbe(), schedule="2d", jitter="0s"))
    changed = times_of(stage)
    assert changed["canaries docs"] - first["canaries docs"] >= timedelta(days=1)
    stage.schedule.start(stage.runtime(ScriptedProbe(), suite="others", schedule="2d"))
    other = times_of(stage)
    stage.schedule.start(stage.runtime(ScriptedProbe(), schedule="2d", jitter="0s"))
    again = times_of(stage)
    assert "canaries docs" not in other
    assert again["canaries docs"] > changed["canaries docs"]
    assert {at["keeping"] for at in (first, changed, other, again)} == {first["keeping"]}


@pytest.mark.costly
async def test_a_suite_runs_between_reloads(stage: Stage) -> None:
    """Reloads that come more often than the suite runs do not keep it from running, and the newest runtime runs it."""
    old, new = ScriptedProbe(), ScriptedProbe()
    end = time.monotonic() + DEADLINE
    stage.schedule.start(stage.runtime(old, schedule="1s", jitter="0s", at_start=False))
    while not new.asked:
        assert time.monotonic() < end
        stage.schedule.start(stage.runtime(new, schedule="1s", jitter="0s", at_start=False))
        await asyncio.sleep(0.2)
    assert old.asked == []
