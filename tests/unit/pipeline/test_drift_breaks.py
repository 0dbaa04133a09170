"""Breaks: an alarm tells when the change began, and the mean before and since."""

from __future__ import annotations

import pytest
from support.kit import AT
from support.watched import CELL, MINUTE, a_drift, settle

from ragwatch.core.snapshot import Gauge
from ragwatch.pipeline.drift.scores import KIND, ScoreDriftLoop
from ragwatch.stores.sqlite.store import SqliteStore

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
