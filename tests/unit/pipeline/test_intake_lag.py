"""Lag of intake: correct also while nothing can be read or written."""

from __future__ import annotations

import pytest
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_line

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError, StoreError
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import Batch
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

RULES = IntakeRules(SamplingPlan(1.0), {JUDGE: 1.0}, None, 1000)


@pytest.fixture
def intake(store: SqliteStore, telemetry: Telemetry) -> IntakeLoop:
    """Two batches, the first of which is admitted."""
    source = ListSource([a_batch(a_line("a"), cursor="1"), a_batch(a_line("b"), cursor="2")])
    return IntakeLoop(source, canonical.read, RULES, store=store, telemetry=telemetry, clock=Clock(AT))


async def test_a_log_that_cannot_be_read_falls_behind(intake: IntakeLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits grows, and the lag of a better hour would deny it."""
    await intake.step()

    def read() -> Batch:
        intake.source.batches.append(a_batch(cursor="3"))  # type: ignore[attr-defined]
        raise SourceError("no permission")

    monkeypatch.setattr(intake.source, "read", read)
    for behind in (2, 3):
        with pytest.raises(SourceError):
            await intake.step()
        assert intake.lag == Lag(behind, None)


async def test_a_store_that_cannot_be_written_falls_behind(intake: IntakeLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a disk that is full."""
    await intake.step()
    assert intake.lag == Lag(1, None)

    def admit(_: object) -> int:
        intake.source.batches.append(a_batch(cursor="3"))  # type: ignore[attr-defined]
        raise StoreError("the disk is full")

    monkeypatch.setattr(intake._store, "admit", admit)
    with pytest.raises(StoreError):
        await intake.step()
    assert intake.lag == Lag(2, None)
