"""The contract of `ports.Store` for raw replies of LLM judges."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.kit import AT, a_draw, a_reading, a_verdict, an_admission, an_evidence

from ragwatch.core.sample import Draw
from ragwatch.ports import Erasure, Query, Retention, Store
from ragwatch.stores.replies import MAX_BYTES

DAY = 86400.0
REPLY = '{"address":"SECRETREPLY é"}'


def fill(store: Store, *replies: str) -> Draw:
    """Store an answer that a model and a judge without replies have read."""
    draw = a_draw("r1")
    store.admit(an_admission(draw, judges=("claude", "embedded")))
    store.settle([a_verdict(draw, an_evidence((1, 0), replies=replies), a_reading("claude")), a_verdict(draw)])
    return draw


def stored(store: Store) -> dict[str, tuple[str, ...]]:
    """Replies by judge."""
    return {entry.verdict.judge: store.replies(entry.seq) for entry in store.entries(Query())}


def test_replies_are_kept_beside_their_verdict(opened: Callable[[], Store]) -> None:
    """In the order of the calls, also after a restart; other verdicts have none, nor has one that does not exist."""
    fill(opened(), REPLY, "", "second")
    store = opened()
    assert stored(store) == {"claude": (REPLY, "", "second"), "embedded": ()}
    assert store.replies(1 << 40) == ()


def test_replies_of_a_reading_again_are_kept(store: Store) -> None:
    """`ragwatch rejudge` stores them as well."""
    draw = fill(store)
    again = a_verdict(draw, an_evidence((1, 0), replies=(REPLY,)), a_reading("other"))
    assert store.add_rejudged([again], charted_before=AT) == 1
    assert stored(store) == {"claude": (), "embedded": (), "other": (REPLY,)}


def test_long_replies_are_cut(store: Store) -> None:
    """All replies to one sample together take a bounded number of bytes, and say what is left out."""
    fill(store, "a" * (MAX_BYTES - 3), "é" * 5, "third")
    first, second = stored(store)["claude"]
    assert (len(first), second) == (MAX_BYTES - 3, "é [7 bytes more]")


@pytest.mark.parametrize(
    "delete",
    [
        lambda store: store.forget(Erasure(ids=frozenset({"r1"}))),
        lambda store: store.forget(Erasure(ids=frozenset({"r1"}), with_scores=True)),
        lambda store: store.prune(Retention(days=1, failing_days=1, bytes=1 << 30), now=AT + 9 * DAY),
    ],
    ids=["forgotten", "with scores", "by retention"],
)
def test_replies_are_deleted_with_the_answer(store: Store, delete: Callable[[Store], object]) -> None:
    """Nothing that a model said of it remains."""
    fill(store, REPLY)
    seqs = [entry.seq for entry in store.entries(Query())]
    delete(store)
    assert [store.replies(seq) for seq in seqs] == [(), ()]
