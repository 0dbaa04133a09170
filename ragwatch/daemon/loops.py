"""Repeats a step until it is stopped. A step that fails is logged and retried with exponential backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ragwatch.telemetry import Telemetry

MAX_PAUSE_SECONDS = 30.0
RETRY_SECONDS = 1.0
MAX_DOUBLINGS = 10  # of the pause, to avoid a float overflow


@dataclass(frozen=True, slots=True)
class Loop:
    """A step and when to repeat it.

    Attributes:
        name: Name in logs and in the reasons of `/-/ready`; the label `loop`.
        step: Does one unit of work; returns True if more may be waiting.
        idle_seconds: Pause after a step without work.
        wake: Event that ends the pause early.
        notify: Events to set after a step with work.
        eager: Whether to omit the pause after a step with work.
    """

    name: str
    step: Callable[[], Awaitable[bool]]
    idle_seconds: float
    wake: asyncio.Event | None = None
    notify: tuple[asyncio.Event, ...] = ()
    eager: bool = True


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
            problems[loop.name] = str(error) or type(error).__name__
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
