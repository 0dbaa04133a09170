"""Damage and faults: a row that cannot be read costs itself, and what the store cannot take is refused."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.stores import admit_and_settle

from ragwatch.errors import StoreError
from ragwatch.judges.claude import parse_message
from ragwatch.model.budget import Cost
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Draw
from ragwatch.pipeline.labels.verdicts import answer_verdicts
from ragwatch.ports import AnswerQuery, Part, Query, Retention, StoredRun
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.stores.notes import MAX_RUNS_BYTES
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import pack, unpack

KEYS = [a_draw(name).key for name in "abc"]


@pytest.fixture
def filled(store: SqliteStore) -> SqliteStore:
    """Three verdicts, a label on each, and three runs."""
    draws = [a_draw(name, at=AT + number) for number, name in enumerate("abc")]
    admit_and_settle(store, *draws)
    store.add_labels([Label(draw.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0}) for draw in draws])
    for number in range(3):
        store.record_run(StoredRun("canary", "docs", AT + number, failing=False, body={"n": number}), Counter())
    return store


@pytest.mark.parametrize("place", ["samples SET body", "verdicts SET line"])
@pytest.mark.parametrize("harm", ["X'00ff'", "''", "'text'", "7", "X''"])
def test_a_damaged_text_costs_its_row(filled: SqliteStore, place: str, harm: str) -> None:
    """Whatever stands in the place of a text, every verdict is found with its figures, and one says what is wrong."""
    filled.engine._writer.execute(f"UPDATE {place} = {harm} WHERE key = ?", (KEYS[1],))
    for results in (filled.find(Query()), filled.summaries(Query())):
        assert [stored.verdict.key for stored in results] == KEYS[::-1]
        assert [stored.damage is not None for stored in results] == [False, True, False]
        assert results[1].verdict.scores == results[0].verdict.scores
        assert (results[1].verdict.judge_version, results[1].verdict.outcome) == ("scripted-1", "judged")
    assert filled.damaged() == 1


def test_a_damaged_figure_costs_its_row(filled: SqliteStore) -> None:
    """Scores that are no JSON, and text that is no UTF-8, leave every search and every window standing."""
    filled.engine._writer.execute(
        "UPDATE verdicts SET scores = '{', route = CAST(X'ff41' AS TEXT) WHERE key = ?", (KEYS[1],)
    )
    summaries = filled.summaries(Query())
    assert [stored.verdict.key for stored in summaries] == KEYS[::-1]
    assert set(summaries[1].verdict.scores.values()) == {None}
    assert summaries[1].verdict.route == "\ufffdA"
    query = Query(quantity=Quantity.FAITHFULNESS, above=0.5)
    assert [stored.verdict.key for stored in filled.find(query)] == [KEYS[2], KEYS[0]]
    rows = filled.window(0, 0.0, 10)
    assert [(row.key, row.scores is None, row.reason) for row in rows][1] == (KEYS[1], True, "damaged")


def test_damaged_labels_runs_and_replies_cost_themselves(filled: SqliteStore) -> None:
    """The others are there, and damage is counted once; pages show a verdict without its replies and traits."""
    filled.engine._writer.execute("UPDATE labels SET body = X'00' WHERE key = ?", (KEYS[1],))
    filled.engine._writer.execute("UPDATE runs SET body = X'00' WHERE at = ?", (AT + 1,))
    for _ in range(2):
        assert sorted(label.key for label in filled.labels(0.0)) == sorted([KEYS[0], KEYS[2]])
        assert sorted(label.key for label in filled.labels_after(None, 9)) == sorted([KEYS[0], KEYS[2]])
        assert [run.body["n"] for run in filled.runs("canary", "docs", 9)] == [2, 0]
    assert filled.labels_of(KEYS[1], 9) == []
    assert filled.damaged() == 2
    for body in (b"\x01", pack({}), pack({"replies": None})):
        filled.engine._writer.execute("INSERT OR REPLACE INTO replies VALUES (1, 'key', ?)", (body,))
        assert filled.replies(1) == ()
    filled.engine._writer.execute("UPDATE traits SET body = x'0102'")
    assert [(row.scores is None, traits) for row, traits in filled.answers(AnswerQuery(0.0, AT + 9))] == [
        (False, None)
    ] * 3


def test_a_damaged_part_costs_itself(store: SqliteStore) -> None:
    """A part that cannot be unpacked is left out and counted; the others wait on."""
    store.admit(replace(an_admission(), hold=[Part("t", name, b"span", AT) for name in "abcde"]))
    for name, harm in (("b", "X'00ff'"), ("c", "'text'"), ("d", "7")):
        store.engine._writer.execute(f"UPDATE parts SET body = {harm} WHERE name = '{name}'")  # noqa: S608 - constants
    assert [part.name for part in store.parts("app")] == ["a", "e"]
    assert store.damaged() == 3


def test_runs_are_limited_by_their_size(store: SqliteStore) -> None:
    """Fewer are shown, one at least; in a state of 1 MiB the oldest runs are forgotten before every verdict is."""
    for number in range(5):
        body = {"n": number, "answer": "x" * (MAX_RUNS_BYTES // 3)}
        store.record_run(StoredRun("canary", "docs", AT + number, failing=False, body=body), Counter())
        store.record_run(
            StoredRun("canary", "huge", AT + number, failing=False, body=body | {"more": "x" * MAX_RUNS_BYTES}),
            Counter(),
        )
    assert [run.body["n"] for run in store.runs("canary", "docs", 9)] == [4, 3]
    assert [run.body["n"] for run in store.runs("canary", "huge", 9)] == [4]
    rng = random.Random(1)
    draws = [a_draw(f"r{number}") for number in range(5)]
    admit_and_settle(store, *draws)
    for number in range(30):
        store.record_run(
            StoredRun("canary", "docs", AT + number, failing=False, body={"hits": rng.randbytes(128 << 10).hex()}),
            Counter(),
        )
    store.prune(Retention(30.0, 90.0, 1 << 20), now=AT + 60.0)
    assert len(store.find(Query(limit=10))) == 5


def test_counts_are_read_past_a_damaged_name(filled: SqliteStore, store: SqliteStore) -> None:
    """By every way of asking; what is no damaged text stays an error of the store."""
    filled.engine._writer.execute("UPDATE verdicts SET judge = CAST(X'ff' AS TEXT) WHERE key = ?", (KEYS[1],))
    assert [row.judge for row in filled.window(0, 0.0, 10)] == [JUDGE, "\ufffd", JUDGE]
    filled.engine._writer.execute("INSERT INTO tallies VALUES (CAST(X'ff' AS TEXT), '[]', 1.0, NULL)")
    assert filled.tallies()[Tally.UNKNOWN_COUNTERS, ("\ufffd",)] == 1
    assert filled.tallies_and_pending()[0] == filled.tallies()
    walker = ReadConnection(filled.engine._path)
    with pytest.raises(StoreError, match="decode"):
        list(walker.walk("SELECT name FROM tallies"))
    assert list(walker.walk("SELECT name FROM tallies WHERE labels = '[]'"))[-1:]  # the next time
    walker.close()
    reader = ReadConnection(store.engine._path)
    for ask in (reader.rows, lambda sql: list(reader.walk(sql))):
        with pytest.raises(StoreError, match="no such table"):
            ask("SELECT x FROM nowhere")
    reader.close()


def test_nonsense_usage_does_not_stop_the_accounts(store: SqliteStore) -> None:
    """A gateway that counts -1 as an unsigned number: what it says is no number of tokens."""
    body = {"type": "message", "content": [], "usage": {"input_tokens": 2**63 - 2, "output_tokens": 1}}
    for _ in range(2):
        usage = parse_message(body).usage
        reservation = store.reserve(JUDGE, Cost(0.0, 100), [], now=AT)
        assert reservation is not None
        store.pay(reservation, Cost(0.0, 100 if usage is None else usage.tokens))
    assert store.spent(JUDGE, 0.0).tokens == 200


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
    admit_and_settle(store, draw)
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
