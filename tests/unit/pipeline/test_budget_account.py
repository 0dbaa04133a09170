"""Budget accounts: the worst case is reserved, the actual cost is settled, and a refusal has a waiting time."""

from __future__ import annotations

import re

import pytest
from support.kit import AT, Clock

from ragwatch.errors import JudgeError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.pipeline.sampling_control import InMemoryBudget, StoredBudgetAccount
from ragwatch.stores.sqlite.store import SqliteStore

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
    """It begins when the clock says, and belongs to the judge of the purse."""
    clock = Clock()
    purse = StoredBudgetAccount("claude", [HOUR], store, clock)
    number = await purse.reserve(Cost(0.5, 100))
    assert store.spent("claude", AT - 1) == Cost(0.5, 100)
    assert store.spent("claude", AT) == store.spent("other", 0.0) == Cost()
    await purse.settle(number, Cost(0.25, 40))
    assert store.spent("claude", 0.0) == Cost(0.25, 40)


async def test_without_caps_spending_is_kept_all_the_same(store: SqliteStore) -> None:
    """No limit is not no account."""
    purse = StoredBudgetAccount("claude", [], store, Clock())
    for _ in range(3):
        await purse.settle(await purse.reserve(Cost(500.0, 10**6)), Cost(100.0, 10**5))
    assert store.spent("claude", 0.0) == Cost(300.0, 3 * 10**5)


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
