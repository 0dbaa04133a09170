"""Canary traffic: answers to our own canaries in the log of a service do not count as traffic."""

from __future__ import annotations

import pytest
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tally
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


def an_intake(store: SqliteStore, telemetry: Telemetry, *lines: bytes) -> IntakeLoop:
    """The intake of some lines, all of which are drawn."""
    rules = IntakeRules(SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, 1000)
    source = ListSource((a_batch(*lines),))
    return IntakeLoop(source, canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT))


async def test_answers_to_our_own_canaries_are_no_traffic(store: SqliteStore, telemetry: Telemetry) -> None:
    """They are seen and counted as what they are, and enter neither the draw nor any signal."""
    lines = (a_line("a"), a_line("b", metadata={"canary": "refunds"}), a_line("c", metadata={"tier": "gold"}))
    await an_intake(store, telemetry, *lines).step()
    drawn = store.lease(JUDGE, 9, now=AT, seconds=1.0)
    assert sorted(draw.sample.id for draw in drawn) == ["a", "c"]
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.OF_CANARIES, ("app",)]) == (3, 1)
    assert tallies[Tally.ANSWER_CHARS, ("search", "50.0")] == 2


@pytest.mark.parametrize("nobody", [None, "", " ", "-", "None", "null", "False", "0", False, 0, [], {}])
async def test_what_names_no_canary_is_traffic(store: SqliteStore, telemetry: Telemetry, nobody: object) -> None:
    """A service that logs the header of every request logs nothing, in some spelling, for those of its users."""
    lines = (a_line("a", metadata={"canary": nobody}), a_line("b", metadata={"canary": True}))
    await an_intake(store, telemetry, *lines).step()
    assert [draw.sample.id for draw in store.lease(JUDGE, 9, now=AT, seconds=0)] == ["a"]
    assert store.tallies()[Tally.OF_CANARIES, ("app",)] == 1
