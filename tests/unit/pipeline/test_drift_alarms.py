"""What an alarm of score drift says: the stage that changed, when the change began, both means, and whose answers."""

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.watched import BAD, CELL, MINUTE, a_drift, settle, stepped, watch_answers
from support.watched import RULES as FAITHFUL

from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.breaks import NEWEST_ANSWERS
from ragwatch.pipeline.drift.rules import MAX_SEGMENT_DETECTORS, SEGMENT_SHARE, DriftRules
from ragwatch.pipeline.drift.scores import KIND, ScoreDriftLoop
from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.drift.detectors import Betting
from ragwatch.statistics.segments import Segment, Segments
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

GOOD, UNSUPPORTED = an_evidence((1, 0)), an_evidence((0, 0))
POOR = an_evidence((1, 0), needs=(True, False, False))  # a good answer to a part of the question: retrieval is at fault
IGNORED = an_evidence((0, 1))
RULES = replace(FAITHFUL, quantities=(Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED))


def answers(evidences: Sequence[Evidence], count: int) -> list[Evidence]:
    """So many answers, of these in turn."""
    return [evidences[index % len(evidences)] for index in range(count)]


async def test_the_stage_that_rose_is_named_not_the_most_frequent_one(store: SqliteStore) -> None:
    """A quarter fails in retrieval every day; since the break a fifth fails in generation, and that is told."""
    settle(store, answers([GOOD, GOOD, GOOD, POOR], 400))
    await stepped(store, RULES)
    settle(store, answers([GOOD, GOOD, UNSUPPORTED, POOR, POOR], NEWEST_ANSWERS), 400)
    again = a_drift(store, RULES)  # the counts outlive a process
    await again.step()
    run = store.runs(KIND, "faithfulness/search", 1)[0]
    assert run.body["changed_stage"] == {"stage": "generation", "share": pytest.approx(0.2, abs=0.02), "before": 0.0}
    baseline = {labels: value for (gauge, labels), value in again.gauges().items() if gauge is Gauge.STAGE_BASELINE}
    assert baseline["search", "retrieval"] == pytest.approx(0.25, abs=0.01)
    assert sum(baseline.values()) == pytest.approx(1.0)


@pytest.mark.uncounted
async def test_an_earlier_fault_that_is_over_is_not_named(store: SqliteStore) -> None:
    """Retrieval was broken an hour ago and is mended; the alarm of the inventions names generation."""
    settle(store, answers([GOOD], 400))
    drift = await stepped(store, RULES)
    settle(store, answers([POOR], 100), 400)
    await watch_answers(drift, store, answers([GOOD], 60), 500)
    await watch_answers(drift, store, answers([UNSUPPORTED], 20), 560)
    change = store.runs(KIND, "faithfulness/search", 1)[0].body["changed_stage"]
    assert (change["stage"], change["before"]) == ("generation", 0.0)


@pytest.mark.uncounted
async def test_a_good_answer_beside_an_unused_top_context_is_alignment(store: SqliteStore) -> None:
    """Where the alarm is about the top context, the answers that it is about have a stage."""
    settle(store, answers([GOOD] * 9 + [IGNORED], 400))
    drift = await stepped(store, RULES)
    await watch_answers(drift, store, answers([GOOD, IGNORED], 200), 400)
    assert store.runs(KIND, "faithfulness/search", 1) == []
    change = store.runs(KIND, "top_ranked_ignored/search", 1)[0].body["changed_stage"]
    assert (change["stage"], change["before"]) == ("alignment", pytest.approx(0.1, abs=0.01))
    assert change["share"] > 0.11


@pytest.mark.uncounted
async def test_a_renewed_baseline_has_its_own_stages(store: SqliteStore) -> None:
    """What failed while the earlier reference was learnt does not count for the next one."""
    settle(store, answers([GOOD, POOR], 400))
    drift = await stepped(store, RULES)
    await drift.acknowledge(renew=True)
    assert not any(gauge is Gauge.STAGE_BASELINE for gauge, _ in drift.gauges())
    await watch_answers(drift, store, answers([GOOD], 400), 400)
    assert drift.gauges()[Gauge.STAGE_BASELINE, ("search", "none")] == 1.0


HEALTHY = [index % 20 != 0 for index in range(600)]
BROKEN = [index % 10 < 4 for index in range(200)]


def figures(drift: ScoreDriftLoop) -> dict[Gauge, float]:
    """Gauges of the break."""
    kinds = (Gauge.DRIFT_BEGAN, Gauge.DRIFT_BEFORE, Gauge.DRIFT_SINCE, Gauge.DRIFT_ANSWERS)
    return {gauge: value for (gauge, labels), value in drift.gauges().items() if gauge in kinds and labels == CELL}


@pytest.mark.parametrize("every", [70, 1000])
async def test_an_alarm_tells_when_the_change_began_and_both_means(store: SqliteStore, every: int) -> None:
    """Whatever the size of the batches, and although each batch is read by another process."""
    answers = HEALTHY + BROKEN
    for first in range(0, len(answers), every):
        settle(store, answers[first : first + every], first)
        drift = await stepped(store)
    told = figures(drift)
    broke = len(HEALTHY)
    began = round((told[Gauge.DRIFT_BEGAN] - AT) / MINUTE)
    assert abs(began - broke) <= 5
    assert told[Gauge.DRIFT_ANSWERS] == len(answers) - began
    assert told[Gauge.DRIFT_BEFORE] == pytest.approx(0.95, abs=0.001)
    assert told[Gauge.DRIFT_SINCE] == pytest.approx(0.4, abs=0.02)
    known = store.runs(KIND, "/".join(CELL), 1)[0].body["break"]
    assert (known["began"], known["before"]) == (told[Gauge.DRIFT_BEGAN], told[Gauge.DRIFT_BEFORE])


async def test_without_an_alarm_there_is_no_break(store: SqliteStore) -> None:
    """Not before it, and not after it was acknowledged; the next one begins later."""
    settle(store, HEALTHY)
    drift = await stepped(store)
    assert figures(drift) == {}
    await watch_answers(drift, store, BROKEN, 600)
    first = figures(drift)[Gauge.DRIFT_BEGAN]
    await drift.acknowledge()
    assert figures(drift) == {}
    settle(store, HEALTHY, 800)
    await watch_answers(drift, store, BROKEN, 1400)
    assert figures(drift)[Gauge.DRIFT_BEGAN] - first >= 790 * MINUTE


TENANTS = tuple(f"tenant-{number}" for number in range(20))
ALL = DriftRules(JUDGE, "scripted-1", tuple(q for q in Quantity if q.row.drift), ("search", "other"))
TENANT_RULES = replace(ALL, segments=Segments({"tenant": TENANTS}))
ACME = DriftRules(
    JUDGE,
    "scripted-1",
    (Quantity.FAITHFULNESS,),
    ("search",),
    reference=200,
    segments=Segments({"tenant": ("acme", "a/b")}),
)
ACME_CELL = ("faithfulness", "search", "tenant", "acme")
HOURLY = 50  # answers of a tenant: 5 % of 1,000


def settle_tenants(store: SqliteStore, answers: Sequence[tuple[str, bool]], first: int = 0) -> None:
    """Answers of tenants, one a minute, and whether each is faithful."""
    draws = [
        replace(a_draw(f"{first + n}", at=AT + 60.0 * (first + n)), segments=(Segment("tenant", tenant),))
        for n, (tenant, _) in enumerate(answers)
    ]
    store.admit(an_admission(*draws))
    read = a_reading(version="scripted-1")
    pairs = zip(draws, answers, strict=True)
    store.settle([a_verdict(draw, GOOD if good else BAD, read) for draw, (_, good) in pairs])


async def watch_tenants(
    loop: ScoreDriftLoop, store: SqliteStore, answers: Sequence[tuple[str, bool]], first: int = 0
) -> None:
    """Judge answers of tenants, and take one step."""
    settle_tenants(store, answers, first)
    await loop.step()


def mixed(size: int, seed: int, acme: float = 0.95) -> list[tuple[str, bool]]:
    """Answers of acme, one in ten, and of others."""
    rng = random.Random(seed)
    return [
        ("acme", rng.random() < acme) if index % 10 == 0 else ("other", rng.random() < 0.95) for index in range(size)
    ]


@pytest.mark.uncounted
@pytest.mark.costly
async def test_an_alarm_names_the_value_and_ends(store: SqliteStore) -> None:
    """The route as a whole is well; the alarm, its end and an acknowledgement are about the tenant; restarts too."""
    settle_tenants(store, mixed(2200, 1))
    await stepped(store, ACME)
    settle_tenants(store, mixed(250, 2, acme=0.2), 2200)
    loop = await stepped(store, ACME)
    gauges = loop.gauges()
    assert gauges[Gauge.SEGMENT_DRIFT_ALARM, ACME_CELL] == 1.0
    assert gauges[Gauge.SEGMENT_DRIFT_BEFORE, ACME_CELL] == pytest.approx(0.95, abs=0.05)
    assert gauges[Gauge.SEGMENT_DRIFT_SINCE, ACME_CELL] == pytest.approx(0.2, abs=0.15)
    assert gauges[Gauge.SEGMENT_DRIFT_BEGAN, ACME_CELL] == pytest.approx(AT + 2200 * 60, abs=50 * 60)
    assert gauges[Gauge.DRIFT_ALARM, ACME_CELL[:2]] == 0.0
    assert not [labels for gauge, labels in gauges if gauge is Gauge.DRIFT_EVIDENCE and len(labels) > 2]
    assert store.tallies()[Tally.DRIFT_ALARMS, ACME_CELL[:2]] == 0
    assert a_drift(store, ACME).gauges() == gauges
    settle_tenants(store, mixed(600, 3), 2450)
    again = await stepped(store, ACME)
    assert again.gauges()[Gauge.SEGMENT_DRIFT_ALARM, ACME_CELL] == 0.0
    (event,) = store.events(0.0)
    assert event.detail.startswith("faithfulness/search, tenant acme: back since ")
    assert [run.failing for run in store.runs(KIND, "faithfulness//search//tenant//acme", 9)] == [False, True]


@pytest.mark.uncounted
@pytest.mark.costly
async def test_acknowledging_a_route_is_for_its_segments_too(store: SqliteStore) -> None:
    """And a renewed baseline is learnt from what follows."""
    settle_tenants(store, [*mixed(2200, 1), *mixed(250, 2, acme=0.2)])
    loop = await stepped(store, ACME)
    assert await loop.acknowledge("faithfulness", "search") == (ACME_CELL,)
    assert [event.detail for event in store.events(0.0)] == ["faithfulness/search, tenant acme: acknowledged"]
    assert ACME_CELL in await loop.acknowledge(renew=True)
    assert (Gauge.SEGMENT_DRIFT_ALARM, ACME_CELL) not in loop.gauges()


@pytest.mark.uncounted
async def test_an_alarm_of_a_route_stops_the_learning_of_its_segments(store: SqliteStore) -> None:
    """No step fails while the baseline of a value waits for the end of an alarm of the whole route."""
    settle_tenants(store, [("a/b", True)] * 400 + [("acme", True)] * 150)
    loop = await stepped(store, ACME)
    await watch_tenants(loop, store, [("a/b", False)] * 60, 550)
    assert loop.gauges()[Gauge.DRIFT_ALARM, ACME_CELL[:2]] == 1.0
    assert loop.paused("search") is not None
    await watch_tenants(loop, store, [("acme", True)] * 20, 610)


@pytest.mark.uncounted
async def test_only_configured_values_have_detectors_and_not_too_many(store: SqliteStore) -> None:
    """Whatever a log says: `other` has none, and a value beyond the limit is counted."""
    many = replace(ACME, segments=Segments({"tenant": tuple(f"t{n}" for n in range(MAX_SEGMENT_DETECTORS + 5))}))
    settle_tenants(store, [(f"t{n}", True) for n in range(MAX_SEGMENT_DETECTORS + 5)] + [("other", True), ("t1", True)])
    loop = await stepped(store, many)
    assert loop.gauges()[Gauge.DRIFT_UNWATCHED, ()] == 5.0
    streams = store.recall(KIND)["streams"]  # type: ignore[index]
    assert len(streams) == 1 + MAX_SEGMENT_DETECTORS
    fewer = a_drift(store, replace(ACME, segments=Segments({"tenant": ("t1", "a/b")})))
    assert [cell for cell in fewer._streams if len(cell) > 2] == [("faithfulness", "search", "tenant", "t1")]


@pytest.mark.uncounted
def test_routes_and_segments_have_one_budget() -> None:
    """The rates of all detectors add up to one false alarm in the configured time, with segments or without."""
    for rules in (ALL, TENANT_RULES, ACME, replace(TENANT_RULES, false_alarm_days=7.0)):
        detectors = rules.segment_detectors
        rates = len(rules.cells) / rules.alarm_at + (detectors and detectors / rules.segment_alarm_at)
        assert rates == pytest.approx(1.0 / rules.false_alarm_days)
    assert ALL.alarm_at / TENANT_RULES.alarm_at == SEGMENT_SHARE


@pytest.mark.uncounted
@pytest.mark.costly
@pytest.mark.parametrize("before", [0.98, 0.9])
def test_a_tenant_with_a_twentieth_of_the_traffic_is_told_within_300_answers(before: float) -> None:
    """A fall by .20, among 160 detectors of 20 tenants: of yes or no scores, which take longest."""
    delays = []
    for seed in range(10):
        rng, stream = random.Random(seed), TENANT_RULES.stream(Quantity.FAITHFULNESS, "search", segment=True)
        seconds, seq = 3600.0 / HOURLY, 0
        while stream.alarm is None:
            mean = before if seq < 3000 else before - 0.2
            stream.take(seq, AT + seconds * seq, Score(float(rng.random() < mean)), control=False)
            seq += 1
        delays.append(seq - 3000)
    print(f"{before}: {fmean(delays):.0f}, at most {max(delays)}")
    assert min(delays) > 0
    assert fmean(delays) < 220
    assert max(delays) < 300


@pytest.mark.uncounted
@pytest.mark.slow
def test_a_month_of_all_segments_has_no_more_false_alarms_than_promised() -> None:
    """160 detectors at the worst mean that is still unchanged: at most the half of one that segments have, and chance.

    The numbers of alarms in three months have a mean of at most 1.5; more than 4 would have a probability of 2 %.
    """
    rng, alarms = random.Random(5), 0
    detector = Betting(0.9, TENANT_RULES.segment_alarm_at)
    for _ in range(TENANT_RULES.segment_detectors):
        numbers = detector.start()
        for _ in range(3 * 30 * 24 * HOURLY // 10):  # a tenth of the answers, each of which stands for ten
            numbers = detector.step(numbers, Score(float(rng.random() < 0.9)), 10 / 24 / HOURLY)
            if detector.evidence(numbers) >= detector.threshold:
                numbers, alarms = detector.start(), alarms + 1
    assert alarms <= 4
