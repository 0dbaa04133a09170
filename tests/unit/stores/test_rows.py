"""Rows, texts and damage: what is stored comes back, and a row that cannot be read costs itself."""

import json
import random
import zlib
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import AT, JUDGE, a_draw, a_sample, a_verdict, an_admission
from support.stores import AGES, PARAMETERS, Opened, admit_and_settle, found_by

from ragwatch.errors import StoreError
from ragwatch.formats import build
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Draw, RelevantContext, Role, Turn
from ragwatch.pipeline.labels.verdicts import answer_verdicts
from ragwatch.ports import AnswerQuery, Part, Query, Store, StoredRun
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.stores.counting import tallies_of
from ragwatch.stores.notes import MAX_RUNS_BYTES
from ragwatch.stores.rows import sample_of
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import EXCERPT_CHARS, PIECE_BYTES, PackedText, excerpt, pack, unpack

texts = st.text(st.characters(exclude_categories=()))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts, st.lists, max_leaves=5
)


@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_packed_comes_back(value: dict[str, Any]) -> None:
    """Every JSON value survives, lone surrogates and control characters too."""
    assert unpack(pack(value)) == value


turns = st.builds(Turn, st.sampled_from(Role), texts)


@given(texts, st.none() | texts, st.dictionaries(texts, values, max_size=3), st.lists(turns, max_size=3).map(tuple))
def test_samples_come_back(
    answer: str, question: str | None, metadata: dict[str, Any], history: tuple[Turn, ...]
) -> None:
    """A sample is what its canonical record says."""
    sample = a_sample(answer=answer, question=question, metadata=metadata, history=history)
    assert sample_of(unpack(pack(sample.to_record()))) == sample


def test_what_is_seldom_known_comes_back() -> None:
    """Grades, steps, dates; none is another thing than unknown; version 0.1.0 stored no history."""
    rare: list[dict[str, Any]] = [
        {"contexts": (Context("Tea.", "d1", 0.5, "search", 1.7e9), Context("Milk."))},
        {"relevant": (RelevantContext("c1", None, 2), RelevantContext(None, "One.", 1))},
        {"relevant": ()},
        {"relevant": None},
    ]
    for sample in (a_sample(**parts) for parts in rare):
        assert sample_of(unpack(pack(sample.to_record()))) == sample
        assert build("canonical").read(sample.to_record(), "log:1") == sample
    record = a_sample(contexts=(Context("Milk."),)).to_record()
    assert "updated_at" not in record["contexts"][0]
    del record["history"]
    assert sample_of(unpack(pack(record))) == a_sample(contexts=(Context("Milk."),))


def test_counters_come_back_by_the_names_of_their_labels() -> None:
    """In whatever order a version wrote them; one that is not known costs no other, and is counted."""
    stored = ("rejected", '["app", "json"]', '["source", "reason"]', 3.0)
    other_order = ("rejected", '["json","app"]', '["reason","source"]', 2.0)
    assert tallies_of([stored, other_order]) == {(Tally.REJECTED, ("app", "json")): 5}
    assert tallies_of([("seen", '["app"]', None, 1.0)]) == {(Tally.SEEN, ("app",)): 1}
    unknown: dict[str, tuple[str, str, str | None]] = {
        "a label more": ("seen", '["app", "eu"]', '["source", "region"]'),
        "a label less": ("rejected", '["app"]', '["source"]'),
        "another label": ("rejected", '["app", "json"]', '["source", "cause"]'),
        "no names, and another number": ("seen", '["app", "eu"]', None),
        "more names than values": ("seen", '["app"]', '["source", "source"]'),
        "a number": ("seen", "[1]", '["source"]'),
        "a list": ("seen", "[[]]", '["source"]'),
        "no list": ("seen", "5", '["source"]'),
        "no JSON": ("seen", "[", '["source"]'),
        "names that are no JSON": ("seen", '["app"]', "{}["),
        "another counter": ("laughs", '["app"]', '["source"]'),
    }
    for why, row in unknown.items():
        known = tallies_of([(*row, 4.0), ("seen", '["app"]', '["source"]', 1.0)])
        assert known == {(Tally.SEEN, ("app",)): 1, (Tally.UNKNOWN_COUNTERS, (row[0],)): 1}, why


RECORD = {
    "id": "r1",
    "question": "Wh\ud800y é 😀 \\ud800?",
    "contexts": [{"id": None, "text": "x" * 50 + "😀" * 5, "score": 1.0}],
    "answer": "half \ud83d of a pair",
    "metadata": {"a": [1, {"b": None}]},
}
PACKED = pack(RECORD)
JSON = zlib.decompress(PACKED)


def paired(value: object) -> object:
    """A JSON value, with a replacement character for each half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def test_pieces_and_excerpts_of_a_text() -> None:
    """Pieces together are the text; an excerpt is what stands in its first kilobytes, cut and not guessed."""
    text = pack({"answer": random.Random(1).randbytes(1 << 20).hex()})
    pieces = list(PackedText(text).pieces())
    assert b"".join(pieces) == zlib.decompress(text)
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert PackedText(text).size() == len(zlib.decompress(text))
    noise = random.Random(1).randbytes(1 << 20).hex()
    near = pack({"id": "r1", "question": "q" * 1000, "contexts": [], "answer": noise})[:16384]
    far = pack({"id": "r1", "question": None, "contexts": [{"text": noise}], "answer": "so"})[:16384]
    assert excerpt(near) == {
        "id": "r1",
        "question": "q" * (EXCERPT_CHARS - 1) + "…",
        "answer": noise[: EXCERPT_CHARS - 1] + "…",
    }
    assert excerpt(far) == {"id": "r1", "question": None}


def test_a_beginning_is_a_part_of_the_record() -> None:
    """Wherever the limit cuts, also within an escape, the fields that are read begin as those that were written."""
    for most in range(1, len(JSON) + 2):
        fields, whole = PackedText(PACKED).beginning(most)
        assert list(fields) == list(RECORD)[: len(fields)], most
        complete = list(fields)[:-1]
        assert [paired(fields[name]) for name in complete] == [paired(RECORD[name]) for name in complete], most
        assert (fields == RECORD) or not whole, most


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_categories=())), min_size=1), st.integers(2, 400))
def test_no_text_breaks_a_beginning(record: dict[str, str], most: int) -> None:
    """Any text, with lone surrogates and escapes, is read as far as the limit without an error."""
    fields, _ = PackedText(pack(record)).beginning(most)
    assert set(fields) <= set(record)


def test_damage_is_told() -> None:
    """What is not a packed JSON object to its end is an error of the store, before anything of it is sent.

    A beginning that cannot be read is one, too.
    """
    unreadable: list[object] = [b"", b"no zlib", None, "a text", 7, zlib.compress(b"[]"), zlib.compress(b"\xff\xfe")]
    for body in (*unreadable, PACKED[:-2], PACKED[:20] + b"zz" + PACKED[22:]):
        with pytest.raises(StoreError, match=r"a stored text is damaged: .*; restore a copy"):
            PackedText(body).size()
    for body in unreadable:
        with pytest.raises(StoreError, match="a stored text is damaged"):
            PackedText(body).beginning(100)


KEYS = [a_draw(name).key for name in "abc"]


def record(store: Store, name: str, place: int, **body: Any) -> None:
    """Record a run of a suite."""
    store.record_run(StoredRun("canary", name, AT + place, failing=False, body=body), Counter())


def fill(store: Store) -> None:
    """Three verdicts, a label on each, and three runs."""
    draws = [a_draw(name, at=AT + number) for number, name in enumerate("abc")]
    admit_and_settle(store, *draws)
    store.add_labels([Label(draw.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0}) for draw in draws])
    for number in range(3):
        record(store, "docs", number, n=number)


@pytest.fixture
def filled(store: SqliteStore) -> SqliteStore:
    """A store with these."""
    fill(store)
    return store


@pytest.mark.parametrize("place", ["samples SET body", "verdicts SET line"])
@pytest.mark.parametrize("harm", ["X'00ff'", "''", "'text'", "7", "X''"])
def test_a_damaged_text_costs_its_row(filled: SqliteStore, place: str, harm: str) -> None:
    """Whatever stands in the place of a text, every verdict is found with its figures, and one says what is wrong.

    A part of a trace that cannot be read is left out, and counted; the others wait on.
    """
    filled.engine._writer.execute(f"UPDATE {place} = {harm} WHERE key = ?", (KEYS[1],))
    filled.admit(replace(an_admission(), hold=[Part("t", name, b"span", AT) for name in "abc"]))
    filled.engine._writer.execute(f"UPDATE parts SET body = {harm} WHERE name = 'b'")  # noqa: S608 - constants
    assert [part.name for part in filled.parts("app")] == ["a", "c"]
    for results in (filled.find(Query()), filled.summaries(Query())):
        assert [stored.verdict.key for stored in results] == KEYS[::-1]
        assert [stored.damage is not None for stored in results] == [False, True, False]
        assert results[1].verdict.scores == results[0].verdict.scores
        assert (results[1].verdict.judge_version, results[1].verdict.outcome) == ("scripted-1", "judged")
    assert filled.damaged() == 2


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
    assert found_by(filled, query) == ["c", "a"]
    rows = filled.window(0, 0.0, 10)
    assert [(row.key, row.scores is None, row.reason) for row in rows][1] == (KEYS[1], True, "damaged")


@pytest.mark.parametrize("opened", PARAMETERS, indirect=True)
def test_damage_beside_figures_costs_itself(opened: Opened) -> None:
    """Of lines, labels, runs, parts, draws, traits and replies the others are there; damage is counted once."""
    store = opened()
    fill(store)
    waiting = a_draw("waiting")
    store.admit(replace(an_admission(waiting), hold=[Part("t", name, b"span", AT) for name in "ab"]))
    with store.engine.transaction() as writer:
        for column, where, value in (
            ("verdicts SET line", "key", KEYS[0]),
            ("labels SET body", "key", KEYS[1]),
            ("runs SET body", "at", AT + 1),
            ("parts SET body", "name", "b"),
            ("samples SET body", "key", waiting.key),
            ("traits SET body", "TRUE", True),
        ):
            writer.execute(f"UPDATE {column} = :body WHERE {where} = :value", {"body": b"\0\1", "value": value})
    for _ in range(2):
        worst = store.find(Query(worst=True, quantity=Quantity.FAITHFULNESS))
        assert [(row.verdict.key, row.damage is None) for row in worst] == [(key, key != KEYS[0]) for key in KEYS[::-1]]
        assert sorted(label.key for label in store.labels(0.0)) == sorted([KEYS[0], KEYS[2]])
        assert sorted(label.key for label in store.labels_after(None, 9)) == sorted([KEYS[0], KEYS[2]])
        assert [run.body["n"] for run in store.runs("canary", "docs", 9)] == [2, 0]
        assert [part.name for part in store.parts("app")] == ["a"]
    (leased,) = store.lease(JUDGE, 9, now=AT, seconds=1)
    assert (leased.damage is not None, store.labels_of(KEYS[1], 9), store.damaged()) == (True, [], 5)
    answers = [(row.scores is None, traits) for row, traits in store.answers(AnswerQuery(0.0, AT + 9))]
    assert answers == [(False, None)] * 3
    (seq,) = [entry.seq for entry in store.entries(Query(key=KEYS[1]))]
    for body in (b"\x01", pack({}), pack({"replies": None})):
        with store.engine.transaction() as writer:
            writer.execute("DELETE FROM replies")
            writer.insert("replies", [{"seq": seq, "key": KEYS[1], "body": body}])
        assert store.replies(seq) == ()


def test_runs_are_limited_by_their_size(store: SqliteStore) -> None:
    """Fewer are shown, one at least; in a state of 1 MiB the oldest runs are forgotten before every verdict is."""
    for number in range(5):
        record(store, "docs", number, n=number, answer="x" * (MAX_RUNS_BYTES // 3))
        record(store, "huge", number, n=number, answer="x" * (MAX_RUNS_BYTES * 4 // 3))
    assert [run.body["n"] for run in store.runs("canary", "docs", 9)] == [4, 3]
    assert [run.body["n"] for run in store.runs("canary", "huge", 9)] == [4]
    rng = random.Random(1)
    admit_and_settle(store, *(a_draw(f"r{number}") for number in range(5)))
    for number in range(30):
        record(store, "docs", number, hits=rng.randbytes(128 << 10).hex())
    store.prune(replace(AGES, bytes=1 << 20), now=AT + 60.0)
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
