"""What an alarm of score drift says: the stage that changed, when the change began, and both means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.kit import AT, an_evidence
from support.watched import CELL, MINUTE, a_drift, settle
from support.watched import RULES as FAITHFUL

from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.breaks import NEWEST_ANSWERS
from ragwatch.pipeline.drift.scores import KIND, ScoreDriftLoop
from ragwatch.statistics.snapshot import Gauge
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
    await a_drift(store, RULES).step()
    settle(store, answers([GOOD, GOOD, UNSUPPORTED, POOR, POOR], NEWEST_ANSWERS), 400)
    again = a_drift(store, RULES)  # the counts outlive a process
    await again.step()
    run = store.runs(KIND, "faithfulness/search", 1)[0]
    assert run.body["changed_stage"] == {
        "stage": "generation",
        "share": pytest.approx(0.2, abs=0.02),
        "before": 0.0,
    }
    baseline = {labels: value for (gauge, labels), value in again.gauges().items() if gauge is Gauge.STAGE_BASELINE}
    assert baseline["search", "retrieval"] == pytest.approx(0.25, abs=0.01)
    assert sum(baseline.values()) == pytest.approx(1.0)


@pytest.mark.uncounted
async def test_an_earlier_fault_that_is_over_is_not_named(store: SqliteStore) -> None:
    """Retrieval was broken an hour ago and is mended; the alarm of the inventions names generation."""
    settle(store, answers([GOOD], 400))
    drift = a_drift(store, RULES)
    await drift.step()
    settle(store, answers([POOR], 100), 400)
    settle(store, answers([GOOD], 60), 500)
    await drift.step()
    settle(store, answers([UNSUPPORTED], 20), 560)
    await drift.step()
    change = store.runs(KIND, "faithfulness/search", 1)[0].body["changed_stage"]
    assert (change["stage"], change["before"]) == ("generation", 0.0)


@pytest.mark.uncounted
async def test_a_good_answer_beside_an_unused_top_context_is_alignment(store: SqliteStore) -> None:
    """Where the alarm is about the top context, the answers that it is about have a stage."""
    settle(store, answers([GOOD] * 9 + [IGNORED], 400))
    drift = a_drift(store, RULES)
    await drift.step()
    settle(store, answers([GOOD, IGNORED], 200), 400)
    await drift.step()
    assert store.runs(KIND, "faithfulness/search", 1) == []
    change = store.runs(KIND, "top_ranked_ignored/search", 1)[0].body["changed_stage"]
    assert (change["stage"], change["before"]) == ("alignment", pytest.approx(0.1, abs=0.01))
    assert change["share"] > 0.11


@pytest.mark.uncounted
async def test_a_renewed_baseline_has_its_own_stages(store: SqliteStore) -> None:
    """What failed while the earlier reference was learnt does not count for the next one."""
    settle(store, answers([GOOD, POOR], 400))
    drift = a_drift(store, RULES)
    await drift.step()
    await drift.acknowledge(renew=True)
    assert not any(gauge is Gauge.STAGE_BASELINE for gauge, _ in drift.gauges())
    settle(store, answers([GOOD], 400), 400)
    await drift.step()
    assert drift.gauges()[Gauge.STAGE_BASELINE, ("search", "none")] == 1.0


HEALTHY = [index % 20 != 0 for index in range(600)]
BROKEN = [index % 10 < 4 for index in range(200)]


def figures(drift: ScoreDriftLoop) -> dict[Gauge, float]:
    """Gauges of the break."""
    kinds = (Gauge.DRIFT_BEGAN, Gauge.DRIFT_BEFORE, Gauge.DRIFT_SINCE, Gauge.DRIFT_ANSWERS)
    return {gauge: value for (gauge, labels), value in drift.gauges().items() if gauge in kinds and labels == CELL}


@pytest.mark.parametrize("every", [7, 1000])
async def test_an_alarm_tells_when_the_change_began_and_both_means(store: SqliteStore, every: int) -> None:
    """Whatever the size of the batches, and although each batch is read by another process."""
    answers = HEALTHY + BROKEN
    for first in range(0, len(answers), every):
        settle(store, answers[first : first + every], first)
        drift = a_drift(store)
        await drift.step()
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
    drift = a_drift(store)
    await drift.step()
    assert figures(drift) == {}
    settle(store, BROKEN, 600)
    await drift.step()
    first = figures(drift)[Gauge.DRIFT_BEGAN]
    await drift.acknowledge()
    assert figures(drift) == {}
    settle(store, HEALTHY, 800)
    settle(store, BROKEN, 1400)
    await drift.step()
    assert figures(drift)[Gauge.DRIFT_BEGAN] - first >= 790 * MINUTE
