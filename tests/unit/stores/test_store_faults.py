"""Faults: values from outside that the store cannot take, or chokes on later."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission

from ragwatch.core.budget import Cost
from ragwatch.core.labels.label import Label
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tally
from ragwatch.errors import StoreError
from ragwatch.judges.llm.calls.messages import parse_message
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.verdicts import answer_verdicts
from ragwatch.ports import Query, Retention, StoredRun
from ragwatch.stores.rows import pack, unpack
from ragwatch.stores.sqlite.store import SqliteStore


def test_nonsense_usage_does_not_stop_the_accounts(store: SqliteStore) -> None:
    """A gateway that counts -1 as an unsigned number: what it says is no number of tokens."""
    body = {"type": "message", "content": [], "usage": {"input_tokens": 2**63 - 2, "output_tokens": 1}}
    for _ in range(2):
        usage = parse_message(body).usage
        reservation = store.reserve(JUDGE, Cost(0.0, 100), [], now=AT)
        assert reservation is not None
        store.pay(reservation, Cost(0.0, 100 if usage is None else usage.tokens))
    assert store.spent(JUDGE, 0.0).tokens == 200


def test_runs_of_canaries_do_not_evict_every_verdict(store: SqliteStore) -> None:
    """30 runs of 128 KiB in a state that may hold 1 MiB: runs are forgotten too, the oldest first."""
    rng = random.Random(1)
    draws = [a_draw(f"r{number}") for number in range(5)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    for number in range(30):
        store.record_run(
            StoredRun("canary", "docs", AT + number, failing=False, body={"hits": rng.randbytes(128 << 10).hex()}),
            Counter(),
        )
    store.prune(Retention(30.0, 90.0, 1 << 20), now=AT + 60.0)
    assert len(store.find(Query(limit=10))) == 5


@pytest.mark.parametrize("harm", ["deleted", "replaced"])
def test_a_database_that_is_not_there_any_more_is_told(tmp_path: Path, harm: str) -> None:
    """Nothing is written to a file that nobody will find again; with the old one back in its place it goes on."""
    path, aside = tmp_path / "state" / "ragwatch.db", tmp_path / "aside"
    with closing(SqliteStore(tmp_path / "state")) as store:
        store.admit(an_admission(a_draw("a")))
        aside.hardlink_to(path)
        path.unlink()
        if harm == "replaced":
            path.write_bytes(aside.read_bytes())
        for act in (
            lambda: store.admit(an_admission(a_draw("b"))),
            lambda: store.settle([a_verdict(a_draw("a"))]),
            lambda: store.remember("x", {}),
        ):
            with pytest.raises(StoreError, match=r"moved, deleted or replaced while it was in use.*restart"):
                act()
        assert store.pending() == {JUDGE: 1}
        aside.replace(path)
        assert store.admit(an_admission(a_draw("b"))) == 1


def everything(store: SqliteStore, draw: Draw) -> tuple[object, ...]:
    """What loops read."""
    answer = answer_verdicts(store, {JUDGE: "scripted-1"}, draw.key)
    tallies = store.tallies()
    tallies.pop((Tally.UNKNOWN_COUNTERS, ("humour_seen",)), None)
    return (tallies, store.window(0, 0.0, 9), store.labels(0.0), answer and answer.scores)


def test_what_a_newer_version_has_kept_does_not_stop_an_older_one(store: SqliteStore) -> None:
    """Back to the version before, within one schema: counts and quantities that it does not know are left to the newer.

    They stay where they are, and everything else is read as ever.
    """
    draw, writer = a_draw("a"), store.engine._writer
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    store.add_labels([Label(draw.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0})])
    before = everything(store, draw)
    writer.execute("INSERT INTO tallies VALUES ('humour_seen', '[\"search\"]', 1.0, '[\"route\"]')")
    writer.execute("UPDATE verdicts SET scores = json_set(scores, '$.humour', 0.5)")
    for table, column in (("verdicts", "line"), ("labels", "body")):
        kept = unpack(writer.execute(f"SELECT {column} FROM {table}").fetchone()[0])  # noqa: S608 - our own words
        body = pack({**kept, "scores": {**kept["scores"], "humour": 0.5}})
        writer.execute(f"UPDATE {table} SET {column} = ?", (body,))  # noqa: S608 - the same
    assert everything(store, draw) == before
    assert writer.execute("SELECT value FROM tallies WHERE name = 'humour_seen'").fetchone() == (1.0,)
