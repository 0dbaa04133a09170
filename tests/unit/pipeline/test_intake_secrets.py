"""Secrets in intake: redactions are counted where a draw is stored, and only there."""

from __future__ import annotations

from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tally
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.redaction.redactor import Redactor
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


async def test_secrets_of_what_is_not_stored_are_not_counted(store: SqliteStore, telemetry: Telemetry) -> None:
    """An id that comes twice is one draw, in one batch and in the next: its secrets are those of the first."""
    once, again = a_line("a", answer="ann@example.org"), a_line("a", answer="ann@example.org, bob@example.org")
    rules = IntakeRules(SamplingPlan(1.0), {JUDGE: 1.0}, Redactor(), 1000)
    source = ListSource([a_batch(once, again), a_batch(again, a_line("b", answer="eve@example.org"), cursor="2")])
    intake = IntakeLoop(source, canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT))
    assert [await intake.step(), await intake.step()] == [True, True]
    assert store.tallies()[Tally.REDACTED, ("EMAIL",)] == 2
