"""Faults: values from outside that the store cannot take, or chokes on later."""

from __future__ import annotations

import random
from collections import Counter

from kit import AT, JUDGE, a_draw, a_verdict, an_admission

from ragwatch.core.budget import Cost
from ragwatch.judges.calling.messages import message
from ragwatch.ports import Query, Retention, Run
from ragwatch.stores.sqlite import SqliteStore


def test_nonsense_usage_does_not_stop_the_accounts(store: SqliteStore) -> None:
    """A gateway that counts -1 as an unsigned number: what it says is no number of tokens."""
    body = {"type": "message", "content": [], "usage": {"input_tokens": 2**63 - 2, "output_tokens": 1}}
    for _ in range(2):
        usage = message(body).usage
        reservation = store.reserve(JUDGE, Cost(0.0, 100), [], now=AT)
        assert reservation is not None
        store.pay(reservation, Cost(0.0, 100 if usage is None else usage.tokens))
    assert store.spent(JUDGE, 0.0).tokens == 200


def test_runs_of_canaries_do_not_evict_every_verdict(store: SqliteStore) -> None:
    """30 runs of 128 KiB in a state that may hold 1 MiB: runs are forgotten too, the oldest first."""
    rng = random.Random(1)
    draws = [a_draw(f"r{each}") for each in range(5)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    for each in range(30):
        store.record_run(
            Run("canary", "docs", AT + each, failing=False, body={"hits": rng.randbytes(128 << 10).hex()}), Counter()
        )
    store.prune(Retention(30.0, 90.0, 1 << 20), now=AT + 60.0)
    assert len(store.find(Query(limit=10))) == 5
