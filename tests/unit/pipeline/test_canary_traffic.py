"""Canary traffic: answers to our own canaries do not count as traffic, and nobody else's answers are hidden as such."""

from __future__ import annotations

import pytest
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.canary.definition import CanaryMarks
from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tally
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

MARKS = CanaryMarks(b"secret")
MARK = MARKS.mark("refunds", AT)


def an_intake(store: SqliteStore, telemetry: Telemetry, *lines: bytes, marks: CanaryMarks | None = MARKS) -> IntakeLoop:
    """The intake of some lines, all of which are drawn."""
    plan = SamplingPlan(1.0, known_routes=frozenset({"search"}))
    source = ListSource((a_batch(*lines),))
    rules = IntakeRules(plan, {JUDGE: 1.0}, None, 1000, marks=marks)
    return IntakeLoop(source, canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT))


def drawn(store: SqliteStore) -> list[str]:
    """Ids of what is drawn."""
    return sorted(draw.sample.id for draw in store.lease(JUDGE, 9, now=AT, seconds=0))


async def test_answers_to_our_own_canaries_are_no_traffic(store: SqliteStore, telemetry: Telemetry) -> None:
    """They are seen and counted as what they are, and enter neither the draw nor any signal."""
    lines = (a_line("a"), a_line("b", metadata={"canary": MARK}), a_line("c", metadata={"tier": "gold"}))
    await an_intake(store, telemetry, *lines).step()
    assert drawn(store) == ["a", "c"]
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.OF_CANARIES, ("app",)]) == (3, 1)
    assert tallies[Tally.ANSWER_CHARS, ("search", "50.0")] == 2
    assert tallies[Tally.INVALID_MARKS, ("app",)] == 0


@pytest.mark.parametrize("mark", [True, "refunds", MARK[:-1], CanaryMarks(b"guess").mark("refunds", AT), {"x": 1}])
async def test_x26_nobody_else_can_hide_an_answer(store: SqliteStore, telemetry: Telemetry, mark: object) -> None:
    """A mark without our secret is counted, and its answer drawn and measured as every other."""
    await an_intake(store, telemetry, a_line("a"), a_line("b", metadata={"canary": mark})).step()
    assert drawn(store) == ["a", "b"]
    tallies = store.tallies()
    assert (tallies[Tally.OF_CANARIES, ("app",)], tallies[Tally.INVALID_MARKS, ("app",)]) == (0, 1)


async def test_marks_may_be_trusted(store: SqliteStore, telemetry: Telemetry) -> None:
    """`sampling.trust_canary_mark`, for services that cannot log the header: whatever the record says counts."""
    lines = (a_line("a"), a_line("b", metadata={"canary": True}))
    await an_intake(store, telemetry, *lines, marks=None).step()
    assert drawn(store) == ["a"]
    assert store.tallies()[Tally.OF_CANARIES, ("app",)] == 1


@pytest.mark.parametrize("nobody", [None, "", " ", "-", "None", "null", "False", "0", False, 0, [], {}])
async def test_what_names_no_canary_is_traffic(store: SqliteStore, telemetry: Telemetry, nobody: object) -> None:
    """A service that logs the header of every request logs nothing, in some spelling, for those of its users."""
    lines = (a_line("a", metadata={"canary": nobody}), a_line("b", metadata={"canary": MARK}))
    await an_intake(store, telemetry, *lines).step()
    assert drawn(store) == ["a"]
    tallies = store.tallies()
    assert (tallies[Tally.OF_CANARIES, ("app",)], tallies[Tally.INVALID_MARKS, ("app",)]) == (1, 0)
