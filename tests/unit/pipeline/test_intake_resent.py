"""Intake of sources that clients send records to: what is sent again is recognised, and the client is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.tally import Tally
from ragwatch.errors import ReceivedMeanwhileError, StoreError
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import Admission, Batch, BatchReport, Part
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


class ReceivingSource(ListSource):
    """A source whose clients may send records again."""

    recognises_resent = True


def intake_of(batches: Sequence[Batch], store: SqliteStore, telemetry: Telemetry, plan: float = 1.0) -> IntakeLoop:
    """The intake of these batches."""
    rules = IntakeRules(SamplingPlan(plan, known_routes=frozenset({"search"})), {JUDGE: 1.0}, None, 1000)
    source = ReceivingSource(batches)
    return IntakeLoop(source, canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT))


async def test_what_is_sent_again_counts_once(store: SqliteStore, telemetry: Telemetry) -> None:
    """A record with a known id is neither seen nor drawn again: within a batch, in a later one, drawn or not."""
    reports = [BatchReport(), BatchReport()]
    batches = [
        a_batch(a_line("a"), a_line("b"), a_line("a"), report=reports[0]),
        a_batch(a_line("b"), b"{", a_line("c"), report=reports[1]),
    ]
    for plan in (1.0, 1e-9):
        intake = intake_of(batches, store, telemetry, plan)
        while await intake.step():
            pass
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.RESENT, ("app",)]) == (5, 2 + 5)
    assert (tallies[Tally.DRAWN, ("search",)], store.pending()) == (3, {JUDGE: 3})
    assert ([report.resent for report in reports], [len(report.rejections) for report in reports]) == (
        [[1, 2, 3], [1, 3]],
        [0, 1],
    )
    assert (reports[1].rejections[0].line, reports[1].rejections[0].reason) == (2, "torn_json")


class FullStore(SqliteStore):
    """A store whose disk is full the first time."""

    full = True

    def admit(self, admission: object) -> int:
        """Refuse once."""
        if self.full:
            self.full = False
            raise StoreError("state: cannot write: disk full")
        return super().admit(admission)  # type: ignore[arg-type]


async def test_a_batch_that_was_not_stored_is_read_afresh(tmp_path: Path, telemetry: Telemetry) -> None:
    """After a failure nothing is known: the records are seen once, and the report tells of the attempt that held."""
    report = BatchReport()
    store = FullStore(tmp_path / "state")
    intake = intake_of([a_batch(a_line("a"), b"{", report=report)], store, telemetry)
    with pytest.raises(StoreError):
        await intake.step()
    assert await intake.step()
    assert (store.tallies()[Tally.SEEN, ("app",)], report.resent, len(report.rejections)) == (2, [], 1)
    store.close()


class OvertakenStore(SqliteStore):
    """A store in which another worker receives the same records between look-up and admission, so many times."""

    times = 1

    def admit(self, admission: Admission) -> int:
        """Be overtaken, then admit."""
        if self.times:
            self.times -= 1
            super().admit(replace(admission, draws=(), tallies=Counter(), received=["b"], cursor="0"))
            raise ReceivedMeanwhileError("overtaken")
        return super().admit(admission)


async def test_what_another_worker_receives_meanwhile_counts_as_resent(tmp_path: Path, telemetry: Telemetry) -> None:
    """The batch is admitted again with what is known then; where that happens twice, the step fails and is repeated."""
    report = BatchReport()
    store = OvertakenStore(tmp_path / "state")
    intake = intake_of([a_batch(a_line("a"), a_line("b"), report=report)], store, telemetry)
    assert await intake.step()
    tallies = store.tallies()
    assert [tallies[tally, ("app",)] for tally in (Tally.SEEN, Tally.RESENT)] == [1, 1]
    assert (store.pending(), report.resent) == ({JUDGE: 1}, [2])
    store.times = 2
    again = intake_of([a_batch(a_line("c"))], store, telemetry)
    with pytest.raises(ReceivedMeanwhileError):
        await again.step()
    assert await again.step()
    assert store.pending() == {JUDGE: 2}
    store.close()


async def test_parts_and_counters_of_a_source_are_stored_with_its_batch(
    store: SqliteStore, telemetry: Telemetry
) -> None:
    """A batch without lines holds parts; the one that completes them releases them; its own counters are added."""
    part = Part("t1", "a", b"span", AT)
    own = Counter({(Tally.RESETS, ("app", "late")): 2})
    batches = [a_batch(hold=[part], tallies=own), a_batch(a_line("t1"), release=["t1"], tallies=own)]
    intake = intake_of(batches, store, telemetry)
    assert await intake.step()
    assert (list(store.parts("app")), store.tallies()) == ([part], own)
    assert await intake.step()
    assert (list(store.parts("app")), store.pending()) == ([], {JUDGE: 1})
    assert store.tallies()[Tally.RESETS, ("app", "late")] == 4
