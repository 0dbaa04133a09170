"""When score drift learns and what it keeps: pauses during alerts, days, wrong clocks, state of other versions."""

from collections import Counter
from dataclasses import replace

import pytest
from structlog.testing import LogCapture
from support.kit import AT, JUDGE, Clock, an_admission
from support.watched import CELL, MINUTE, RULES, a_drift, faithful, settle, stepped, watch_answers

from ragwatch.board import Board
from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.loop import PauseReason, StandingAlerts
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.drift.traffic import TrafficDriftLoop, TrafficRules
from ragwatch.ports import LoopContext
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Gauges, Snapshot
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

LIMITS = {Quantity.FAITHFULNESS: 0.85, Quantity.TOP_RANKED_IGNORED: 0.3}


class Alert:
    """An alert that stands on all routes, or not."""

    reason: PauseReason | None = None

    def __call__(self, route: str) -> PauseReason | None:
        """Why nothing may be learnt."""
        del route
        return self.reason


@pytest.mark.uncounted
async def test_what_is_bad_does_not_become_the_baseline(
    store: SqliteStore, telemetry: Telemetry, log: LogCapture
) -> None:
    """Answers of the time of the alert are not learnt from; afterwards learning goes on where it stopped."""
    alert = Alert()
    drift = a_drift(store, telemetry=telemetry, standing=alert)
    await watch_answers(drift, store, faithful(90))
    alert.reason = PauseReason.CANARIES
    await watch_answers(drift, store, faithful(0, 600), 90)
    assert drift.gauges()[Gauge.DRIFT_PAUSED, (*CELL, "canaries")] == 1.0
    assert (Gauge.DRIFT_EVIDENCE, CELL) not in drift.gauges()
    await drift.step()
    alert.reason = None
    await watch_answers(drift, store, faithful(300, seed=3), 800)
    assert drift.gauges()[Gauge.DRIFT_BASELINE, CELL] > 0.85
    assert not any(gauge is Gauge.DRIFT_PAUSED for gauge, _ in drift.gauges())
    events = [(entry["event"], entry["routes"]) for entry in log.entries]
    assert events == [
        ("baseline is not learnt during an alert", {"search": "canaries"}),
        ("baseline is learnt again", ["search"]),
    ]


async def test_a_baseline_that_is_there_watches_during_an_alert(store: SqliteStore, telemetry: Telemetry) -> None:
    """Only learning waits: a detector that has its baseline raises its alarm."""
    alert = Alert()
    drift = a_drift(store, telemetry=telemetry, standing=alert)
    settle(store, faithful(400))
    await drift.step()
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 0.0
    alert.reason = PauseReason.THRESHOLD
    await watch_answers(drift, store, faithful(0, 100), 400)
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 1.0
    assert not any(gauge is Gauge.DRIFT_PAUSED for gauge, _ in drift.gauges())


@pytest.mark.uncounted
async def test_another_quantity_is_not_learnt_beside_a_drift_alarm(store: SqliteStore) -> None:
    """A baseline that is renewed while another quantity of the route has drifted waits until that is acknowledged."""
    rules = replace(RULES, quantities=(Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED))
    drift = a_drift(store, rules)
    await watch_answers(drift, store, faithful(400, 100))
    assert drift.paused("search") is PauseReason.DRIFT
    assert drift.paused("support") is None
    await drift.acknowledge("faithfulness", renew=True)
    assert drift.gauges()[Gauge.DRIFT_PAUSED, (*CELL, "drift")] == 1.0
    await watch_answers(drift, store, faithful(0, 400), 500)
    assert (Gauge.DRIFT_EVIDENCE, CELL) not in drift.gauges()
    await drift.acknowledge("top_ranked_ignored")
    await watch_answers(drift, store, faithful(400), 900)
    assert drift.gauges()[Gauge.DRIFT_BASELINE, CELL] > 0.85


def requests(count: int, empty: int) -> Tallies:
    """Counts of requests, some of which retrieved nothing."""
    tallies = Tallies()
    for index in range(count):
        observe(tallies, Tally.CONTEXTS, ("search",), 0 if index < empty else 5)
        tallies[Tally.EMPTY_RETRIEVALS, ("search",)] += index < empty
    return tallies


def test_traffic_of_an_outage_is_not_ordinary(store: SqliteStore) -> None:
    """Signals of traffic wait, too: the requests meanwhile are skipped, and noticed as unusual later."""
    alert, clock = Alert(), Clock()
    rules = TrafficRules((Signal.EMPTY_RETRIEVALS,), ("search",), requests=1000, reference_seconds=3600.0)
    loop = TrafficDriftLoop(rules, LoopContext(store, Telemetry(), clock), standing=alert)
    loop.resume()
    alert.reason = PauseReason.CANARIES
    for hour in range(48):
        clock.now += 3600.0
        store.admit(an_admission(tallies=Counter(requests(200, 100 if hour < 20 else 0))))
        loop._step()
        assert (Gauge.TRAFFIC_DRIFT_PAUSED in {gauge for gauge, _ in loop.gauges()}) == (hour < 20)
        if hour == 19:
            alert.reason = None
            loop._step()
    cell = ("empty_retrievals", "search")
    assert loop.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, cell] == 0.0
    for _ in range(3):
        clock.now += 3600.0
        store.admit(an_admission(tallies=Counter(requests(200, 20))))
        loop._step()
    assert loop.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, cell] == 1.0


def an_estimate(value: float, n: int, window: str, quantity: Quantity = Quantity.FAITHFULNESS) -> EstimateRow:
    """An estimate of the route `search` with an interval of .04."""
    figures = Estimate(value, value - 0.02, value + 0.02, n, float(n), 1.0, 0.0, 1.0, "score")
    return EstimateRow(quantity, "search", JUDGE, window, figures)


@pytest.mark.parametrize(
    ("estimates", "gauges", "expected"),
    [
        ((), {}, None),
        ((an_estimate(0.9, 100, "1h"),), {}, None),
        ((an_estimate(0.84, 100, "1h"),), {}, None),  # its interval contains the threshold
        ((an_estimate(0.8, 100, "1h"),), {}, PauseReason.THRESHOLD),
        ((an_estimate(0.8, 20, "5m"),), {}, None),  # too few
        ((an_estimate(0.8, 500, "1d"), an_estimate(0.9, 60, "1h")), {}, None),  # it is over
        ((an_estimate(0.9, 500, "1d"), an_estimate(0.8, 60, "1h")), {}, PauseReason.THRESHOLD),
        ((an_estimate(0.5, 60, "1h", Quantity.TOP_RANKED_IGNORED),), {}, PauseReason.THRESHOLD),
        ((an_estimate(0.1, 60, "1h", Quantity.TOP_RANKED_IGNORED),), {}, None),
        ((an_estimate(0.1, 60, "1h", Quantity.CONTEXT_USE),), {}, None),  # has no threshold
        ((), {(Gauge.CANARY_DEGRADED, ("docs",)): 0.0}, None),
        ((), {(Gauge.CANARY_DEGRADED, ("docs",)): 2.0}, PauseReason.CANARIES),
    ],
)
def test_what_stands(estimates: tuple[EstimateRow, ...], gauges: Gauges, expected: PauseReason | None) -> None:
    """The newest figures that are enough, significantly beyond a threshold of the route; or degraded canaries."""
    board = Board()
    standing = StandingAlerts(board, JUDGE, lambda route: LIMITS if route == "search" else {})
    assert standing.reason("search") is None
    board.publish(Snapshot(AT, estimates=estimates, gauges=gauges))
    assert standing.reason("search") is expected
    assert standing.reason("support") is (expected if expected is PauseReason.CANARIES else None)


DAY = 86400.0
MIDNIGHT = AT - AT % DAY + DAY
BAND = {Gauge.BAND_MEAN, Gauge.BAND_LOW, Gauge.BAND_HIGH, Gauge.BAND_SCORES, Gauge.BAND_SINCE}


async def test_the_band_is_the_day_s_and_survives(store: SqliteStore) -> None:
    """It runs while nothing is learnt yet, begins anew at midnight and when the mean has moved, through restarts."""
    settle(store, [True, False] * 45)
    drift = await stepped(store, now=MIDNIGHT - MINUTE)
    first = drift.gauges()
    assert (first[Gauge.BAND_MEAN, CELL], first[Gauge.BAND_SCORES, CELL]) == (0.5, 90.0)
    assert first[Gauge.BAND_LOW, CELL] < 0.5 < first[Gauge.BAND_HIGH, CELL]
    assert first[Gauge.BAND_SINCE, CELL] == AT
    assert a_drift(store, now=MIDNIGHT - 1.0).gauges() == first
    settle(store, [True] * 300, 90)
    drift = await stepped(store, now=AT + 500 * MINUTE)
    later = drift.gauges()
    assert MIDNIGHT <= later[Gauge.BAND_SINCE, CELL] < MIDNIGHT + MINUTE
    assert later[Gauge.BAND_LOW, CELL] > 0.9
    settle(store, [False] * 60, 390)
    drift = await stepped(store, now=AT + 500 * MINUTE)
    moved = drift.gauges()
    assert moved[Gauge.BAND_SINCE, CELL] > AT + 390 * MINUTE
    assert moved[Gauge.BAND_HIGH, CELL] < 0.3


@pytest.mark.parametrize("bands", [{}, {"bands": {"faithfulness/search": {"since": AT, "band": {"kind": "other"}}}}])
async def test_what_another_version_kept_has_no_band(store: SqliteStore, bands: dict[str, object]) -> None:
    """And no beginning of learning: it is watched on as it was, and the band begins anew with the next answer."""
    settle(store, faithful(400))
    await stepped(store)
    kept = dict(store.recall(KIND) or {})
    del kept["bands"], kept["streams"]["faithfulness/search"]["learnt"]
    store.remember(KIND, kept | bands)
    rules = replace(RULES, reference_seconds=DAY * 9)
    drift = a_drift(store, rules)
    assert {gauge for gauge, _ in drift.gauges()} & BAND == set()
    assert drift.gauges()[Gauge.DRIFT_EVIDENCE, CELL] > 0.0
    settle(store, [True], 400)
    drift = await stepped(store, rules, now=AT + 401 * MINUTE)
    assert drift.gauges()[Gauge.BAND_SCORES, CELL] == 1.0


async def test_a_route_that_fell_silent_has_no_band(store: SqliteStore) -> None:
    """Midnight alone takes no figure away, but what nobody has asked for a whole day is no figure of now."""
    settle(store, faithful(90))
    drift = await stepped(store, now=MIDNIGHT - 1.0)
    assert drift.gauges()[Gauge.BAND_SCORES, CELL] == 90.0
    assert a_drift(store, now=MIDNIGHT).gauges() == drift.gauges()
    later = a_drift(store, now=MIDNIGHT + DAY)
    for _ in range(2):
        assert {gauge for gauge, _ in later.gauges()} & BAND == set()
        await later.step()
    settle(store, [True], 2000)
    later = await stepped(store, now=AT + 2001 * MINUTE)
    assert later.gauges()[Gauge.BAND_SCORES, CELL] == 1.0


@pytest.mark.costly
async def test_a_clock_that_was_a_year_ahead_leaves_nobody_blind(store: SqliteStore) -> None:
    """Answers of that time count as of now, the band is today's, and a drop is an alarm as ever."""
    settle(store, faithful(400))
    await stepped(store)
    settle(store, [True] * 5, 365 * 1440)
    await stepped(store, now=AT + 366 * DAY)
    answers = faithful(1500, 100)
    for first in range(0, 1600, 400):
        assert store.tallies()[Tally.DRIFT_ALARMS, CELL] == 0
        settle(store, answers[first : first + 400], 400 + first)
        drift = await stepped(store, now=AT + (500 + first) * MINUTE)
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 1.0
    assert drift.gauges()[Gauge.BAND_SINCE, CELL] <= AT + 2000 * MINUTE
