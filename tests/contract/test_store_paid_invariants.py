"""Invariants of counters and costs, for every kind of store and any order of operations of a free and a paid judge."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.draws import draws
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_unjudged
from support.stores import PARAMETERS, open_store

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tally, violations
from ragwatch.ports import Assignment, FollowUp, Retention, Store

pytestmark = pytest.mark.uncounted

PAID = "paid"
SPAN = 3600.0
CAPS = (SpendingCap(SPAN, usd=1.0), SpendingCap(2 * SPAN, usd=1.5, tokens=500))
CENTS = st.integers(0, 40).map(lambda cents: cents / 64)


class Life(RuleBasedStateMachine):
    """Draws go to one judge, some then to a paid one, some of these in batches; processes come and go."""

    kind: str

    @initialize()
    def start(self) -> None:
        """An empty state, and a model that knows nothing."""
        self.state = Path(tempfile.mkdtemp())
        self.store = self.open()
        self.now, self.drawn = AT, 0
        self.first: dict[str, Draw] = {}
        self.second: dict[str, int | None] = {}  # key to batch
        self.settled = Counter[str]()
        self.calls: dict[int, tuple[float, Cost]] = {}
        self.unpaid: list[int] = []

    def open(self) -> Store:
        """The store over the same state."""
        return open_store(self.kind, self.state)

    @rule(count=st.integers(1, 4))
    def admit(self, count: int) -> None:
        """New draws for the first judge."""
        draws = [a_draw(f"r{index}") for index in range(self.drawn, self.drawn + count)]
        self.drawn += count
        self.store.admit(an_admission(*draws, tallies=Counter({(Tally.SEEN, ("app",)): count})))
        self.first |= {draw.key: draw for draw in draws}

    @rule(share=st.sampled_from([1, 2, 3]), good=st.booleans(), twice=st.booleans())
    def read_first(self, share: int, good: bool, twice: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """The first judge settles what waits; every so many goes to the paid one, perhaps told twice."""
        draws = self.store.lease(JUDGE, 3, now=self.now, seconds=0)
        verdicts = [a_verdict(draw) if good else an_unjudged(draw) for draw in draws]
        further = [FollowUp(draw.key, JUDGE, Assignment(PAID, 1 / share), self.now) for draw in draws[::share]]
        assert self.store.settle(verdicts, further) == len(draws)
        if twice:
            assert self.store.settle(verdicts, further) == 0
        for draw in draws:
            del self.first[draw.key]
        self.settled[JUDGE] += len(draws)
        self.second |= {follow_up.key: None for follow_up in further}

    @rule(usd=CENTS, tokens=st.integers(0, 200))
    def reserve(self, usd: float, tokens: int) -> None:
        """Money is set aside exactly where the caps leave room; adding up by the minute may only take room."""
        worst = Cost(usd, tokens)
        room = all(
            self.exact(cap.seconds).usd + usd <= (cap.usd or 0.0)
            and (cap.tokens is None or self.exact(cap.seconds).tokens + tokens <= cap.tokens)
            for cap in CAPS
        )
        reservation = self.store.reserve(PAID, worst, CAPS, now=self.now)
        assert room or reservation is None
        if reservation is not None:
            assert reservation not in self.calls
            self.calls[reservation] = (self.now, worst)
            self.unpaid.append(reservation)

    @rule(share=st.sampled_from([0, 1, 2, 4]), again=st.booleans())
    def pay(self, share: int, again: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """A call ends, and costs its worst case or a part of it."""
        if self.unpaid:
            number = self.unpaid.pop(0)
            at, worst = self.calls[number]
            actual = Cost(worst.usd * share / 4, worst.tokens * share // 4)
            self.store.pay(number, actual)
            if again:
                self.store.pay(number, Cost())
            self.calls[number] = (at, actual)

    @rule(limit=st.integers(1, 3))
    def prepare(self, limit: int) -> None:
        """Draws of the paid judge go into a batch."""
        draws = self.store.lease(PAID, limit, now=self.now, seconds=1e9)
        assert {draw.key for draw in draws} <= {key for key, batch in self.second.items() if batch is None}
        batch = self.store.prepare_batch(PAID, {draw.key: 7 for draw in draws}, "seed", now=self.now)
        self.second |= {draw.key: batch for draw in draws}

    @rule(count=st.integers(0, 3), close=st.booleans())
    def collect(self, count: int, close: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Some replies of the oldest batch come in; perhaps the rest never will."""
        for batch in self.store.batches(PAID)[:1]:
            inside = [draw for draw, _ in self.store.batched(batch.id)]
            read = [a_verdict(replace(draw), reading=a_reading(PAID)) for draw in inside[:count]]
            assert self.store.settle(read) == len(read)
            self.settled[PAID] += len(read)
            for verdict in read:
                del self.second[verdict.draw.key]
            if close:
                assert self.store.close_batch(batch.id) == len(inside) - len(read)
                self.second |= {key: None for key, number in self.second.items() if number == batch.id}

    @rule(seconds=st.sampled_from([1.0, 45.0, 700.0, 2000.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    @rule()
    def prune(self) -> None:
        """Old spending is added up by the minute."""
        self.store.prune(Retention(1e6, 1e6, 1 << 40), now=self.now)

    @rule()
    def restart(self) -> None:
        """The process is gone and comes back: leases are over, the rest is there."""
        self.store.close()
        self.store = self.open()

    def exact(self, seconds: float) -> Cost:
        """What calls within a span that ends now cost, as far as is known."""
        return sum((cost for at, cost in self.calls.values() if at > self.now - seconds), Cost())

    @invariant()
    def books_balance(self) -> None:
        """Every draw is with its judge, in one batch, or settled; assigned = judged + unjudged + pending."""
        tallies, pending = self.store.tallies_and_pending()
        assert violations(tallies, pending) == {}
        waiting = {JUDGE: len(self.first), PAID: len(self.second)}
        assert pending == {judge: count for judge, count in waiting.items() if count}
        assert tallies[Tally.ASSIGNED, (PAID,)] == len(self.second) + self.settled[PAID]
        inside = {draw.key: batch.id for batch in self.store.batches(PAID) for draw, _ in self.store.batched(batch.id)}
        assert inside == {key: batch for key, batch in self.second.items() if batch is not None}

    @invariant()
    def money_is_counted(self) -> None:
        """No cap is passed, and what is told is what was spent, or up to a minute's calls more."""
        for cap in CAPS:
            exact = self.exact(cap.seconds)
            assert exact.usd <= (cap.usd or 0.0)
            spent = self.store.spent(PAID, self.now - cap.seconds)
            assert exact.usd <= spent.usd <= self.exact(cap.seconds + 60).usd
            assert exact.tokens <= spent.tokens <= self.exact(cap.seconds + 60).tokens

    def teardown(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.state)


@pytest.mark.costly
@pytest.mark.parametrize("kind", PARAMETERS)
def test_counts_and_money_agree_in_any_order(kind: str) -> None:
    """No random sequence of operations violates the invariant or exceeds a cap."""
    machine = type("Life", (Life,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(max_examples=draws(30), stateful_step_count=25, deadline=None)
    case().runTest()
