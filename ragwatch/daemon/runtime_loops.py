"""The loops of a runtime: what each repeats, how often, and which of them only the leader runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from anyio import CapacityLimiter, to_thread

from ragwatch.daemon.loops import Loop
from ragwatch.daemon.runtime import Runtime
from ragwatch.daemon.shared import Clock, SharedState
from ragwatch.errors import StoreError
from ragwatch.pipeline.leadership import RENEW_SECONDS, Leadership, Step
from ragwatch.ports import Store
from ragwatch.ports.capabilities import ReceivesRequests

ANSWER_SECONDS = 8.0
"""Searches may occupy all connections for some seconds; a store that does not answer for longer is not usable."""


class StoreCheck:
    """A loop that fails while the store does not answer, in a thread of its own: the others may all be waiting.

    Args:
        store: The store.
        clock: Returns seconds since the epoch.
        seconds: After so many without an answer a step fails.
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
        step = _led(leadership, judging.step) if judging.sends_batches else judging.step
        yield Loop(f"judge {judging.judge.name}", step, QUEUE_SECONDS, wake=admitted[judging.judge.name])
    yield Loop("digest", runtime.digest.step, runtime.config.settings.estimates.every, eager=False)
    if leadership is not None and leadership.is_shared:
        yield Loop("leader", leadership.step, RENEW_SECONDS, eager=False)
        yield Loop("other workers", runtime.refresh, MAINTENANCE_SECONDS, eager=False)


def _leader(runtime: Runtime, shared: SharedState) -> Iterator[Loop]:
    led, every = partial(_led, shared.leadership), runtime.config.settings.estimates.every
    give_up = partial(runtime.give_up, shared.store, shared.clock)
    for export in runtime.exports:
        yield Loop(f"export {export.signal}", led(export.step), QUEUE_SECONDS)
    yield Loop("sampling", led(runtime.sampling.step), every, eager=False)
    yield Loop("judges taken out", led(give_up), MAINTENANCE_SECONDS, eager=False)
    yield Loop("draws too old", led(runtime.expire), MAINTENANCE_SECONDS, eager=False)
    yield Loop("drift", led(runtime.watchers.detect), every, eager=False)
    yield Loop("judge drift", led(runtime.watchers.test_judge), MAINTENANCE_SECONDS, eager=False)


def _led(leadership: Leadership | None, step: Step) -> Step:
    return step if leadership is None else leadership.led(step)
