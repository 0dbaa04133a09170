"""Intake of invalid retrieval scores: they enter no figure and stop no source."""

from __future__ import annotations

from sys import float_info

import pytest
from support.kit import JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tally
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


@pytest.mark.parametrize("sentinel", [float_info.max, 3.4e38])
async def test_scores_that_stand_for_none_stop_no_source(store: SqliteStore, sentinel: float) -> None:
    """Retrievers write the largest float where they have no score: beyond a sum, and no figure either."""
    batches = [
        a_batch(
            *(a_line(f"{value}-{number}", contexts=[{"text": "Cats.", "score": value}]) for number in range(3)),
            cursor=str(cursor),
        )
        for cursor, value in enumerate((sentinel, -sentinel, 0.5))
    ]
    rules = IntakeRules(SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, 1000)
    source, parts = ListSource(batches), {"store": store, "telemetry": Telemetry(), "clock": Clock()}
    intake = IntakeLoop(source, canonical.read, rules, **parts)  # type: ignore[arg-type]
    for _ in batches:
        assert await intake.step() is True
    counts = {labels: value for (tally, labels), value in store.tallies().items() if tally is Tally.TOP_SCORE}
    assert counts == {("search", "0.5"): 3.0, ("search", "sum"): 1.5}
