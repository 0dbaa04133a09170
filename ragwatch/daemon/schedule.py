"""Schedules periodic jobs: retention once an hour, and each canary suite on its own schedule.

Suites with `at_start` also run when ragwatch starts, and after a reload that changes them. If the service does not
accept connections yet, such a run is retried with exponential backoff until it does.

A reload moves no times: a job whose schedule is the same runs next when it would have run without the reload. Where
the clock is set back, all jobs get new times: none would run for that long otherwise.

Of several workers that share a store, the leader runs them: intervals then count from midnight UTC of 1970, so that all
workers have the same times, and a leader that begins makes up for the last run if its predecessor has missed it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic, time

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from ragwatch.config import crontab
from ragwatch.config.canaries import SuiteConfig, SuitePlace
from ragwatch.daemon.process import trim_heap
from ragwatch.daemon.runtime import Runtime
from ragwatch.model.units import duration_seconds
from ragwatch.pipeline.leadership import Leadership, Step
from ragwatch.telemetry import Telemetry

RETENTION_SECONDS = 3600.0
FIRST_RETENTION_SECONDS = 60.0  # early, so that it also runs in a process that restarts every half an hour
MIN_RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 300.0  # until a suite that reached no service runs again
TRIM_HEAP_SECONDS = 300.0
MISFIRE_GRACE_SECONDS = 3600.0  # a run that is late by less still takes place, once
CLOCK_DIFFERENCE_SECONDS = 5.0  # between two workers: a run so long before its time is that run
CLOCK_STEP_SECONDS = 60.0  # a clock that is set back by less delays jobs by less than that
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JobSchedule:
    """Jobs of the active runtime. Runs of one job never overlap, and several missed runs become one.

    A job that fails is logged, and runs again at its next time.
    """

    def __init__(self, telemetry: Telemetry, leadership: Leadership) -> None:
        self._telemetry = telemetry
        self._leadership = leadership
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._tasks: set[asyncio.Task[object]] = set()
        self._runtime: Runtime | None = None
        self._reached: dict[str, SuiteConfig] = {}  # suites that have reached the service, as configured then
        self._schedules: dict[str, object] = {}  # by name of the job
        self._offset = time() - monotonic()

    @property
    def tasks(self) -> frozenset[asyncio.Task[object]]:
        """Running jobs."""
        return frozenset(self._tasks)

    def start(self, runtime: Runtime) -> None:
        """Start the jobs of a runtime in place of all others, and run new or changed suites with `at_start`."""
        if self._runtime is not None:  # suites that have reached the service need not run again
            reached = self._runtime.canaries.reached
            old = self._runtime.config.canaries
            self._reached |= {suite.place.suite: suite for suite in old if suite.place.suite in reached}
        self._runtime = runtime
        names = {"memory", "keeping", *(f"canaries {suite.place.suite}" for suite in runtime.config.canaries)}
        for job in self._scheduler.get_jobs():  # also the retries of runs at the start
            if job.id not in names:
                self._schedules.pop(job.id, None)
                job.remove()
        self._put("memory", lambda: asyncio.to_thread(trim_heap), IntervalTrigger(seconds=TRIM_HEAP_SECONDS))
        self._put("keeping", self._leadership.led(runtime.retention.step), retention_trigger(datetime.now(UTC)))
        for suite in runtime.config.canaries:
            options = suite.place
            trigger = trigger_of(options.schedule, options.jitter, aligned=self._leadership.is_shared)
            schedule = (options.schedule, options.jitter)
            self._put(f"canaries {options.suite}", self._scheduled(runtime, options), trigger, schedule)
            if options.at_start and self._reached.get(options.suite) != suite:
                run = self._leadership.led(partial(self._run_at_start, runtime, options.suite))
                self._start_task(f"canaries {options.suite}", run)
        if not self._scheduler.running:
            self._scheduler.start()

    async def follow_clock(self) -> bool:
        """Give all jobs new times if the clock was set back. Returns False."""
        before, self._offset = self._offset, time() - monotonic()
        if self._runtime is not None and self._offset < before - CLOCK_STEP_SECONDS:
            self._scheduler.remove_all_jobs()
            self._schedules.clear()
            self.start(self._runtime)
        return False

    def catch_up(self) -> None:
        """Run the suites whose last time has passed without a run. Called when this worker begins to lead."""
        if self._runtime is not None:
            for suite in self._runtime.config.canaries:
                self._start_task(f"canaries {suite.place.suite}", self._scheduled(self._runtime, suite.place))

    def _scheduled(self, runtime: Runtime, options: SuitePlace) -> Step:
        return self._leadership.led(partial(self._run_due, runtime, options))

    async def _run_due(self, runtime: Runtime, options: SuitePlace) -> bool:
        """Run a suite at its time; among several workers, if none has run it since."""
        if self._leadership.is_shared:
            last = await asyncio.to_thread(runtime.canaries.last_run, options.suite)
            if last is not None and not is_due(options.schedule, last, datetime.now(UTC)):
                return False
        await runtime.canaries.run(options.suite, store=self._leadership.store)
        return True

    async def _run_at_start(self, runtime: Runtime, suite: str, delay: float | None = None) -> bool:
        """Run a suite, and schedule a retry if the service does not accept connections yet."""
        if delay is None or suite not in runtime.canaries.reached:  # else a scheduled run has reached it meanwhile
            await runtime.canaries.run(suite, again=delay is not None, store=self._leadership.store)
        if suite in runtime.canaries.reached or runtime is not self._runtime:
            return True
        delay = next_delay(delay)
        retry = self._leadership.led(partial(self._run_at_start, runtime, suite, delay))
        self._scheduler.add_job(
            self._run,
            DateTrigger(datetime.now(UTC) + timedelta(seconds=delay)),
            args=(f"canaries {suite}", retry),
            misfire_grace_time=int(MISFIRE_GRACE_SECONDS),
        )
        return True

    def pause(self) -> None:
        """Start no more jobs."""
        self._scheduler.pause()

    def shutdown(self) -> None:
        """Stop the scheduler."""
        self._scheduler.shutdown(wait=False)

    def _put(
        self, name: str, step: Callable[[], Awaitable[object]], trigger: BaseTrigger, schedule: object = None
    ) -> None:
        """Add a job. One with the same schedule runs this step from now on, at the times that it has."""
        self._telemetry.repeating(name)
        if self._scheduler.get_job(name) is not None and self._schedules.get(name) == schedule:
            self._scheduler.modify_job(name, args=(name, step))
            return
        self._schedules[name] = schedule
        self._scheduler.add_job(
            self._run,
            trigger,
            args=(name, step),
            id=name,
            replace_existing=True,
            misfire_grace_time=int(MISFIRE_GRACE_SECONDS),
            coalesce=True,
            max_instances=1,
        )

    async def _run(self, name: str, step: Callable[[], Awaitable[object]]) -> None:
        # In a separate task: APScheduler cancels its tasks at shutdown, and a step must not end within a transaction.
        await asyncio.shield(self._start_task(name, step))

    def _start_task(self, name: str, step: Callable[[], Awaitable[object]]) -> asyncio.Task[object]:
        async def run_logged() -> object:
            try:
                return await step()
            except Exception as error:  # noqa: BLE001 - the job runs again at its next time
                self._telemetry.step_failed(name, error)
                return None

        task = asyncio.create_task(run_logged())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def next_delay(delay: float | None) -> float:
    """Compute the seconds until the next retry (exponential backoff); `delay` is None before the first retry."""
    return MIN_RETRY_SECONDS if delay is None else min(2 * delay, MAX_RETRY_SECONDS)


def retention_trigger(started: datetime) -> BaseTrigger:
    """Build the trigger of retention: shortly after the start, then every hour."""
    return IntervalTrigger(seconds=RETENTION_SECONDS, start_date=started + timedelta(seconds=FIRST_RETENTION_SECONDS))


def is_due(schedule: str, last: float, now: datetime) -> bool:
    """Whether a time of an aligned schedule has passed since a run, or the run was before the clock was set back.

    >>> noon = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
    >>> [is_due("10m", noon.timestamp() - seconds, noon) for seconds in (0.5, 3, 30)]
    [False, False, True]
    >>> is_due("4s", noon.timestamp() - 4.9, noon), is_due("10m", noon.timestamp() + 7200.0, noon)
    (True, True)
    """
    if last > now.timestamp() + CLOCK_STEP_SECONDS:
        return True
    trigger = trigger_of(schedule, 0.0, aligned=True)
    difference = CLOCK_DIFFERENCE_SECONDS
    if isinstance(trigger, IntervalTrigger):
        difference = min(difference, trigger.interval_length / 4)
    following = trigger.get_next_fire_time(None, datetime.fromtimestamp(last + difference, UTC))
    return following is not None and following <= now


def trigger_of(schedule: str, jitter: float, *, aligned: bool = False) -> BaseTrigger:
    """Build the trigger of a suite from an interval such as `10m`, or from a crontab expression.

    Args:
        schedule: The interval or expression.
        jitter: Maximum random delay of a run in seconds.
        aligned: Whether an interval counts from the same instant in all processes, not from now.

    Raises:
        ValueError: The schedule is neither.
    """
    jitter_seconds = int(jitter) or None
    try:
        seconds = duration_seconds(schedule)
    except ValueError:
        return crontab.trigger(schedule, jitter_seconds)
    return IntervalTrigger(seconds=seconds, start_date=EPOCH if aligned else None, jitter=jitter_seconds)
