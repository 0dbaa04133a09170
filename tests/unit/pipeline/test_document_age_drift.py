"""Age of documents: an index that stops to be updated is noticed, one that grows older as usual is not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from support.kit import Clock
from unit.pipeline.test_traffic_drift import a_watch, pass_by

from ragwatch.pipeline.drift.traffic import KIND
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.stores.sqlite.store import SqliteStore


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
