"""The contract of `ports.Store` for erasure: every kind forgets a person and keeps its counters balanced."""

from __future__ import annotations

from collections.abc import Callable

from support.kit import JUDGE, a_draw, a_verdict, an_admission

from ragwatch.core.tally import Tally
from ragwatch.ports import Erasure, Query, Store


def test_a_person_is_forgotten_for_good(opened: Callable[[], Store]) -> None:
    """Texts go, scores stay, pending draws become unjudged, and nothing comes back after a restart."""
    store = opened()
    hers = [a_draw(name, metadata={"user": "anna"}) for name in ("judged", "pending")]
    his = a_draw("his", metadata={"user": "bob"})
    store.admit(an_admission(*hers, his))
    store.settle([a_verdict(hers[0]), a_verdict(his)])
    erasure = Erasure(metadata=frozenset({("user", "anna")}))
    counted = store.forget(erasure, dry_run=True)
    assert store.pending() == {JUDGE: 1}
    erased = store.forget(erasure)
    assert erased == counted
    assert (set(erased.keys), erased.pending, erased.verdicts) == ({draw.key for draw in hers}, 1, 1)
    store = opened()
    samples = {row.verdict.key: row.sample for row in store.find(Query(outcome="judged"))}
    assert samples[hers[0].key] is None
    assert samples[his.key] is not None
    tallies, pending = store.tallies_and_pending()
    assert (pending, tallies[Tally.ASSIGNED, (JUDGE,)]) == ({}, 3)
    assert tallies[Tally.UNJUDGED, ("search", JUDGE, "erased")] == 1
    assert store.forget(erasure).keys == ()
    assert store.admit(an_admission(hers[0])) == 0  # a source that delivers it again brings nothing back
