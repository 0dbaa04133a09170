"""Drift of segments: the value is named, one budget for all, and the number of detectors is bounded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission
from support.watched import BAD, GOOD, a_drift

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.rules import MAX_SEGMENT_DETECTORS, SEGMENT_SHARE, DriftRules
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.detectors.betting import Betting
from ragwatch.statistics.segments import Segment, Segments
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

TENANTS = tuple(f"tenant-{number}" for number in range(20))
ALL = DriftRules(JUDGE, "scripted-1", tuple(q for q in Quantity if q.row.drift), ("search", "other"))
RULES = replace(ALL, segments=Segments({"tenant": TENANTS}))
ACME = DriftRules(
    JUDGE,
    "scripted-1",
    (Quantity.FAITHFULNESS,),
    ("search",),
    reference=200,
    segments=Segments({"tenant": ("acme", "a/b")}),
)
CELL = ("faithfulness", "search", "tenant", "acme")
HOURLY = 50  # answers of a tenant: 5 % of 1,000


def settle(store: SqliteStore, answers: Sequence[tuple[str, bool]], first: int = 0) -> None:
    """Answers of tenants, one a minute, and whether each is faithful."""
    draws = [
        replace(a_draw(f"{first + n}", at=AT + 60.0 * (first + n)), segments=(Segment("tenant", tenant),))
        for n, (tenant, _) in enumerate(answers)
    ]
    store.admit(an_admission(*draws))
    read = a_reading(version="scripted-1")
    pairs = zip(draws, answers, strict=True)
    store.settle([a_verdict(draw, GOOD if good else BAD, read) for draw, (_, good) in pairs])


def mixed(size: int, seed: int, acme: float = 0.95) -> list[tuple[str, bool]]:
    """Answers of acme, one in ten, and of others."""
    rng = random.Random(seed)
    return [
        ("acme", rng.random() < acme) if index % 10 == 0 else ("other", rng.random() < 0.95) for index in range(size)
    ]


@pytest.mark.costly
async def test_an_alarm_names_the_value_and_ends(store: SqliteStore) -> None:
    """The route as a whole is well; the alarm, its end and an acknowledgement are about the tenant; restarts too."""
    settle(store, mixed(2200, 1))
    await a_drift(store, ACME).step()
    settle(store, mixed(250, 2, acme=0.2), 2200)
    loop = a_drift(store, ACME)
    await loop.step()
    gauges = loop.gauges()
    assert gauges[Gauge.SEGMENT_DRIFT_ALARM, CELL] == 1.0
    assert gauges[Gauge.SEGMENT_DRIFT_BEFORE, CELL] == pytest.approx(0.95, abs=0.05)
    assert gauges[Gauge.SEGMENT_DRIFT_SINCE, CELL] == pytest.approx(0.2, abs=0.15)
    assert gauges[Gauge.SEGMENT_DRIFT_BEGAN, CELL] == pytest.approx(AT + 2200 * 60, abs=50 * 60)
    assert gauges[Gauge.DRIFT_ALARM, CELL[:2]] == 0.0
    assert not [labels for gauge, labels in gauges if gauge is Gauge.DRIFT_EVIDENCE and len(labels) > 2]
    assert store.tallies()[Tally.DRIFT_ALARMS, CELL[:2]] == 0
    assert a_drift(store, ACME).gauges() == gauges
    settle(store, mixed(600, 3), 2450)
    again = a_drift(store, ACME)
    await again.step()
    assert again.gauges()[Gauge.SEGMENT_DRIFT_ALARM, CELL] == 0.0
    (event,) = store.events(0.0)
    assert event.detail.startswith("faithfulness/search, tenant acme: back since ")
    assert [run.failing for run in store.runs(KIND, "faithfulness//search//tenant//acme", 9)] == [False, True]


@pytest.mark.costly
async def test_acknowledging_a_route_is_for_its_segments_too(store: SqliteStore) -> None:
    """And a renewed baseline is learnt from what follows."""
    settle(store, [*mixed(2200, 1), *mixed(250, 2, acme=0.2)])
    loop = a_drift(store, ACME)
    await loop.step()
    assert await loop.acknowledge("faithfulness", "search") == (CELL,)
    assert [event.detail for event in store.events(0.0)] == ["faithfulness/search, tenant acme: acknowledged"]
    assert CELL in await loop.acknowledge(renew=True)
    assert (Gauge.SEGMENT_DRIFT_ALARM, CELL) not in loop.gauges()


async def test_an_alarm_of_a_route_stops_the_learning_of_its_segments(store: SqliteStore) -> None:
    """No step fails while the baseline of a value waits for the end of an alarm of the whole route."""
    settle(store, [("a/b", True)] * 400 + [("acme", True)] * 150)
    loop = a_drift(store, ACME)
    await loop.step()
    settle(store, [("a/b", False)] * 60, 550)
    await loop.step()
    assert loop.gauges()[Gauge.DRIFT_ALARM, CELL[:2]] == 1.0
    assert loop.paused("search") is not None
    settle(store, [("acme", True)] * 20, 610)
    await loop.step()


async def test_only_configured_values_have_detectors_and_not_too_many(store: SqliteStore) -> None:
    """Whatever a log says: `other` has none, and a value beyond the limit is counted."""
    many = replace(ACME, segments=Segments({"tenant": tuple(f"t{n}" for n in range(MAX_SEGMENT_DETECTORS + 5))}))
    settle(store, [(f"t{n}", True) for n in range(MAX_SEGMENT_DETECTORS + 5)] + [("other", True), ("t1", True)])
    loop = a_drift(store, many)
    await loop.step()
    assert loop.gauges()[Gauge.DRIFT_UNWATCHED, ()] == 5.0
    streams = store.recall(KIND)["streams"]  # type: ignore[index]
    assert len(streams) == 1 + MAX_SEGMENT_DETECTORS
    fewer = a_drift(store, replace(ACME, segments=Segments({"tenant": ("t1", "a/b")})))
    assert [cell for cell in fewer._streams if len(cell) > 2] == [("faithfulness", "search", "tenant", "t1")]


def test_routes_and_segments_have_one_budget() -> None:
    """The rates of all detectors add up to one false alarm in the configured time, with segments or without."""
    for rules in (ALL, RULES, ACME, replace(RULES, false_alarm_days=7.0)):
        detectors = rules.segment_detectors
        rates = len(rules.cells) / rules.alarm_at + (detectors and detectors / rules.segment_alarm_at)
        assert rates == pytest.approx(1.0 / rules.false_alarm_days)
    assert ALL.alarm_at / RULES.alarm_at == SEGMENT_SHARE


@pytest.mark.costly
@pytest.mark.parametrize("before", [0.98, 0.9])
def test_a_tenant_with_a_twentieth_of_the_traffic_is_told_within_300_answers(before: float) -> None:
    """A fall by .20, among 160 detectors of 20 tenants: of yes or no scores, which take longest."""
    delays = []
    for seed in range(20):
        rng, stream = random.Random(seed), RULES.stream(Quantity.FAITHFULNESS, "search", segment=True)
        seconds, seq = 3600.0 / HOURLY, 0
        while stream.alarm is None:
            mean = before if seq < 3000 else before - 0.2
            stream.take(seq, AT + seconds * seq, Score(float(rng.random() < mean)), control=False)
            seq += 1
        delays.append(seq - 3000)
    print(f"{before}: {fmean(delays):.0f}, at most {max(delays)}")
    assert min(delays) > 0
    assert fmean(delays) < 220
    assert sorted(delays)[-2] < 300


@pytest.mark.slow
def test_a_month_of_all_segments_has_no_more_false_alarms_than_promised() -> None:
    """160 detectors at the worst mean that is still unchanged: at most the half of one that segments have, and chance.

    The numbers of alarms in three months have a mean of at most 1.5; more than 4 would have a probability of 2 %.
    """
    rng, alarms = random.Random(5), 0
    detector = Betting(0.9, RULES.segment_alarm_at)
    for _ in range(RULES.segment_detectors):
        numbers = detector.start()
        for _ in range(3 * 30 * 24 * HOURLY // 10):  # a tenth of the answers, each of which stands for ten
            numbers = detector.step(numbers, Score(float(rng.random() < 0.9)), 10 / 24 / HOURLY)
            if detector.evidence(numbers) >= detector.threshold:
                numbers, alarms = detector.start(), alarms + 1
    assert alarms <= 4
