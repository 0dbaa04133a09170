"""Score drift and time: the band of a day, routes without traffic, wrong clocks, state of other versions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.kit import AT
from support.watched import CELL, MINUTE, RULES, a_drift, faithful, settle

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.stores.sqlite.store import SqliteStore

DAY = 86400.0
MIDNIGHT = AT - AT % DAY + DAY
BAND = {Gauge.BAND_MEAN, Gauge.BAND_LOW, Gauge.BAND_HIGH, Gauge.BAND_SCORES, Gauge.BAND_SINCE}


async def test_the_band_is_the_day_s_and_survives(store: SqliteStore) -> None:
    """It runs while nothing is learnt yet, begins anew at midnight and when the mean has moved, through restarts."""
    settle(store, [True, False] * 45)
    drift = a_drift(store, now=MIDNIGHT - MINUTE)
    await drift.step()
    first = drift.gauges()
    assert (first[Gauge.BAND_MEAN, CELL], first[Gauge.BAND_SCORES, CELL]) == (0.5, 90.0)
    assert first[Gauge.BAND_LOW, CELL] < 0.5 < first[Gauge.BAND_HIGH, CELL]
    assert first[Gauge.BAND_SINCE, CELL] == AT
    assert a_drift(store, now=MIDNIGHT - 1.0).gauges() == first
    settle(store, [True] * 300, 90)
    drift = a_drift(store, now=AT + 500 * MINUTE)
    await drift.step()
    later = drift.gauges()
    assert MIDNIGHT <= later[Gauge.BAND_SINCE, CELL] < MIDNIGHT + MINUTE
    assert later[Gauge.BAND_LOW, CELL] > 0.9
    settle(store, [False] * 60, 390)
    drift = a_drift(store, now=AT + 500 * MINUTE)
    await drift.step()
    moved = drift.gauges()
    assert moved[Gauge.BAND_SINCE, CELL] > AT + 390 * MINUTE
    assert moved[Gauge.BAND_HIGH, CELL] < 0.3


async def test_a_band_of_other_weights_begins_anew(store: SqliteStore) -> None:
    """What was bet under another heaviest weight says nothing about this one."""
    settle(store, faithful(90))
    await a_drift(store).step()
    drift = a_drift(store, replace(RULES, lowest={"search": 0.1}))
    assert (Gauge.BAND_MEAN, CELL) not in drift.gauges()


async def test_what_an_earlier_version_kept_has_no_band(store: SqliteStore) -> None:
    """And no beginning of learning: it is watched on as it was."""
    settle(store, faithful(400))
    await a_drift(store).step()
    kept = dict(store.recall(KIND) or {})
    del kept["bands"], kept["streams"]["faithfulness/search"]["learnt"]
    store.remember(KIND, kept)
    drift = a_drift(store, replace(RULES, reference_seconds=DAY * 9))
    assert {gauge for gauge, _ in drift.gauges()} & BAND == set()
    assert drift.gauges()[Gauge.DRIFT_EVIDENCE, CELL] > 0.0


async def test_a_route_that_fell_silent_has_no_band(store: SqliteStore) -> None:
    """Midnight alone takes no figure away, but what nobody has asked for a whole day is no figure of now."""
    settle(store, faithful(90))
    drift = a_drift(store, now=MIDNIGHT - 1.0)
    await drift.step()
    assert drift.gauges()[Gauge.BAND_SCORES, CELL] == 90.0
    assert a_drift(store, now=MIDNIGHT).gauges() == drift.gauges()
    later = a_drift(store, now=MIDNIGHT + DAY)
    for _ in range(2):
        assert {gauge for gauge, _ in later.gauges()} & BAND == set()
        await later.step()
    settle(store, [True], 2000)
    later = a_drift(store, now=AT + 2001 * MINUTE)
    await later.step()
    assert later.gauges()[Gauge.BAND_SCORES, CELL] == 1.0


async def test_a_band_that_cannot_be_read_begins_anew(store: SqliteStore) -> None:
    """Kept by another version: no reason not to start."""
    settle(store, faithful(90))
    await a_drift(store).step()
    kept = dict(store.recall(KIND) or {})
    store.remember(KIND, kept | {"bands": {"faithfulness/search": {"since": AT, "band": {"kind": "other"}}}})
    settle(store, [True], 90)
    drift = a_drift(store, now=AT + 91 * MINUTE)
    await drift.step()
    assert drift.gauges()[Gauge.BAND_SCORES, CELL] == 1.0


@pytest.mark.costly
async def test_a_clock_that_was_a_year_ahead_leaves_nobody_blind(store: SqliteStore) -> None:
    """Answers of that time count as of now, the band is today's, and a drop is an alarm as ever."""
    settle(store, faithful(400))
    await a_drift(store).step()
    settle(store, [True] * 5, 365 * 1440)
    await a_drift(store, now=AT + 366 * DAY).step()
    answers = faithful(1500, 100)
    for first in range(0, 1600, 100):
        assert store.tallies()[Tally.DRIFT_ALARMS, CELL] == 0
        settle(store, answers[first : first + 100], 400 + first)
        drift = a_drift(store, now=AT + (500 + first) * MINUTE)
        await drift.step()
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 1.0
    assert drift.gauges()[Gauge.BAND_SINCE, CELL] <= AT + 2000 * MINUTE


@pytest.mark.uncounted
async def test_a_season_of_silence_is_no_alarm(store: SqliteStore) -> None:
    """The first good answer after months calls nobody."""
    settle(store, faithful(400))
    settle(store, [True], 120 * 1440)
    drift = a_drift(store, now=AT + 121 * DAY)
    await drift.step()
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 0.0
