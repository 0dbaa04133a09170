"""Sampling control: a loop of its own, which lowers probabilities whatever becomes of the digest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from support.kit import AT, Clock, a_draw, an_admission

from ragwatch.config import parse
from ragwatch.daemon import Daemon
from ragwatch.daemon.runtime_loops import runtime_loops
from ragwatch.pipeline.windows import SlidingWindows

WAITING = 100


class DigestError(Exception):
    """The digest cannot compute its figures."""


def a_daemon(folder: Path) -> Daemon:
    """A daemon with two judges, whose queues may hold 8 draws, and 100 draws pending for the second one."""
    data = {
        "state": str(folder / "state"),
        "web": {"listen": "127.0.0.1:0"},
        "sources": [{"kind": "tail", "name": "log", "path": str(folder / "app.jsonl")}],
        "judges": [
            {"name": "first", "kind": "lexical"},
            {"name": "second", "kind": "lexical", "follows": "first", "budget": {"usd_per_day": 1.0}},
        ],
        "judging": {"max_pending": 8},
    }
    daemon = Daemon(parse(data, folder=folder), clock=Clock(AT))
    draws = [a_draw(f"r{index}") for index in range(WAITING)]
    daemon.store.admit(an_admission(*draws, judges=("second",)))
    return daemon


async def test_a_failing_digest_does_not_freeze_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loop takes one step and every digest fails: the judge that is behind is given fewer draws all the same."""

    def fail(*_: object) -> None:
        raise DigestError

    monkeypatch.setattr(SlidingWindows, "summary", fail)
    daemon = a_daemon(tmp_path)
    for loop in runtime_loops(daemon.runtime, daemon._shared):
        if not loop.name.startswith("judge "):  # the draws are to stay pending
            with suppress(DigestError):
                await loop.step()
    assert daemon.store.pending() == {"second": WAITING}
    factor = daemon.runtime.intakes[0].rules.share("second")
    await daemon.runtime.close()
    daemon.store.close()
    assert factor < 1.0


async def test_the_first_snapshot_has_budgets(tmp_path: Path) -> None:
    """Factors and budgets are known before the first digest, after a start and after a reload."""
    daemon = a_daemon(tmp_path)
    daemon.runtime.resume(daemon.store)
    await daemon.runtime.digest.step()
    snapshot = daemon.board.latest()
    await daemon.runtime.close()
    daemon.store.close()
    assert snapshot is not None
    assert snapshot.budgets == {"second": 1.0}
    assert snapshot.shares["second"] < snapshot.shares["first"] == 1.0
