"""The contract of `ports.Store` about queue, leases, batches and costs: nothing is lost, given or counted twice."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission
from support.stores import AGES, DAY, ONE_DAY, balanced, follow_up

from ragwatch.errors import JudgeError, StoreError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import OpenBatch, Query, Store
from ragwatch.statistics.tally import Tally

SECOND = "second"


def leased(store: Store, judge: str, **how: float) -> list[str]:
    """Names of what a judge is given."""
    return [draw.sample.id for draw in store.lease(judge, 9, **({"now": AT, "seconds": 60.0} | how))]


def test_before_leases_only_what_has_waited(store: Store) -> None:
    """With `before`, only draws pending since before that instant come: those of a second judge since it got them."""
    old = a_draw("old", at=AT - 100)
    store.admit(an_admission(old, a_draw("new")))
    assert [leased(store, JUDGE, before=AT - 100), leased(store, JUDGE, before=AT)] == [[], ["old"]]
    assert leased(store, JUDGE) == ["new"]
    store.settle([a_verdict(old)], [follow_up(old, at=AT + 50)])
    assert [leased(store, SECOND, before=AT + 50), leased(store, SECOND, before=AT + 51)] == [[], ["old"]]


def test_postponed_draws_are_held_until_their_time(opened: Callable[[], Store]) -> None:
    """What a judge could not read comes back at an instant, earlier or later than its lease; others are not held.

    Draws that are held back, also tens of thousands, are pending; a process that begins anew may ask at once.
    """
    store = opened()
    store.admit(an_admission(a_draw("a"), a_draw("b"), a_draw("c"), judges=(JUDGE, SECOND)))
    assert leased(store, JUDGE) == ["a", "b", "c"]
    store.postpone(JUDGE, [a_draw("a").key, *(f"{index:032x}" for index in range(50_000))], AT + 500)
    store.postpone(JUDGE, [a_draw("b").key], AT + 5)
    assert leased(store, JUDGE, now=AT + 4) == []
    assert leased(store, JUDGE, now=AT + 5) == ["b"]
    assert leased(store, JUDGE, now=AT + 499) == ["b", "c"]
    assert leased(store, JUDGE, now=AT + 500) == ["a"]
    store.postpone(JUDGE, [a_draw("a").key], AT + 1e9)
    assert store.pending() == {JUDGE: 3, SECOND: 3}
    assert leased(store, SECOND) == leased(opened(), JUDGE) == ["a", "b", "c"]


def test_a_clock_that_is_set_back_takes_leases_with_it(store: Store) -> None:
    """A clock that was a day ahead: what was leased or held back then is free after as long as was meant."""
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    assert len(store.lease(JUDGE, 1, now=AT + DAY, seconds=300)) == 1
    store.postpone(JUDGE, [a_draw("b").key], AT + DAY + 600)
    assert [leased(store, JUDGE, now=AT + since) for since in (0, 299)] == [[], []]
    assert leased(store, JUDGE, now=AT + 300) == ["a"]
    assert leased(store, JUDGE, now=AT + 600) == ["a", "b"]


def test_a_verdict_brings_work_for_another_judge(store: Store) -> None:
    """It is leased with the probability it came about with, counted as assigned, and the books balance."""
    draw = a_draw("a", probability=0.5)
    store.admit(an_admission(draw))
    assert store.settle([a_verdict(draw)], [follow_up(draw, probability=0.125)]) == 1
    assert store.pending() == {SECOND: 1}
    assert store.tallies()[Tally.ASSIGNED, (SECOND,)] == 1
    (given,) = store.lease(SECOND, 9, now=AT, seconds=60)
    assert given == replace(draw, probability=0.125)
    assert store.settle([a_verdict(given, reading=a_reading(SECOND))]) == 1
    assert [row.probability for row in store.window(0, 0.0, 9)] == [0.5, 0.125]
    assert balanced(store)


def test_work_is_brought_once(store: Store) -> None:
    """Not by a verdict told twice, not twice by one, not behind another judge's verdict, not for a draw unknown.

    Neither a draw in the queue of a judge nor one that it has settled comes again.
    """
    draw, other, had, read = (a_draw(name) for name in "abcd")
    store.admit(an_admission(draw, other))
    assert store.settle([a_verdict(draw)], [follow_up(draw), follow_up(draw), follow_up(other)]) == 1
    assert store.settle([a_verdict(draw)], [follow_up(draw, "third")]) == 0
    assert store.settle([a_verdict(a_draw("z"))], [follow_up(a_draw("z"))]) == 0
    behind_second = replace(follow_up(other, "third"), after=SECOND)
    assert store.settle([a_verdict(other)], [behind_second]) == 1
    assert (store.pending(), store.tallies()[Tally.ASSIGNED, (SECOND,)]) == ({SECOND: 1}, 1)
    store.admit(an_admission(had, read, judges=(JUDGE, SECOND)))
    store.settle([a_verdict(read, reading=a_reading(SECOND))])
    store.settle([a_verdict(had), a_verdict(read)], [follow_up(had), follow_up(read), follow_up(had, JUDGE)])
    assert (store.pending(), store.tallies()[Tally.ASSIGNED, (SECOND,)]) == ({SECOND: 2}, 3)
    given = {one.sample.id: one.probability for one in store.lease(SECOND, 9, now=AT + 99, seconds=60)}
    assert given == {"a": 0.25, "c": 1.0}
    assert balanced(store)


def test_further_counts_are_written_with_verdicts(store: Store) -> None:
    """They add to what the verdicts add, once; where nothing can be written, neither is there."""
    draw = a_draw("a")
    store.admit(an_admission(draw, a_draw("b")))
    further = Counter({(Tally.KNOWN_BAD, (JUDGE, "v")): 2, (Tally.JUDGED, ("search", JUDGE)): 0})
    assert [store.settle([a_verdict(draw)], tallies=further) for _ in range(2)] == [1, 0]
    tallies = store.tallies()
    assert (tallies[Tally.KNOWN_BAD, (JUDGE, "v")], tallies[Tally.JUDGED, ("search", JUDGE)]) == (2, 1)
    assert further[Tally.JUDGED, ("search", JUDGE)] == 0
    before = store.tallies_and_pending()
    broken = Counter({(Tally.KNOWN_BAD, (JUDGE, "v")): 1, (Tally.FOOLED, (JUDGE,)): float("nan")})
    with pytest.raises(StoreError):
        store.settle([a_verdict(a_draw("b"))], [follow_up(a_draw("b"))], broken)  # type: ignore[arg-type]
    assert (store.tallies_and_pending(), len(store.find(Query()))) == (before, 1)


def test_overdue_weighs_what_has_waited_too_long(store: Store) -> None:
    """By route, judge and minute of the answer: the sum of 1/probability of draws pending since before an instant."""
    draws = [
        a_draw("a", at=AT - 120, probability=0.5),
        a_draw("b", at=AT - 119, probability=0.25),
        a_draw("c", at=AT - 60, probability=0.5, route="support"),
        a_draw("d", at=AT),
    ]
    store.admit(an_admission(*draws, judges=(JUDGE, SECOND)))
    store.settle([a_verdict(draws[0], reading=a_reading(SECOND))])
    minute = AT // 60
    assert store.overdue(AT - 1000) == {}
    assert store.overdue(AT) == {
        ("search", JUDGE, minute - 2): 6.0,
        ("search", SECOND, minute - 2): 4.0,
        ("support", JUDGE, minute - 1): 2.0,
        ("support", SECOND, minute - 1): 2.0,
    }
    store.lease(JUDGE, 9, now=AT, seconds=60)
    assert sum(store.overdue(AT + 1).values()) == 16.0


DRAWS = {name: a_draw(name, probability=0.5) for name in "abcd"}


def waiting(store: Store, judge: str = JUDGE) -> list[str]:
    """Names of what is free to be leased; it is free again afterwards."""
    draws = store.lease(judge, 9, now=AT, seconds=60)
    store.postpone(judge, [draw.key for draw in draws], AT)
    return [draw.sample.id for draw in draws]


def prepared(store: Store, names: str, *, seed: str = "seed", now: float = AT) -> int:
    """A batch of these draws; the reservation of each is its place in the alphabet."""
    store.admit(an_admission(*DRAWS.values(), judges=(JUDGE, "second")))
    return store.prepare_batch(JUDGE, {DRAWS[name].key: ord(name) for name in names}, seed, now=now)


def test_batches_are_told_whole(opened: Callable[[], Store]) -> None:
    """Oldest first, with the provider's name once sent; draws as they were leased, with reservations; over restarts."""
    store = opened()
    first, second = prepared(store, "ca", seed="5eed", now=AT + 7), prepared(store, "b")
    store.send_batch(second, "msgbatch_2")
    store = opened()
    assert store.batches(JUDGE) == [OpenBatch(first, None, AT + 7, "5eed"), OpenBatch(second, "msgbatch_2", AT, "seed")]
    assert store.batches("second") == []
    assert store.batched(first) == [(DRAWS["a"], ord("a")), (DRAWS["c"], ord("c"))]


def test_a_draw_is_in_one_batch_at_most(store: Store) -> None:
    """One that is out already, is settled, or is unknown, is not put into a second one: it would be paid twice."""
    first = prepared(store, "ab")
    store.settle([a_verdict(DRAWS["d"])])
    wanted = {DRAWS[name].key: 1 for name in "bcd"} | {"unknown": 1}
    second = store.prepare_batch(JUDGE, wanted, "seed", now=AT)
    assert [draw.sample.id for draw, _ in store.batched(first)] == ["a", "b"]
    assert store.batched(second) == [(DRAWS["c"], 1)]


def test_closing_returns_what_is_not_settled(opened: Callable[[], Store]) -> None:
    """Those draws are leased again at once, also where they were leased for long before; closing twice is once."""
    store = opened()
    store.admit(an_admission(*DRAWS.values()))
    store.lease(JUDGE, 9, now=AT, seconds=1e9)
    batch = store.prepare_batch(JUDGE, {DRAWS[name].key: 1 for name in "abc"}, "seed", now=AT)
    store.settle([a_verdict(DRAWS["b"])])
    assert [store.close_batch(batch), store.close_batch(batch)] == [2, 0]
    assert (store.batches(JUDGE), store.batched(batch), waiting(store)) == ([], [], ["a", "c"])
    assert waiting(opened()) == ["a", "c", "d"]


def test_retention_takes_no_sample_that_is_out(store: Store) -> None:
    """However old it is: the reply may come tomorrow. So do the money set aside and the batch itself stay."""
    draw = a_draw("old", at=AT - 1e7)
    store.admit(an_admission(draw, judges=(JUDGE, "second")))
    held = store.reserve(JUDGE, Cost(0.5, 10), [], now=AT)
    assert held is not None
    batch = store.prepare_batch(JUDGE, {draw.key: held}, "seed", now=AT)
    store.settle([a_verdict(draw, reading=a_reading("second"))])
    assert store.prune(ONE_DAY, now=AT + 2 * DAY) == 1
    assert (store.find(Query()), store.batched(batch)) == ([], [(draw, held)])
    assert store.spent(JUDGE, AT - 1) == Cost(0.5, 10)


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
    store.prune(AGES, now=AT)
    for number in (*numbers, max(numbers) + 1):
        store.pay(number, Cost(0.0, 0))
    assert store.spent(JUDGE, 0.0) == Cost(2.0, 8)


def test_what_no_cap_looks_at_is_forgotten(store: Store) -> None:
    """Calls older than eight days go, paid or not; those of the last week stay."""
    spend(store, 1.0, at=AT - 9 * DAY)
    store.reserve(JUDGE, Cost(1.0), [], now=AT - 9 * DAY)
    spend(store, 0.5, at=AT - 7 * DAY)
    store.prune(AGES, now=AT)
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
    store.prune(AGES, now=AT + 7200)
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
