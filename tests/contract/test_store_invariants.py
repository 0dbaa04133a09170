"""Invariants of counters and costs, for every kind of store and any order of operations of a free and a paid judge."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.draws import draws
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_unjudged
from support.stores import PARAMETERS, open_store

from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.sample import Draw
from ragwatch.ports import Assignment, FollowUp, Query, Retention, Store
from ragwatch.statistics.tally import Tally, violations
from ragwatch.statistics.verdict import Judged, Verdict

pytestmark = pytest.mark.uncounted

PAID = "paid"
SPAN = 3600.0
CAPS = (SpendingCap(SPAN, usd=1.0), SpendingCap(2 * SPAN, usd=1.5, tokens=500))
CENTS = st.integers(0, 40).map(lambda cents: cents / 64)
NAMES = st.lists(st.sampled_from([f"r{index}" for index in range(12)]), max_size=5)


class Life(RuleBasedStateMachine):
    """Draws go to one judge, some then to a paid one, some of these in batches; processes come and go."""

    kind: str

    @initialize()
    def start(self) -> None:
        """An empty state, and a model that knows nothing."""
        self.state = Path(tempfile.mkdtemp())
        self.store = self.open()
        self.now = AT
        self.seen = self.duplicates = self.reads = 0
        self.known: set[str] = set()
        self.first: dict[str, Draw] = {}
        self.leased: set[str] = set()
        self.second: dict[str, int | None] = {}  # key to batch
        self.stored: dict[tuple[str, str], Verdict] = {}  # by judge and key
        self.counts = Counter[tuple[str, bool]]()  # settled, by judge and whether it was judged
        self.calls: dict[int, tuple[float, Cost]] = {}
        self.unpaid: list[int] = []

    def open(self) -> Store:
        """The store over the same state."""
        return open_store(self.kind, self.state)

    @rule(names=NAMES)
    def admit(self, names: list[str]) -> None:
        """A batch arrives; some of it may be known."""
        self.reads += 1
        batch = [a_draw(name) for name in names]
        fresh = {draw.key: draw for draw in batch if draw.key not in self.known}
        tallies = Counter({(Tally.SEEN, ("app",)): len(names)})
        assert self.store.admit(an_admission(*batch, cursor=str(self.reads), tallies=tallies)) == len(fresh)
        self.known |= fresh.keys()
        self.first |= fresh
        self.seen += len(names)
        self.duplicates += len(names) - len(fresh)

    @rule(limit=st.integers(1, 4))
    def lease(self, limit: int) -> None:
        """The first judge takes a few, which nobody else then gets, the oldest first."""
        free = [key for key in self.first if key not in self.leased]
        taken = [draw.key for draw in self.store.lease(JUDGE, limit, now=self.now, seconds=60)]
        assert taken == free[:limit]
        self.leased |= set(taken)

    @rule(share=st.sampled_from([1, 2, 3]), good=st.booleans(), twice=st.booleans())
    def settle(self, share: int, good: bool, twice: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """It settles what it has taken; every so many goes to the paid one, perhaps told twice."""
        read = [self.first.pop(key) for key in list(self.first) if key in self.leased]
        verdicts = [a_verdict(draw) if good else an_unjudged(draw) for draw in read]
        further = [FollowUp(draw.key, JUDGE, Assignment(PAID, 1 / share), self.now) for draw in read[::share]]
        assert self.store.settle(verdicts, further) == len(verdicts)
        if twice:
            assert self.store.settle(verdicts, further) == 0
        self.note(verdicts)
        self.second |= {follow_up.key: None for follow_up in further}
        self.leased = set()

    def note(self, verdicts: list[Verdict]) -> None:
        """These were settled."""
        for verdict in verdicts:
            self.stored[verdict.reading.judge, verdict.draw.key] = verdict
            self.counts[verdict.reading.judge, isinstance(verdict, Judged)] += 1

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
        taken = self.store.lease(PAID, limit, now=self.now, seconds=1e9)
        assert {draw.key for draw in taken} <= {key for key, batch in self.second.items() if batch is None}
        batch = self.store.prepare_batch(PAID, {draw.key: 7 for draw in taken}, "seed", now=self.now)
        self.second |= {draw.key: batch for draw in taken}

    @rule(count=st.integers(0, 3), close=st.booleans())
    def collect(self, count: int, close: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Some replies of the oldest batch come in; perhaps the rest never will."""
        for batch in self.store.batches(PAID)[:1]:
            inside = [draw for draw, _ in self.store.batched(batch.id)]
            read = [a_verdict(draw, reading=a_reading(PAID)) for draw in inside[:count]]
            assert self.store.settle(read) == len(read)
            self.note(read)
            for verdict in read:
                del self.second[verdict.draw.key]
            if close:
                assert self.store.close_batch(batch.id) == len(inside) - len(read)
                self.second |= {key: None for key, number in self.second.items() if number == batch.id}

    @rule(seconds=st.sampled_from([1.0, 60.0, 700.0, 2000.0]))
    def wait(self, seconds: float) -> None:
        """Time passes: what was leased for a minute may be leased again."""
        self.now += seconds
        self.leased = set() if seconds >= 60.0 else self.leased

    @rule()
    def add_up(self) -> None:
        """Old spending is added up by the minute."""
        self.store.prune(Retention(1e6, 1e6, 1 << 40), now=self.now)

    @rule()
    def prune(self) -> None:
        """Age takes the good verdicts, and the memory of samples that no verdict and no judge needs; counts stay."""
        gone = [place for place, verdict in self.stored.items() if isinstance(verdict, Judged)]
        assert self.store.prune(Retention(1, 1e6, 1 << 40), now=AT + 2 * 86400) == len(gone)
        for place in gone:
            del self.stored[place]
        pruned = {key for _, key in gone}
        self.known -= pruned - self.first.keys() - self.second.keys() - {key for _, key in self.stored}

    @rule()
    def restart(self) -> None:
        """The process is gone and comes back: leases are over, the rest is there."""
        self.store.close()
        self.store = self.open()
        self.leased = set()

    def exact(self, seconds: float) -> Cost:
        """What calls within a span that ends now cost, as far as is known."""
        return sum((cost for at, cost in self.calls.values() if at > self.now - seconds), Cost())

    @invariant()
    def books_balance(self) -> None:
        """Seen >= drawn = judged + unjudged + pending, exactly; every draw is with its judge, in one batch, or settled.

        The cursor is that of the last batch.
        """
        tallies, pending = self.store.tallies_and_pending()
        assert violations(tallies, pending) == {}
        assert tallies[Tally.SEEN, ("app",)] == self.seen == tallies[Tally.DRAWN, ("search",)] + self.duplicates
        assert tallies[Tally.REJECTED, ("app", "duplicate_id")] == self.duplicates
        for judge, waits in ((JUDGE, self.first), (PAID, self.second)):
            judged, unjudged = self.counts[judge, True], self.counts[judge, False]
            assert tallies[Tally.JUDGED, ("search", judge)] == judged
            assert tallies[Tally.UNJUDGED, ("search", judge, "timeout")] == unjudged
            assert tallies[Tally.ASSIGNED, (judge,)] == judged + unjudged + len(waits)
            assert pending.get(judge, 0) == len(waits)
        inside = {draw.key: batch.id for batch in self.store.batches(PAID) for draw, _ in self.store.batched(batch.id)}
        assert inside == {key: batch for key, batch in self.second.items() if batch is not None}
        assert self.store.cursors("app") == ({"log": str(self.reads)} if self.reads else {})
        rows = self.store.find(Query(limit=200))
        assert sorted((row.verdict.judge, row.verdict.key) for row in rows) == sorted(self.stored)

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
    """No random sequence of operations violates an invariant or exceeds a cap."""
    machine = type("Life", (Life,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(max_examples=draws(12), stateful_step_count=25, deadline=None)
    case().runTest()
