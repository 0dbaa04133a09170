"""Sampling control: a loop of its own, which lowers probabilities whatever becomes of the digest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, JUDGE, Clock, a_draw, a_reading, a_verdict, an_admission

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon import Daemon
from ragwatch.daemon.loops import runtime_loops
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.shared import SharedState
from ragwatch.model.budget import Cost
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

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
            {"name": "second", "kind": "lexical", "follows": "first", "budget": {"usd_per_day": 1.0}},
            {"name": "first", "kind": "lexical"},
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


def paced(folder: Path, store: SqliteStore, telemetry: Telemetry, clock: Clock, **judge: Any) -> Runtime:
    """A runtime with one judge that has a budget."""
    data = {
        "sources": [{"kind": "tail", "name": "log", "path": str(folder / "app.jsonl")}],
        "judges": [{"name": JUDGE, "kind": "lexical", "budget": {"usd_per_day": 1.0}, **judge}],
    }
    return build(parse(data, folder=folder), SharedState(store, Board(), telemetry, clock), tuple)


def share(runtime: Runtime) -> float:
    """The factor on the probability of its judge."""
    return runtime.intakes[0].rules.share(JUDGE)


@pytest.mark.parametrize(
    ("judge", "known"),
    [({}, True), ({"budget": {"usd_per_day": 2.0}}, False), ({"support": 0.4}, False)],
    ids=["the same", "another budget", "reads in another way"],
)
async def test_a_reload_goes_on_pacing(
    tmp_path: Path, store: SqliteStore, telemetry: Telemetry, judge: dict[str, Any], *, known: bool
) -> None:
    """What a judge is given and what a reading costs is known after a reload, unless its budget or readings change."""
    clock = Clock(AT)
    old = paced(tmp_path, store, telemetry, clock)
    old.resume(store)
    draws = [a_draw(f"r{index}") for index in range(WAITING)]
    store.admit(an_admission(*draws))
    clock.now += 30.0
    reservation = store.reserve(JUDGE, Cost(0.1), (), now=clock.now)
    assert reservation is not None
    store.pay(reservation, Cost(0.1))
    store.settle([a_verdict(draw, reading=a_reading(JUDGE, old.judges[0].version)) for draw in draws])
    clock.now += 60.0
    await old.sampling.step()
    assert share(old) < 0.1
    new = paced(tmp_path, store, telemetry, clock, **judge)
    await old.close()
    new.inherit(old)
    clock.now += 1.0
    new.resume(store)
    assert share(new) == (pytest.approx(share(old), rel=0.1) if known else 1.0)
    await new.close()
