"""Loops: a step, repeated until told to halt. A step that fails is reported, waits a little longer, and is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ragwatch.telemetry import Telemetry

LONGEST_PAUSE = 30.0
MOST_DOUBLINGS = 10  # of the pause; a power of an endless count of failures would outgrow a float


@dataclass(frozen=True, slots=True)
class Loop:
    """A step and its rhythm.

    Attributes:
        name: For logs and the reasons of `/-/ready`.
        step: Does one piece of work; True when more may be waiting.
        idle_seconds: Pause after a step that found nothing.
        wake: Set by others when there is news, so that the pause ends early.
        tell: Events to set when the step found something.
        eager: Goes on at once while there is work; otherwise it keeps its rhythm.
    """

    name: str
    step: Callable[[], Awaitable[bool]]
    idle_seconds: float
    wake: asyncio.Event | None = None
    tell: tuple[asyncio.Event, ...] = ()
    eager: bool = True


class StopSignal:
    """The wish that loops end at the next step, and a pause that hears it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def call(self) -> None:
        """Ask every loop to end."""
        self._event.set()

    async def pause(self, seconds: float, wake: asyncio.Event | None = None) -> None:
        """Wait; ends early on halt, and on `wake`, which is cleared."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._event, wake) if event is not None]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if wake is not None:
            wake.clear()


async def repeat(loop: Loop, halt: StopSignal, telemetry: Telemetry, problems: dict[str, str]) -> None:
    """Repeat a step until halted. `problems` holds, by loop, why its last step failed."""
    failures = 0
    telemetry.repeating(loop.name)
    while not halt:
        try:
            busy = await loop.step()
        except Exception as error:  # noqa: BLE001 - the monitor must outlive what it meets; the step is repeated
            failures += 1
            problems[loop.name] = str(error) or type(error).__name__
            telemetry.step_failed(loop.name, error)
            await halt.pause(min(LONGEST_PAUSE, loop.idle_seconds * 2 ** min(failures, MOST_DOUBLINGS)))
            continue
        failures = 0
        problems.pop(loop.name, None)
        for event in loop.tell if busy else ():
            event.set()
        if busy and loop.eager:
            await asyncio.sleep(0)
        else:
            await halt.pause(loop.idle_seconds, loop.wake)
