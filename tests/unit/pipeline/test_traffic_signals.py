"""Traffic without a judge: silence of a route, the age of documents, and how surely a share since a change is known."""

import random
from collections.abc import Callable, Mapping

import pytest
from support.kit import AT, Clock, an_admission
from unit.pipeline.test_traffic_drift import a_watch, pass_by

from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.streams import SignalStream
from ragwatch.pipeline.drift.traffic import KIND, SILENCE, SilenceLoop, TrafficRules
from ragwatch.statistics.drift.recovery import EndTest
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.stores.sqlite.store import SqliteStore

MINUTE, DAY = 60.0, 86400.0
ROUTES = ("search", "other")


def a_loop(store: SqliteStore, clock: Clock) -> SilenceLoop:
    """A process that has begun."""
    loop = SilenceLoop(ROUTES, 30.0, store=store, clock=clock)
    loop.resume()
    return loop


async def answers_pass(
    store: SqliteStore, clock: Clock, loop: SilenceLoop, minutes: int, every: Mapping[str, int]
) -> None:
    """Some time, a look every ten minutes; each route answers every so many of them."""
    for minute in range(0, minutes, 10):
        clock.now += 10 * MINUTE
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
    await answers_pass(store, clock, loop, 9 * 1440, {"search": 10, "other": 10})
    assert loop.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 0.0
    await answers_pass(store, clock, loop, 360, {"other": 10})
    assert loop.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 1.0
    assert loop.gauges()[Gauge.SILENCE_MISSED, ("search",)] > 20
    assert loop.gauges()[Gauge.SILENCE_ALARM, ("other",)] == 0.0
    again = a_loop(store, clock)
    assert again.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 1.0
    await answers_pass(store, clock, again, 10, {"search": 10})
    assert again.gauges()[Gauge.SILENCE_ALARM, ("search",)] == 0.0
    assert a_loop(store, clock).gauges()[Gauge.SILENCE_ALARM, ("search",)] == 0.0
    await answers_pass(store, clock, again, 720, {"search": 10})
    assert again.gauges()[Gauge.SILENCE_ALARM, ("other",)] == 0.0
    await answers_pass(store, clock, again, 120, {})
    assert again.gauges()[Gauge.SILENCE_ALARM, ("other",)] == 1.0


async def test_what_cannot_be_read_is_learnt_again(store: SqliteStore) -> None:
    """A state of another shape stops nothing."""
    store.remember(SILENCE, {"search": {"hours": []}})
    loop = a_loop(store, Clock(AT))
    assert await loop.step() is False
    assert loop.gauges() == {}


def aged(ages: Callable[[int, random.Random], float], first: int, last: int) -> list[Tallies]:
    """Hours of 200 answers each, whose documents have an age that depends on the hour."""
    some = []
    for hour in range(first, last):
        rng, tallies = random.Random(hour), Tallies()
        for _ in range(200):
            observe(tallies, Tally.CONTEXTS, ("search",), 5)
            observe(tallies, Tally.DOCUMENT_AGE, ("search",), ages(hour, rng))
        some.append(tallies)
    return some


def indexed_daily(_hour: int, rng: random.Random) -> float:
    """Ages of an index that is kept up to date: most documents are days old, some a year."""
    return rng.expovariate(1 / 5.0) if rng.random() < 0.7 else rng.uniform(100, 400)


def never_indexed(hour: int, rng: random.Random) -> float:
    """Ages of an index that is filled once: all documents of one day, and older by a day each day."""
    del rng
    return 127.0 + hour / 24.0


def indexed_monthly(hour: int, rng: random.Random) -> float:
    """Ages of an index that is rebuilt every 30 days."""
    del rng
    return hour / 24.0 % 30.0


@pytest.mark.slow
@pytest.mark.parametrize("ages", [indexed_daily, never_indexed, indexed_monthly])
def test_documents_may_grow_older_as_time_passes(
    store: SqliteStore, ages: Callable[[int, random.Random], float]
) -> None:
    """A day per day is no news, whatever the rhythm of the index: no alarm in two months."""
    clock = Clock()
    watch = a_watch(store, clock)
    pass_by(store, clock, watch, aged(ages, 0, 60 * 24))
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, ("document_age_days", "search")] == 0.0


def test_an_old_snapshot_of_the_index_is_noticed(store: SqliteStore) -> None:
    """Within the hour in which half of the answers come from documents that are two months older; with figures."""
    clock, cell = Clock(), ("document_age_days", "search")
    watch = a_watch(store, clock)
    pass_by(store, clock, watch, aged(indexed_daily, 0, 40))
    pass_by(store, clock, watch, aged(lambda hour, rng: indexed_daily(hour, rng) + 60 * (rng.random() < 0.5), 40, 41))
    gauges = watch.gauges()
    assert {at for (gauge, at), value in gauges.items() if gauge is Gauge.TRAFFIC_DRIFT_ALARM and value} == {cell}
    above, before, since = (
        "32.0",
        *(gauges[Gauge.TRAFFIC_DRIFT_SHARE, (*cell, "32.0", period)] for period in ("before", "since")),
    )
    assert store.runs(KIND, "/".join(cell), 5)[0].body["cut"] == above
    assert (before, since) == (pytest.approx(0.3, abs=0.03), pytest.approx(0.65, abs=0.1))


@pytest.mark.slow
def test_an_index_that_is_updated_no_more_is_noticed_after_weeks(store: SqliteStore) -> None:
    """Not on the next days, which may be a weekend, but once documents are more than twice as old as they were."""
    clock, cell = Clock(), (Gauge.TRAFFIC_DRIFT_ALARM, ("document_age_days", "search"))
    watch = a_watch(store, clock)
    pass_by(store, clock, watch, aged(indexed_daily, 0, 72))

    def stopped(hour: int, rng: random.Random) -> float:
        return indexed_daily(hour, rng) + (hour - 72) / 24.0

    pass_by(store, clock, watch, aged(stopped, 72, 72 + 10 * 24))
    assert watch.gauges()[cell] == 0.0
    pass_by(store, clock, watch, aged(stopped, 72 + 10 * 24, 72 + 35 * 24))
    assert watch.gauges()[cell] == 1.0


RULES = TrafficRules((Signal.ABSTENTIONS,), ("search",), requests=2000)
RISE = 0.5


def rises(share: float, seed: int) -> tuple[bool, bool]:
    """Whether the share, and its lower bound, ever were more than `RISE` above that of before."""
    rng, counts, now = random.Random(seed), [0, 0], 0.0
    stream = SignalStream(Signal.ABSTENTIONS, RULES.scheme(Signal.ABSTENTIONS), EndTest(30.0), (0, 0))
    for _ in range(2600):
        counts[rng.random() < 0.02] += 1
        now += 72.0
        if sum(counts) % 20 == 0:
            stream.take((counts[0], counts[1]), now)
    mean = low = False
    for _ in range(200):
        counts[rng.random() < share] += 1
        now += 3.0
        stream.take((counts[0], counts[1]), now)
        if (change := stream.change()) is not None:
            mean |= change.since - change.before > RISE
            low |= change.since_low - change.before > RISE
    return mean, low


@pytest.mark.costly
@pytest.mark.parametrize(("share", "pages"), [(0.4, False), (0.9, True)])
def test_the_bound_of_a_share_is_not_taken_in_by_the_first_answers(share: float, pages: bool) -> None:  # noqa: FBT001
    """Where 40 % refuse, more than half of the first eight often do: the mean rose by too much, its bound did not."""
    played = [rises(share, seed) for seed in range(12)]
    assert sum(mean for mean, _ in played) >= 3
    assert sum(low for _, low in played) == (len(played) if pages else 0)
