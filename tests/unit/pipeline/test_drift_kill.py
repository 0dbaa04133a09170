"""Score drift under kill -9: whatever the instant of the kill, the alarm is raised once, and at the same score."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.kit import JUDGE
from support.mortal import Fate, KilledError, MortalConnection
from support.watched import a_drift, faithful, settle

from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

ANSWERS = [*faithful(320, 60), *[True] * 80]
RULES = DriftRules(
    JUDGE, "scripted-1", (Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED), ("search", "other"), reference=250
)

INSTANTS = pytest.mark.parametrize(
    "instants", [range(0, 20, 3), pytest.param(range(20), marks=pytest.mark.slow)], ids=["some", "all"]
)


def left_behind(store: SqliteStore) -> tuple[Any, ...]:
    """Everything that a later process, or a page, could see.

    Of the stage that a run names only the name: its share is that of the answers that were read until it was recorded,
    and these are as many as were waiting.
    """
    runs = [
        replace(run, body={**run.body, "changed_stage": (run.body.get("changed_stage") or {}).get("stage")})
        for quantity in RULES.quantities
        for run in store.runs(KIND, f"{quantity}/search", 10)
    ]
    alarms = {cell: value for cell, value in store.tallies().items() if cell[0] is Tally.DRIFT_ALARMS}
    return runs, alarms, store.recall(KIND), a_drift(store, RULES).gauges(), store.events(0.0)


def after_a_kill(store: SqliteStore, folder: str, instants: int | None) -> SqliteStore:
    """The store that the next process opens, after one that dies at so many writes of its step, or never."""
    fate = Fate()
    store.engine._writer = MortalConnection(store.engine._writer, fate)  # type: ignore[assignment]
    fate.left = instants
    with suppress(KilledError):
        a_drift(store, RULES)._step()
    store.close()
    return SqliteStore(Path(folder))


@cache
def uninterrupted() -> tuple[Any, ...]:
    """What one life leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder))
        settle(store, ANSWERS)
        a_drift(store, RULES)._step()
        traces = left_behind(store)
        store.close()
    ends_and_alarms = [(f"{quantity}/search", failing) for quantity in RULES.quantities for failing in (False, True)]
    assert [(run.name, run.failing) for run in traces[0]] == ends_and_alarms
    return traces


@pytest.mark.costly
@settings(max_examples=draws(8))
@given(st.lists(st.tuples(st.integers(1, 90), st.none() | st.integers(0, 11)), max_size=12))
def test_a_kill_changes_nothing(lives: Sequence[tuple[int, int | None]]) -> None:
    """Some answers come, and the process dies at some write, or never; in the end all is as in one life."""
    with tempfile.TemporaryDirectory() as folder:
        store, done = SqliteStore(Path(folder)), 0
        for size, instants in (*lives, (len(ANSWERS), None)):
            settle(store, ANSWERS[done : done + size], done)
            done = min(done + size, len(ANSWERS))
            store = after_a_kill(store, folder, instants)
        assert left_behind(store) == uninterrupted()
        store.close()


@pytest.mark.costly
@INSTANTS
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_kill_between_alarm_and_record_is_made_up_for(instants: range, *, acknowledged: bool) -> None:
    """At each instant of the step that raises the alarm: one run, one count, after one more life.

    Who acknowledges as soon as a killed process is back loses no alarm either.
    """
    for instant in instants:
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder))
            settle(store, ANSWERS)
            store = after_a_kill(store, folder, instant)
            life = a_drift(store, RULES)
            if acknowledged:
                life._settle(None, None, renew=False)
            life._step()
            parts = 2 if acknowledged else None  # of what is left behind: runs and counts
            assert left_behind(store)[:parts] == uninterrupted()[:parts], instant
            store.close()
