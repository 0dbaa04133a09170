"""The contract of `ports.Accounts`: caps are never passed, and money is never forgotten."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from support.kit import AT, JUDGE

from ragwatch.errors import JudgeError, StoreError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import Retention, Store

DAY = 86400.0
KEEP = Retention(30, 90, 1 << 40)
DOLLAR = SpendingCap(DAY, usd=1.0)


def spend(store: Store, usd: float, *, at: float = AT, tokens: int = 0, judge: str = JUDGE) -> int:
    """A call that was made and paid."""
    number = store.reserve(judge, Cost(usd, tokens), [], now=at)
    assert number is not None
    store.pay(number, Cost(usd, tokens))
    return number


def test_a_call_counts_from_when_it_began(store: Store) -> None:
    """`spent` looks at calls begun after an instant, not at one of that instant."""
    spend(store, 0.25, at=AT)
    spend(store, 0.5, at=AT + 10)
    assert [store.spent(JUDGE, since).usd for since in (AT - 1, AT, AT + 10)] == [0.75, 0.5, 0.0]


def test_a_cap_is_not_passed(store: Store) -> None:
    """Money and tokens, in each of several spans; a refusal sets nothing aside."""
    spend(store, 0.5, at=AT - 60, tokens=20)
    spend(store, 0.25, at=AT - 59, tokens=20)
    spend(store, 9.0, at=AT - 1, judge="second")
    before = store.spent(JUDGE, 0.0)
    minute = SpendingCap(60.0, usd=1.0)
    for caps, fits in (
        ([], True),
        ([SpendingCap(60.0)], True),
        ([minute], True),
        ([SpendingCap(60.0, usd=0.75)], True),
        ([SpendingCap(60.0, usd=0.74)], False),
        ([SpendingCap(60.0, tokens=30)], True),
        ([SpendingCap(60.0, tokens=29)], False),
        ([SpendingCap(60.0, usd=1.0, tokens=29)], False),
        ([minute, SpendingCap(DAY, usd=1.25)], True),
        ([minute, SpendingCap(DAY, usd=1.24)], False),
    ):
        reserved = store.reserve(JUDGE, Cost(0.5, 10), caps, now=AT)
        assert (reserved is not None) is fits, caps
        assert store.spent(JUDGE, 0.0) == (before + Cost(0.5, 10) if fits else before)
        store.pay(reserved or 0, Cost())


def test_unlikely_times_and_costs(store: Store) -> None:
    """Calls that seem to lie in the future count: a clock that is set back gives no money.

    A call may cost more than its worst case: then the truth is kept, and the next one is refused. A price that is no
    number is refused, as it would make every sum unknown.
    """
    spend(store, 1.0, judge="other")
    assert store.reserve("other", Cost(0.1), [DOLLAR], now=AT - 5000) is None
    number = store.reserve(JUDGE, Cost(0.5), [DOLLAR], now=AT)
    assert number is not None
    store.pay(number, Cost(1.5))
    assert store.reserve(JUDGE, Cost(0.0), [DOLLAR], now=AT) is None
    with pytest.raises(StoreError):
        store.reserve(JUDGE, Cost(float("nan")), [], now=AT)
    assert store.spent(JUDGE, 0.0) == Cost(1.5)


def test_repeated_payments_after_forgetting_change_nothing(store: Store) -> None:
    """A number whose call was added to others is not theirs: paying it again, or an unknown one, takes nothing away."""
    numbers = [spend(store, 0.25, at=AT - 3600 + index, tokens=1) for index in range(8)]
    store.prune(KEEP, now=AT)
    for number in (*numbers, max(numbers) + 1):
        store.pay(number, Cost(0.0, 0))
    assert store.spent(JUDGE, 0.0) == Cost(2.0, 8)


def test_what_no_cap_looks_at_is_forgotten(store: Store) -> None:
    """Calls older than eight days go, paid or not; those of the last week stay."""
    spend(store, 1.0, at=AT - 9 * DAY)
    store.reserve(JUDGE, Cost(1.0), [], now=AT - 9 * DAY)
    spend(store, 0.5, at=AT - 7 * DAY)
    store.prune(KEEP, now=AT)
    assert store.spent(JUDGE, 0.0) == Cost(0.5)


def test_j4_a_call_that_was_under_way_counts_its_worst_case(opened: Callable[[], Store]) -> None:
    """J4: a process ends while its call is under way; the next one counts all that it may have cost."""
    store = opened()
    paid = store.reserve(JUDGE, Cost(0.5, 500), [DOLLAR], now=AT)
    store.pay(paid or 0, Cost(0.125, 100))
    held = store.reserve(JUDGE, Cost(0.75, 700), [DOLLAR], now=AT + 1)
    store = opened()
    assert store.spent(JUDGE, 0.0) == Cost(0.875, 800)
    assert store.reserve(JUDGE, Cost(0.25), [DOLLAR], now=AT + 2) is None
    store.prune(KEEP, now=AT + 7200)
    assert store.spent(JUDGE, 0.0) == Cost(0.875, 800)
    assert store.reserve(JUDGE, Cost(0.125), [DOLLAR], now=AT + 2) not in (None, held)


async def test_j5_sixteen_workers_never_pass_a_cap(store: Store) -> None:
    """J5: a cap of $1.00 and 16 workers in one loop, each with worst cases and prices of its own: never above $1."""
    purse, rng = StoredBudgetAccount(JUDGE, [DOLLAR], store, lambda: AT), random.Random(5)
    refused = paid = 0.0

    async def work() -> None:
        nonlocal refused, paid
        for _ in range(25):
            worst = rng.uniform(0.001, 0.2)
            actual = worst * rng.random() ** 2
            try:
                number = await purse.reserve(Cost(worst, 100))
            except JudgeError:
                refused += 1
                continue
            assert store.spent(JUDGE, 0.0).usd <= 1.0
            await asyncio.sleep(0)
            await purse.settle(number, Cost(actual, 10))
            paid += actual
            assert store.spent(JUDGE, 0.0).usd <= 1.0

    await asyncio.gather(*(work() for _ in range(16)))
    assert store.spent(JUDGE, 0.0).usd == pytest.approx(paid)
    assert 0.8 < paid <= 1.0
    assert refused > 50
