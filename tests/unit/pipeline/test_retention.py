"""Retention: old verdicts are pruned, and the log has their number."""

from __future__ import annotations

import pytest
from structlog.testing import LogCapture
from support.kit import AT, Clock, a_draw, a_verdict, an_admission

from ragwatch.errors import StoreError
from ragwatch.pipeline.retention import RetentionLoop
from ragwatch.ports import Query, Retention
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


async def test_old_verdicts_go(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """The first step takes what is too old and says how many; the second finds nothing to do."""
    old, new = a_draw("old", at=AT - 2 * 86400), a_draw("new")
    store.admit(an_admission(old, new))
    store.settle([a_verdict(old), a_verdict(new)])
    keeping = RetentionLoop(Retention(1, 1, 1 << 40), store=store, telemetry=telemetry, clock=Clock())
    assert [await keeping.step(), await keeping.step()] == [True, False]
    assert [row.verdict.id for row in store.find(Query())] == ["new"]
    assert [(entry["event"], entry["verdicts"]) for entry in log.entries] == [("verdicts pruned", 1)]


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_leaps_is_not_believed_at_once(
    store: SqliteStore, telemetry: Telemetry, *, restarts: bool
) -> None:
    """Forty days ahead for a moment takes nothing; at the second step in a row what is too old goes.

    So it does on a machine that is asleep for days between all steps, or that starts ragwatch anew for each.
    """
    clock, days = Clock(), {0: False, 40: False, 1: False, 41: False, 41.1: True, 50: False, 60: True}
    keeping = RetentionLoop(Retention(30, 30, 1 << 40), store=store, telemetry=telemetry, clock=clock)
    for day, gone in days.items():
        draw = a_draw(str(day))
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw)])
        clock.now = AT + day * 86400
        if restarts:
            keeping = RetentionLoop(Retention(30, 30, 1 << 40), store=store, telemetry=telemetry, clock=clock)
        assert await keeping.step() is gone


async def test_doubt_ends_where_nothing_can_be_written(store: SqliteStore, telemetry: Telemetry) -> None:
    """On a full disk forgetting is what helps: it is tried again at the second step, whatever could be noted."""
    clock = Clock()
    keeping = RetentionLoop(Retention(1, 1, 1 << 40), store=store, telemetry=telemetry, clock=clock)
    await keeping.step()
    draw = a_draw()
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object) -> None:
            raise StoreError("the disk is full")

        patch.setattr(store, "remember", full)
        for _ in range(2):
            clock.now += 2 * 86400
            with pytest.raises(StoreError):
                await keeping.step()
    assert store.find(Query()) == []
