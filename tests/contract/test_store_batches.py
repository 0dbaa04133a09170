"""The contract of `ports.Batches`: draws that are out with a provider are leased to nobody, and none is lost."""

from __future__ import annotations

from collections.abc import Callable

from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission

from ragwatch.core.budget import Cost
from ragwatch.core.tally import Invariant, violations
from ragwatch.ports import OpenBatch, Query, Retention, Store

NAMES = "abcd"
DRAWS = {name: a_draw(name, probability=0.5) for name in NAMES}


def balanced(store: Store) -> bool:
    """For each judge, assigned = judged + unjudged + pending."""
    return Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING not in violations(*store.tallies_and_pending())


def waiting(store: Store, judge: str = JUDGE) -> list[str]:
    """Names of what is free to be leased; it is free again afterwards."""
    draws = store.lease(judge, 9, now=AT, seconds=60)
    store.postpone(judge, [draw.key for draw in draws], AT)
    return [draw.sample.id for draw in draws]


def prepared(store: Store, names: str, *, seed: str = "seed", now: float = AT) -> int:
    """A batch of these draws; the reservation of each is its place in the alphabet."""
    store.admit(an_admission(*DRAWS.values(), judges=(JUDGE, "second")))
    return store.prepare_batch(JUDGE, {DRAWS[name].key: ord(name) for name in names}, seed, now=now)


def test_prepared_draws_are_leased_to_nobody(store: Store) -> None:
    """They stay pending, of that judge only, whatever time passes."""
    prepared(store, "ac")
    assert waiting(store) == ["b", "d"]
    assert [draw.sample.id for draw in store.lease(JUDGE, 9, now=AT + 1e9, seconds=1)] == ["b", "d"]
    assert waiting(store, "second") == list(NAMES)
    assert (store.pending(), balanced(store)) == ({JUDGE: 4, "second": 4}, True)


def test_a_batch_is_told_whole(opened: Callable[[], Store]) -> None:
    """Draws as they were leased, oldest first, with their reservations; also after a restart."""
    batch = prepared(opened(), "ca", seed="5eed", now=AT + 7)
    for _ in range(2):
        store = opened()
        assert store.batches(JUDGE) == [OpenBatch(batch, None, AT + 7, "5eed")]
        assert store.batches("second") == []
        assert store.batched(batch) == [(DRAWS["a"], ord("a")), (DRAWS["c"], ord("c"))]


def test_sending_names_it(opened: Callable[[], Store]) -> None:
    """The provider's name is kept; batches come oldest first."""
    store = opened()
    first, second = prepared(store, "a"), prepared(store, "b")
    store.send_batch(second, "msgbatch_2")
    batches = opened().batches(JUDGE)
    assert [(batch.id, batch.provider_id) for batch in batches] == [(first, None), (second, "msgbatch_2")]


def test_a_draw_is_in_one_batch_at_most(store: Store) -> None:
    """One that is out already, is settled, or is unknown, is not put into a second one: it would be paid twice."""
    first = prepared(store, "ab")
    store.settle([a_verdict(DRAWS["d"])])
    wanted = {DRAWS[name].key: 1 for name in "bcd"} | {"unknown": 1}
    second = store.prepare_batch(JUDGE, wanted, "seed", now=AT)
    assert [draw.sample.id for draw, _ in store.batched(first)] == ["a", "b"]
    assert store.batched(second) == [(DRAWS["c"], 1)]


def test_settled_draws_leave_their_batch(store: Store) -> None:
    """What is settled is not told again; a result that is collected twice changes nothing."""
    batch = prepared(store, "ab")
    assert [store.settle([a_verdict(DRAWS["a"])]) for _ in range(2)] == [1, 0]
    assert [draw.sample.id for draw, _ in store.batched(batch)] == ["b"]
    assert (store.pending()[JUDGE], balanced(store)) == (3, True)


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


def test_closing_leaves_the_others_alone(store: Store) -> None:
    """Numbers are not used twice, and another batch keeps its draws."""
    first, second = prepared(store, "a"), prepared(store, "b")
    store.close_batch(second)
    third = prepared(store, "c")
    assert len({first, second, third}) == 3
    assert [batch.id for batch in store.batches(JUDGE)] == [first, third]
    assert [draw.sample.id for draw, _ in store.batched(first)] == ["a"]


def test_retention_takes_no_sample_that_is_out(store: Store) -> None:
    """However old it is: the reply may come tomorrow. So do the money set aside and the batch itself stay."""
    draw = a_draw("old", at=AT - 1e7)
    store.admit(an_admission(draw, judges=(JUDGE, "second")))
    held = store.reserve(JUDGE, Cost(0.5, 10), [], now=AT)
    assert held is not None
    batch = store.prepare_batch(JUDGE, {draw.key: held}, "seed", now=AT)
    store.settle([a_verdict(draw, reading=a_reading("second"))])
    assert store.prune(Retention(1, 1, 1 << 40), now=AT + 2 * 86400) == 1
    assert (store.find(Query()), store.batched(batch)) == ([], [(draw, held)])
    assert store.spent(JUDGE, AT - 1) == Cost(0.5, 10)
