"""Silence loop: by route, through restarts; `other` is silent only while no route answers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.kit import AT, Clock, an_admission

from ragwatch.pipeline.drift.silence import KIND, SilenceLoop
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.stores.sqlite.store import SqliteStore

MINUTE, DAY = 60.0, 86400.0
ROUTES = ("search", "other")


def a_loop(store: SqliteStore, clock: Clock) -> SilenceLoop:
    """A process that has begun."""
    loop = SilenceLoop(ROUTES, 30.0, tallies=store.tallies, store=store, clock=clock)
    loop.resume()
    return loop


async def pass_by(store: SqliteStore, clock: Clock, loop: SilenceLoop, minutes: int, every: Mapping[str, int]) -> None:
    """Some time, a look every five minutes; each route answers every so many of them."""
    for minute in range(0, minutes, 5):
        clock.now += 5 * MINUTE
        tallies = Tallies()
        for route, gap in every.items():
            if minute % gap == 0:
                observe(tallies, Tally.CONTEXTS, (route,), 5)
        if tallies:
            store.admit(an_admission(tallies=tallies))
        await loop.step()


@pytest.mark.costly
async def test_a_route_that_stops_is_silent_until_it_answers(store: SqliteStore) -> None:
    """It is silent after hours, also for the process after a restart; the first answer ends it.

    `other`, whose answers a new route takes, is silent when that stops as well.
    """
    clock = Clock(AT)
    loop = a_loop(store, clock)
    await pass_by(store, clock, loop, 9 * 1440, {"search": 10, "other": 10})
    assert loop.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 0.0
    await pass_by(store, clock, loop, 360, {"other": 10})
    assert loop.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 1.0
    assert loop.gauges()[Gauge.SILENCE_MISSED, ("search",)] > 20
    assert loop.gauges()[Gauge.SILENCE_ALARM, ("other",)] == 0.0
    again = a_loop(store, clock)
    assert again.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 1.0
    await pass_by(store, clock, again, 5, {"search": 5})
    assert again.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 0.0
    assert a_loop(store, clock).gauges()[Gauge.SILENCE_ALARM, ("search",)] == 0.0
    await pass_by(store, clock, again, 720, {"search": 10})
    assert again.gauges()[Gauge.SILENCE_ALARM, ("other",)] == 0.0
    await pass_by(store, clock, again, 120, {})
    assert again.gauges()[Gauge.SILENCE_ALARM, ("other",)] == 1.0


async def test_what_cannot_be_read_is_learnt_again(store: SqliteStore) -> None:
    """A state of another shape stops nothing."""
    store.remember(KIND, {"search": {"hours": []}})
    loop = a_loop(store, Clock(AT))
    assert await loop.step() is False
    assert loop.gauges() == {}
