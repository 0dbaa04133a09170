"""Sampling control: probabilities fall before the draw; budgets reserve the worst case and tell how long to wait."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, JUDGE, Clock, a_draw, a_reading, a_verdict, an_admission

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon import Daemon
from ragwatch.daemon.loops import runtime_loops
from ragwatch.daemon.process import SharedState
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.errors import JudgeError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.pipeline.sampling_control import InMemoryBudget, StoredBudgetAccount
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

HOUR, DAY = SpendingCap(3600.0, usd=1.0), SpendingCap(86400.0, usd=2.0, tokens=1000)


async def refusal(purse: StoredBudgetAccount, worst: Cost) -> JudgeError:
    """What the purse says when there is no room."""
    with pytest.raises(JudgeError) as caught:
        await purse.reserve(worst)
    return caught.value


def seconds(error: JudgeError) -> float:
    """When room is expected."""
    match = re.search(r"expected in (\d+) s", str(error))
    assert match is not None
    return float(match[1])


async def test_a_call_is_set_aside_then_paid(store: SqliteStore) -> None:
    """It begins when the clock says, and belongs to the judge of the purse; without caps spending is kept as well."""
    clock = Clock()
    purse = StoredBudgetAccount("claude", [HOUR], store, clock)
    number = await purse.reserve(Cost(0.5, 100))
    assert store.spent("claude", AT - 1) == Cost(0.5, 100)
    assert store.spent("claude", AT) == store.spent("other", 0.0) == Cost()
    await purse.settle(number, Cost(0.25, 40))
    assert store.spent("claude", 0.0) == Cost(0.25, 40)
    unlimited = StoredBudgetAccount("free", [], store, clock)
    for _ in range(3):
        await unlimited.settle(await unlimited.reserve(Cost(500.0, 10**6)), Cost(100.0, 10**5))
    assert store.spent("free", 0.0) == Cost(300.0, 3 * 10**5)


async def test_a_refusal_is_not_for_ever_and_says_how_long(store: SqliteStore) -> None:
    """Over budget, not permanent; what it announces comes true, and not much earlier."""
    clock = Clock()
    purse = StoredBudgetAccount("claude", [HOUR, DAY], store, clock)
    await purse.reserve(Cost(0.5))
    clock.now += 600
    await purse.reserve(Cost(0.5))
    clock.now += 600
    error = await refusal(purse, Cost(0.25, 10))
    assert (error.reason, error.permanent) == ("over_budget", False)
    assert str(error).startswith("no budget for $0.2500 and 10 tokens within $1.00 in 3600 s; expected in ")
    wait = seconds(error)
    assert 2400 <= wait <= 2400 + 3600 / 64
    assert store.spent("claude", 0.0) == Cost(1.0)
    clock.now += 2399
    await refusal(purse, Cost(0.25, 10))
    clock.now += wait - 2399
    await purse.reserve(Cost(0.25, 10))


async def test_the_cap_that_takes_longest_is_named(store: SqliteStore) -> None:
    """When the hour has no room and the day has none either, the day's answer is the true one."""
    clock = Clock()
    purse = StoredBudgetAccount("claude", [HOUR, DAY], store, clock)
    await purse.reserve(Cost(0.9, 950))
    error = await refusal(purse, Cost(0.2, 100))
    assert "within $2.00 and 1000 tokens in 86400 s" in str(error)
    assert seconds(error) == 86400


async def test_a_call_that_no_cap_will_ever_hold_is_refused_for_good(store: SqliteStore) -> None:
    """Waiting cannot help: it is counted once, instead of going round in the queue."""
    purse = StoredBudgetAccount("claude", [HOUR, DAY], store, Clock())
    error = await refusal(purse, Cost(0.5, 1001))
    assert (error.reason, error.permanent) == ("over_budget", True)
    assert str(error) == (
        "one call may cost $0.5000 and 1001 tokens, more than $2.00 and 1000 tokens in 86400 s; raise that budget"
    )
    assert store.spent("claude", 0.0) == Cost()


async def test_a_free_purse_counts_in_memory() -> None:
    """What `ragwatch judge` has spent is known as long as it runs."""
    purse = InMemoryBudget()
    first, second = await purse.reserve(Cost(0.5, 10)), await purse.reserve(Cost(0.25, 10))
    await purse.settle(first, Cost(0.125, 5))
    await purse.settle(first, Cost())
    assert (first != second, purse.spent()) == (True, Cost(0.375, 15))


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
