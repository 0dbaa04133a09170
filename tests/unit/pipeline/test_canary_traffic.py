"""Answers to our own canaries, found in a service's log, are no traffic."""

from __future__ import annotations

from kit import AT, JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tally
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import Intake, IntakeRules
from ragwatch.stores.sqlite import SqliteStore
from ragwatch.telemetry import Telemetry


async def test_answers_to_our_own_canaries_are_no_traffic(store: SqliteStore, telemetry: Telemetry) -> None:
    """They are seen and counted as what they are, and enter neither the draw nor any signal."""
    lines = (a_line("a"), a_line("b", metadata={"canary": "refunds"}), a_line("c", metadata={"tier": "gold"}))
    rules = IntakeRules(SamplingPlan(1.0, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, 1000)
    source = ListSource((a_batch(*lines),))
    await Intake(source, canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT)).step()
    drawn = store.lease(JUDGE, 9, now=AT, seconds=1.0)
    assert sorted(each.sample.id for each in drawn) == ["a", "c"]
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.OF_CANARIES, ("app",)]) == (3, 1)
    assert tallies[Tally.ANSWER_CHARS, ("search", "50.0")] == 2
