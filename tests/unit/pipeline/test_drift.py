"""Score drift: alarms at the right score, once; latched; by route; a new start per judge; weights and controls."""

from dataclasses import replace

import pytest
from structlog.testing import LogCapture
from support.kit import AT, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.watched import CELL, MINUTE, RULES, a_drift, faithful, settle, stepped, watch_answers

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.scores import KIND, ScoreDriftLoop
from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

pytestmark = pytest.mark.uncounted

DAY = 86400.0
BESIDE = {Gauge.BAND_MEAN, Gauge.BAND_LOW, Gauge.BAND_HIGH, Gauge.BAND_SCORES, Gauge.BAND_SINCE, Gauge.STAGE_BASELINE}


def of_detector(drift: ScoreDriftLoop) -> Gauges:
    """What it shows, but for the band and the stages."""
    return {place: value for place, value in drift.gauges().items() if place[0] not in BESIDE}


async def test_learns_then_alarms_once(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """Nothing is said while learning; the drop raises one alarm, which outlasts a few good answers and restarts.

    It says in the run and in the log that anchors tell of another judge.
    """
    settle(store, faithful(99))
    drift = a_drift(store, telemetry=telemetry, moved=True)
    assert await drift.step() is True
    assert of_detector(drift) == {}
    assert await drift.step() is False
    await watch_answers(drift, store, faithful(400)[99:], 99)
    quiet = drift.gauges()
    assert (quiet[Gauge.DRIFT_ALARM, CELL], quiet[Gauge.DRIFT_THRESHOLD, CELL]) == (0.0, 30.0)
    assert quiet[Gauge.DRIFT_BASELINE, CELL] == pytest.approx(0.86, abs=0.06)
    settle(store, faithful(0, 100), 400)
    await watch_answers(drift, store, [True] * 9, 500)
    runs = store.runs(KIND, "faithfulness/search", 10)
    assert [run.failing for run in runs] == [True]
    assert 400 < runs[0].body["seq"] < 460
    assert runs[0].at == AT + MINUTE * (runs[0].body["seq"] - 1)
    assert runs[0].body["evidence"] >= runs[0].body["threshold"] == 30.0
    assert store.tallies()[Tally.DRIFT_ALARMS, CELL] == 1
    again = await stepped(store)
    assert again.gauges() == drift.gauges()
    assert again.gauges()[Gauge.DRIFT_ALARM, CELL] == 1.0
    assert runs[0].body["judge_moved"] is True
    assert [(entry["event"], entry["judge_moved"]) for entry in log.entries] == [("drift", True)]
    assert len(store.runs(KIND, "faithfulness/search", 10)) == 1


async def test_failed_judgements_and_other_judges_move_nothing(store: SqliteStore) -> None:
    """Unjudged draws, answers without a claim and verdicts of another version leave evidence as it is."""
    settle(store, faithful(400))
    drift = await stepped(store)
    before = drift.gauges()
    draws = [a_draw(f"u{index}", at=AT + index) for index in range(50)]
    store.admit(an_admission(*draws))
    store.settle([an_unjudged(draw) for draw in draws])
    claimless = [a_draw(f"c{index}", at=AT + index) for index in range(50)]
    store.admit(an_admission(*claimless))
    store.settle([a_verdict(draw, an_evidence()) for draw in claimless])
    settle(store, [False] * 50, 1000, version="scripted-2")
    assert await drift.step() is True
    assert drift.gauges() == before


async def test_acknowledged_alarms_are_gone_for_good(store: SqliteStore) -> None:
    """Acknowledging takes the alarm down, here and after a restart; if things are still bad, another one comes."""
    settle(store, faithful(400, 100))
    drift = await stepped(store)
    assert store.runs(KIND, "faithfulness/search", 1)[0].body["judge_moved"] is False
    assert await drift.acknowledge("context_precision") == ()
    assert await drift.acknowledge(route="support") == ()
    assert await drift.acknowledge() == (CELL,)
    assert await drift.acknowledge() == ()
    for loop in (drift, a_drift(store)):
        assert loop.gauges()[Gauge.DRIFT_ALARM, CELL] == 0.0
        assert loop.gauges()[Gauge.DRIFT_EVIDENCE, CELL] == 0.0
    assert [(event.kind, event.detail) for event in store.events(0.0)] == [
        ("drift", "faithfulness/search: acknowledged")
    ]
    await watch_answers(drift, store, faithful(0, 100), 500)
    assert store.tallies()[Tally.DRIFT_ALARMS, CELL] == 2


@pytest.mark.costly
async def test_a_renewed_baseline_is_learnt_from_what_follows(store: SqliteStore) -> None:
    """The lower mean is ordinary from now on: no second alarm, against a lower baseline."""
    settle(store, faithful(400, 100))
    drift = await stepped(store)
    old = drift.gauges()[Gauge.DRIFT_BASELINE, CELL]
    assert await drift.acknowledge("faithfulness", "search", renew=True) == (CELL,)
    assert of_detector(drift) == {}
    await watch_answers(drift, store, faithful(0, 500), 500)
    assert drift.gauges()[Gauge.DRIFT_BASELINE, CELL] < old - 0.3
    assert store.tallies()[Tally.DRIFT_ALARMS, CELL] == 1


@pytest.mark.costly
async def test_another_version_of_the_judge_is_no_alarm(store: SqliteStore) -> None:
    """A harsher judge begins a new baseline, and says so; an alarm that stood still stands until acknowledged."""
    settle(store, faithful(400))
    await stepped(store)
    harsh = replace(RULES, version="scripted-2")
    settle(store, faithful(0, 400), 400, version="scripted-2")
    drift = await stepped(store, harsh)
    assert store.tallies()[Tally.DRIFT_ALARMS, CELL] == 0
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 0.0
    assert [event.kind for event in store.events(0.0)] == ["judge"]
    assert len([event for event in store.events(0.0) if "scripted-2, not by" in event.detail]) == 1
    await watch_answers(drift, store, [False] * 100, 800, version="scripted-2")
    third = a_drift(store, replace(RULES, version="scripted-3"), now=AT + 920 * MINUTE)
    await watch_answers(third, store, [True] * 20, 900, version="scripted-3")
    assert of_detector(third) == {(Gauge.DRIFT_ALARM, CELL): 1.0, (Gauge.DRIFT_PAUSED, (*CELL, "drift")): 1.0}
    assert third.gauges()[Gauge.BAND_SCORES, CELL] == 20.0
    assert await third.acknowledge() == (CELL,)
    assert of_detector(third) == {}


@pytest.mark.costly
async def test_routes_are_apart_and_share_the_budget(store: SqliteStore) -> None:
    """One route's drop is no other's; two detectors have twice the threshold; low is good where it is."""
    rules = replace(RULES, routes=("search", "support"), quantities=(Quantity.TOP_RANKED_IGNORED,))
    assert rules.alarm_at == 60.0
    settle(store, faithful(400, 100))
    settle(store, faithful(500, seed=2), 500, route="support")
    drift = await stepped(store, rules)
    shown = drift.gauges()
    assert shown[Gauge.DRIFT_ALARM, ("top_ranked_ignored", "search")] == 1.0
    assert shown[Gauge.DRIFT_ALARM, ("top_ranked_ignored", "support")] == 0.0
    assert shown[Gauge.DRIFT_BASELINE, ("top_ranked_ignored", "support")] < 0.3


@pytest.mark.costly
async def test_a_lower_probability_weighs_more(store: SqliteStore) -> None:
    """Of two routes with the same reference, the same failures move one more on which they stand for ten each."""
    rules = replace(RULES, routes=("search", "support"), lowest={"search": 0.1, "support": 0.1})
    for route, probability in (("search", 1.0), ("support", 0.1)):
        settle(store, [True] * 300, route=route, probability=0.1)
        settle(store, [False] * 8, 300, route=route, probability=probability)
    drift = await stepped(store, rules)
    light, heavy = (drift.gauges()[Gauge.DRIFT_EVIDENCE, ("faithfulness", route)] for route in rules.routes)
    assert heavy > 10 * light > 0.0


@pytest.mark.costly
async def test_beside_a_control(store: SqliteStore) -> None:
    """What falls on both routes is no alarm; what falls on one is, at the first score, with nothing to learn."""
    rules = replace(RULES, routes=("search", "steady"), controls={"search": "steady"})
    assert rules.cells == ((Quantity.FAITHFULNESS, "search"),)
    drift = a_drift(store, rules)
    for part in range(10):
        await watch_answers(drift, store, faithful(0, 30, seed=part), 30 * part)
        drift = a_drift(store, rules)  # and it still knows what waits for the other side
        await watch_answers(drift, store, faithful(0, 30, seed=part + 50), 30 * part, route="steady")
        drift = a_drift(store, rules)
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 0.0
    assert (Gauge.DRIFT_BASELINE, CELL) not in drift.gauges()
    for part in range(10, 20):
        await watch_answers(drift, store, faithful(0, 30, seed=part), 30 * part)
        drift = a_drift(store, rules)
        await watch_answers(drift, store, [True] * 30, 30 * part, route="steady")
        drift = a_drift(store, rules)
    assert drift.gauges()[Gauge.DRIFT_ALARM, CELL] == 1.0
    await drift.acknowledge()
    assert drift.gauges()[Gauge.DRIFT_EVIDENCE, CELL] == 0.0


async def test_kinds_without_a_guarantee_have_their_own_threshold(store: SqliteStore) -> None:
    """Page-Hinkley alarms at the configured height, not at days."""
    rules = replace(RULES, detector="page_hinkley", threshold=5.0)
    settle(store, faithful(400, 100))
    drift = await stepped(store, rules)
    assert drift.gauges()[Gauge.DRIFT_THRESHOLD, CELL] == 5.0
    assert store.runs(KIND, "faithfulness/search", 1)[0].body["evidence"] >= 5.0


async def test_what_cannot_be_continued_begins_anew(store: SqliteStore) -> None:
    """A route that gets a control has no queue yet: it begins, instead of ending the daemon."""
    rules = replace(RULES, routes=("search", "steady"))
    settle(store, faithful(400))
    await stepped(store, rules)
    drift = a_drift(store, replace(rules, controls={"search": "steady"}))
    assert drift.gauges()[Gauge.DRIFT_EVIDENCE, CELL] == 0.0


@pytest.mark.costly
async def test_learns_for_as_long_as_asked(store: SqliteStore) -> None:
    """Scores enough, but not six hours of them: still learning, and the hours are known after a restart."""
    rules = replace(RULES, reference_seconds=DAY / 4)
    settle(store, faithful(360))
    drift = await stepped(store, rules)
    assert of_detector(drift) == {}
    settle(store, faithful(60), 360)
    drift = await stepped(store, rules)
    assert drift.gauges()[Gauge.DRIFT_BASELINE, CELL] > 0.8
