"""Schedule: what is done at set times: forgetting once an hour, and each suite of canaries at its own.

Suites that run at the start do so when ragwatch starts, and at a reload where they are not what they were. Beside a
service that does not listen yet they are tried again soon, until somebody could be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from ragwatch.config import crontab
from ragwatch.config.canaries import SuiteConfig
from ragwatch.config.text import duration_seconds
from ragwatch.daemon.process import trim_heap
from ragwatch.daemon.runtime import Runtime
from ragwatch.telemetry import Telemetry

KEEP_SECONDS = 3600.0
FIRST_KEEP_SECONDS = 60.0  # whoever starts again each half an hour forgets all the same
FIRST_AGAIN, LONGEST_AGAIN = 5.0, 300.0  # seconds until a suite that could ask nobody is tried again
GIVE_BACK_SECONDS = 300.0
LATE_SECONDS = 3600.0  # a run that was missed by less is made up for, once


class JobSchedule:
    """Jobs of the rooms in force. Two runs of one job never overlap, and missed ones are made up for once.

    Args:
        telemetry: Told of what fails; it is tried again at the next time.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._tasks: set[asyncio.Task[object]] = set()
        self._rooms: Runtime | None = None
        self._asked: dict[str, SuiteConfig] = {}  # as they were when they last could be asked since the start

    @property
    def tasks(self) -> frozenset[asyncio.Task[object]]:
        """What is under way."""
        return frozenset(self._tasks)

    def start(self, rooms: Runtime) -> None:
        """Begin, or begin anew with other rooms. Suites run at once where they are to run at the start."""
        self._note_asked()
        self._rooms = rooms
        self._scheduler.remove_all_jobs()
        self._add("memory", lambda: asyncio.to_thread(trim_heap), IntervalTrigger(seconds=GIVE_BACK_SECONDS))
        self._add("keeping", rooms.keeping.step, keeping_trigger(datetime.now(UTC)))
        for each in rooms.config.canaries:
            place, step = each.place, partial(rooms.canaries.run, each.place.suite)
            self._add(f"canaries {place.suite}", step, trigger_of(place.schedule, place.jitter))
            if place.at_start and self._asked.get(place.suite) != each:
                self._begin(f"canaries {place.suite}", partial(self._ask_at_start, rooms, place.suite))
        if not self._scheduler.running:
            self._scheduler.start()

    def _note_asked(self) -> None:
        """Remember which suites the rooms before have asked: a reload that leaves them alone need not ask again."""
        if self._rooms is not None:
            reached = self._rooms.canaries.reached
            self._asked |= {
                each.place.suite: each for each in self._rooms.config.canaries if each.place.suite in reached
            }

    async def _ask_at_start(self, rooms: Runtime, suite: str, pause: float | None = None) -> None:
        """Run a suite. Whoever watches a service may begin before it listens, so it is tried again until it does."""
        if pause is None or suite not in rooms.canaries.reached:  # else its own time came first
            await rooms.canaries.run(suite, again=pause is not None)
        if suite in rooms.canaries.reached or rooms is not self._rooms:
            return
        pause = longer(pause)
        later = partial(self._ask_at_start, rooms, suite, pause)
        at = DateTrigger(datetime.now(UTC) + timedelta(seconds=pause))
        self._scheduler.add_job(self._run, at, args=(f"canaries {suite}", later), misfire_grace_time=int(LATE_SECONDS))

    def pause(self) -> None:
        """Begin nothing more."""
        self._scheduler.pause()

    def shutdown(self) -> None:
        """End for good."""
        self._scheduler.shutdown(wait=False)

    def _add(self, name: str, step: Callable[[], Awaitable[object]], trigger: BaseTrigger) -> None:
        self._telemetry.repeating(name)
        self._scheduler.add_job(
            self._run,
            trigger,
            args=(name, step),
            id=name,
            misfire_grace_time=int(LATE_SECONDS),
            coalesce=True,
            max_instances=1,
        )

    async def _run(self, name: str, step: Callable[[], Awaitable[object]]) -> None:
        # A task of our own: APScheduler's shutdown cancels what it runs, and steps must end between transactions.
        await asyncio.shield(self._begin(name, step))

    def _begin(self, name: str, step: Callable[[], Awaitable[object]]) -> asyncio.Task[object]:
        async def told() -> object:
            try:
                return await step()
            except Exception as error:  # noqa: BLE001 - tried again at the next time
                self._telemetry.step_failed(name, error)
                return None

        task = asyncio.create_task(told())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def longer(pause: float | None) -> float:
    """Seconds to wait before nobody is asked again; None where it was the first time."""
    return FIRST_AGAIN if pause is None else min(2 * pause, LONGEST_AGAIN)


def keeping_trigger(started: datetime) -> BaseTrigger:
    """When to forget: soon behind a start, and each hour from then on."""
    return IntervalTrigger(seconds=KEEP_SECONDS, start_date=started + timedelta(seconds=FIRST_KEEP_SECONDS))


def trigger_of(schedule: str, jitter: float) -> BaseTrigger:
    """When to run: every so often (`10m`), or as a crontab line says, a little spread.

    Raises:
        ValueError: It is neither.
    """
    spread = int(jitter) or None
    try:
        seconds = duration_seconds(schedule)
    except ValueError:
        return crontab.trigger(schedule, spread)
    return IntervalTrigger(seconds=seconds, jitter=spread)
