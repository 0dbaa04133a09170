"""Schedule: what is done at set times: forgetting once an hour, and each suite of canaries at its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.interval import IntervalTrigger

from ragwatch.config import crontab
from ragwatch.config.text import duration_seconds
from ragwatch.daemon.process import give_back
from ragwatch.daemon.rooms import Rooms
from ragwatch.telemetry import Telemetry

KEEP_SECONDS = 3600.0
GIVE_BACK_SECONDS = 300.0
LATE_SECONDS = 3600.0  # a run that was missed by less is made up for, once


class Schedule:
    """Jobs of the rooms in force. Two runs of one job never overlap, and missed ones are made up for once.

    Args:
        telemetry: Told of what fails; it is tried again at the next time.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def tasks(self) -> frozenset[asyncio.Task[object]]:
        """What is under way."""
        return frozenset(self._tasks)

    def start(self, rooms: Rooms) -> None:
        """Begin, or begin anew with other rooms. Suites run at once where they are to run at the start."""
        self._scheduler.remove_all_jobs()
        self._add("memory", lambda: asyncio.to_thread(give_back), IntervalTrigger(seconds=GIVE_BACK_SECONDS))
        self._add("keeping", rooms.keeping.step, IntervalTrigger(seconds=KEEP_SECONDS))
        for each in rooms.config.canaries:
            place, step = each.place, partial(rooms.canaries.run, each.place.suite)
            self._add(f"canaries {place.suite}", step, trigger_of(place.schedule, place.jitter))
            if place.at_start:
                self._begin(f"canaries {place.suite}", step)
        if not self._scheduler.running:
            self._scheduler.start()

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
