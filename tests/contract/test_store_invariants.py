"""Invariant of counters, for every kind of store and any order of operations: drawn = judged + unjudged + pending."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.draws import draws
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_unjudged
from support.stores import PARAMETERS, open_store

from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tally
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.ports import Query, Retention, Store

pytestmark = pytest.mark.uncounted

NAMES = st.lists(st.sampled_from([f"r{index}" for index in range(12)]), max_size=5)


class Life(RuleBasedStateMachine):
    """Admits, leases, settles, prunes and restarts in any order, beside a model of what must be there."""

    kind: str

    @initialize()
    def start(self) -> None:
        """An empty state, and a model that knows nothing."""
        self.state = Path(tempfile.mkdtemp())
        self.store = self.open()
        self.seen = self.duplicates = self.judged = self.unjudged = self.reads = 0
        self.now = AT
        self.pending: dict[str, Draw] = {}
        self.settled: dict[str, Verdict] = {}
        self.leased: list[Draw] = []

    def open(self) -> Store:
        """The store over the same state."""
        return open_store(self.kind, self.state)

    @rule(names=NAMES)
    def admit(self, names: list[str]) -> None:
        """A batch arrives; some of it may be known."""
        self.reads += 1
        draws = [a_draw(name) for name in names]
        tallies = Counter({(Tally.SEEN, ("app",)): len(names)})
        fresh = {draw.key: draw for draw in draws if draw.key not in self.pending and draw.key not in self.settled}
        assert self.store.admit(an_admission(*draws, cursor=str(self.reads), tallies=tallies)) == len(fresh)
        self.pending |= fresh
        self.seen += len(names)
        self.duplicates += len(names) - len(fresh)

    @rule(limit=st.integers(1, 4))
    def lease(self, limit: int) -> None:
        """A judge takes a few; nobody gets what another holds."""
        leased = self.store.lease(JUDGE, limit, now=self.now, seconds=60)
        free = [key for key in self.pending if key not in {draw.key for draw in self.leased}]
        assert [draw.key for draw in leased] == free[:limit]
        self.leased += leased

    @rule(good=st.booleans(), twice=st.booleans())
    def settle(self, good: bool, twice: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """What was leased becomes verdicts, perhaps told twice."""
        verdicts = [a_verdict(draw) if good else an_unjudged(draw) for draw in self.leased]
        assert self.store.settle(verdicts) == len(verdicts)
        if twice:
            assert self.store.settle(verdicts) == 0
        for verdict in verdicts:
            self.settled[verdict.draw.key] = verdict
            del self.pending[verdict.draw.key]
        self.judged += len(verdicts) if good else 0
        self.unjudged += 0 if good else len(verdicts)
        self.leased = []

    @rule()
    def wait(self) -> None:
        """Time passes: what was leased may be leased again."""
        self.now += 60
        self.leased = []

    @rule()
    def restart(self) -> None:
        """The process is gone and comes back."""
        self.store.close()
        self.store = self.open()
        self.leased = []

    @rule()
    def prune(self) -> None:
        """Age takes the good verdicts, and with them the memory of their samples; counts stay."""
        gone = [key for key, verdict in self.settled.items() if isinstance(verdict, Judged)]
        assert self.store.prune(Retention(1, 1e6, 1 << 40), now=AT + 2 * 86400) == len(gone)
        for key in gone:
            del self.settled[key]

    @invariant()
    def counts_agree(self) -> None:
        """Seen >= drawn = judged + unjudged + pending, exactly, and the cursor is that of the last batch."""
        tallies = self.store.tallies()
        drawn = tallies[Tally.DRAWN, ("search",)]
        judged = tallies[Tally.JUDGED, ("search", JUDGE)]
        unjudged = tallies[Tally.UNJUDGED, ("search", JUDGE, "timeout")]
        assert tallies[Tally.SEEN, ("app",)] == self.seen == drawn + self.duplicates
        assert tallies[Tally.REJECTED, ("app", "duplicate_id")] == self.duplicates
        assert drawn == judged + unjudged + sum(self.store.pending().values())
        assert (judged, unjudged, self.store.pending().get(JUDGE, 0)) == (self.judged, self.unjudged, len(self.pending))
        assert self.store.cursors("app") == ({"log": str(self.reads)} if self.reads else {})
        assert {stored.verdict.key for stored in self.store.find(Query(limit=100))} == set(self.settled)

    def teardown(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.state)


@pytest.mark.costly
@pytest.mark.parametrize("kind", PARAMETERS)
def test_counts_agree_in_any_order(kind: str) -> None:
    """No random sequence of operations violates the invariant."""
    machine = type("Life", (Life,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(max_examples=draws(25), stateful_step_count=20, deadline=None)
    case().runTest()
