"""The loops of a runtime: what each repeats, how often, and which of them only the leader runs.

A step that fails is logged and retried with backoff. Reloads wait in a queue.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread

from ragwatch.daemon.process import SharedState
from ragwatch.daemon.runtime import Runtime
from ragwatch.errors import RagwatchError, StoreError
from ragwatch.pipeline.leadership import RENEW_SECONDS, Leadership
from ragwatch.ports import Clock, Store
from ragwatch.ports.capabilities import ReceivesRequests
from ragwatch.telemetry import Telemetry
from ragwatch.web import BusyError

MAX_RELOADS = 2  # one running and one waiting
RELOAD_RETRY_SECONDS = 5


class ReloadQueue:
    """Accepts reloads by HTTP request and by signal. Concurrent reloads must run one after the other."""

    def __init__(self, reload: Callable[[], Awaitable[None]]) -> None:
        self._reload = reload
        self._count = 0
        self._signals: set[asyncio.Task[None]] = set()

    async def request(self) -> None:
        """Reload, after a running reload has ended.

        Raises:
            BusyError: A reload is waiting already.
            ConfigError: The new configuration is not valid; the old one stays active.
            StoreError: The store cannot be read; the old configuration stays active.
        """
        if self._count >= MAX_RELOADS:
            raise BusyError(
                "a reload is under way and another one waits, which will read the configuration as it is then; "
                "wait for them, or ask again later",
                RELOAD_RETRY_SECONDS,
            )
        self._count += 1
        await self._run()

    def signal(self) -> None:
        """Reload, unless a reload is waiting, which has not read the configuration yet."""
        if self._count >= MAX_RELOADS:
            return
        self._count += 1
        task = asyncio.get_running_loop().create_task(self._run_for_signal())
        self._signals.add(task)  # the event loop keeps weak references only
        task.add_done_callback(self._signals.discard)

    async def _run_for_signal(self) -> None:
        with suppress(RagwatchError):  # `reload` logs it and sets the gauge
            await self._run()

    async def _run(self) -> None:
        try:
            await self._reload()
        finally:
            self._count -= 1


MAX_PAUSE_SECONDS = 30.0
RETRY_SECONDS = 1.0
MAX_DOUBLINGS = 10  # of the pause, to avoid a float overflow


@dataclass(frozen=True, slots=True)
class Loop:
    """A step and when to repeat it."""

    name: str  # name in logs and in the reasons of `/-/ready`; the label `loop`
    step: Callable[[], Awaitable[bool]]  # does one unit of work; returns True if more may be waiting
    idle_seconds: float  # pause after a step without work
    wake: asyncio.Event | None = None  # event that ends the pause early
    notify: tuple[asyncio.Event, ...] = ()  # events to set after a step with work
    eager: bool = True  # whether to omit the pause after a step with work


class StopSignal:
    """Stops loops after their current step."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        """Stop all loops that use this signal."""
        self._event.set()

    async def pause(self, seconds: float, wake: asyncio.Event | None = None) -> None:
        """Sleep until `seconds` have passed, the signal is set, or `wake` is set. Clears `wake`."""
        tasks = [asyncio.ensure_future(event.wait()) for event in (self._event, wake) if event is not None]
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if wake is not None:
            wake.clear()


async def repeat(loop: Loop, stop: StopSignal, telemetry: Telemetry, problems: dict[str, str]) -> None:
    """Repeat a step until stopped. Keeps in `problems`, by loop, why its last step failed."""
    failures = 0
    telemetry.repeating(loop.name)
    while not stop:
        try:
            busy = await loop.step()
        except Exception as error:  # noqa: BLE001 - a loop never ends because of an error; the step is retried
            failures += 1
            known = isinstance(error, RagwatchError)  # another one may quote texts, which only the log may hold
            problems[loop.name] = str(error) if known else f"internal error ({type(error).__name__}); see the log"
            telemetry.step_failed(loop.name, error)
            await stop.pause(min(MAX_PAUSE_SECONDS, loop.idle_seconds * 2 ** min(failures, MAX_DOUBLINGS)))
            continue
        failures = 0
        problems.pop(loop.name, None)
        for event in loop.notify if busy else ():
            event.set()
        if busy and loop.eager:
            await asyncio.sleep(0)
        else:
            await stop.pause(loop.idle_seconds, loop.wake)


async def retry(
    name: str, action: Callable[[], Awaitable[None]], stop: StopSignal, telemetry: Telemetry, problems: dict[str, str]
) -> bool:
    """Repeat an action until it succeeds once, as `repeat` does, and then set `stop`. False if stopped before."""
    done = False

    async def step() -> bool:
        nonlocal done
        await action()
        done = True
        stop.set()
        return False

    await repeat(Loop(name, step, RETRY_SECONDS), stop, telemetry, problems)
    return done


ANSWER_SECONDS = 8.0
"""Searches may occupy all connections for some seconds; a store that does not answer for longer is not usable."""


class StoreCheck:
    """A loop that fails while the store does not answer within some seconds.

    It asks in a thread of its own: the others may all be waiting.
    """

    def __init__(self, store: Store, clock: Clock, seconds: float = ANSWER_SECONDS) -> None:
        self._store, self._clock, self._seconds = store, clock, seconds
        self._thread = CapacityLimiter(1)
        self._asked: asyncio.Task[object] | None = None

    async def step(self) -> bool:
        """Ask, or wait on for the answer to the last question.

        Raises:
            StoreError: The store cannot be read, or has not answered in time.
        """
        if self._asked is None:
            question = to_thread.run_sync(self._store.last_events, self._clock(), limiter=self._thread)
            self._asked = asyncio.create_task(question)
        await asyncio.wait({self._asked}, timeout=self._seconds)
        if not self._asked.done():
            raise StoreError(f"store: does not answer within {self._seconds:g} s; look at its server, disk and load")
        asked, self._asked = self._asked, None
        asked.result()
        return False


POLL_SECONDS = 0.25
QUEUE_SECONDS = 1.0
MAINTENANCE_SECONDS = 60.0


def runtime_loops(runtime: Runtime, shared: SharedState) -> tuple[Loop, ...]:
    """Build the loops of a runtime."""
    return (
        Loop("store", StoreCheck(shared.store, shared.clock).step, QUEUE_SECONDS, eager=False),
        *_every_worker(runtime, shared.leadership),
        *_leader(runtime, shared),
    )


def _every_worker(runtime: Runtime, leadership: Leadership | None) -> Iterator[Loop]:
    admitted = {judging.judge.name: asyncio.Event() for judging in runtime.judgings}
    for intake in runtime.intakes:
        yield Loop(
            f"source {intake.source.name}",
            intake.step,
            POLL_SECONDS,
            wake=intake.source.wake if isinstance(intake.source, ReceivesRequests) else None,
            notify=tuple(admitted.values()),
        )
    for judging in runtime.judgings:
        yield Loop(f"judge {judging.judge.name}", judging.step, QUEUE_SECONDS, wake=admitted[judging.judge.name])
    yield Loop("digest", runtime.digest.step, runtime.config.settings.estimates.every, eager=False)
    if leadership is not None and leadership.is_shared:
        yield Loop("leader", leadership.step, RENEW_SECONDS, eager=False)
        yield Loop("other workers", runtime.refresh, MAINTENANCE_SECONDS, eager=False)


def _leader(runtime: Runtime, shared: SharedState) -> Iterator[Loop]:
    led, every = shared.in_leader, runtime.config.settings.estimates.every
    give_up = partial(runtime.give_up, shared.store, shared.clock)
    for export in runtime.exports:
        yield Loop(f"export {export.signal}", led(export.step), QUEUE_SECONDS)
    yield Loop("sampling", led(runtime.sampling.step), every, eager=False)
    yield Loop("judges taken out", led(give_up), MAINTENANCE_SECONDS, eager=False)
    yield Loop("draws too old", led(runtime.expire), MAINTENANCE_SECONDS, eager=False)
    yield Loop("drift", led(runtime.watchers.detect), every, eager=False)
    yield Loop("judge drift", led(runtime.watchers.test_judge), MAINTENANCE_SECONDS, eager=False)
