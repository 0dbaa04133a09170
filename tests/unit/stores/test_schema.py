"""Schema: made once, newer ones refused, a failed migration leaves nothing."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.stores import OLD_STATES, admit_and_settle, as_left_by, balanced, found_by

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.ports import AnswerQuery, Part, Query, RecordedEvent, TrendQuery
from ragwatch.statistics.tally import Tally, violations
from ragwatch.statistics.trends import SPANS, TrendKind, start_of
from ragwatch.stores.migrations import scripts_of
from ragwatch.stores.sqlite import opening
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers


def test_settings_of_durability(tmp_path: Path) -> None:
    """WAL, a sync at every commit, space given back on demand, and the version noted."""
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        opening.prepare(connection)
        names = ("journal_mode", "synchronous", "auto_vacuum", "page_size", "user_version")
        settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    assert settings == ["wal", 2, 2, opening.PAGE_BYTES, opening.VERSION]


def _everything(connection: sqlite3.Connection) -> list[str]:
    """The whole database as SQL text, and its version."""
    return [*connection.iterdump(), str(opening.version_of(connection))]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A state as schema 1 left it."""
    return as_left_by(1, tmp_path / "state")


HELD = (
    (1, "4711", {JUDGE: 1}, "v1", ["second", "first"]),
    (2, "815", {JUDGE: 1, "other": 1}, "v2", ["third", "third", "second", "second", "first"]),
    (3, "99", {JUDGE: 1, "other": 3}, "v3", ["second", "first"]),
    (4, "44", {JUDGE: 2}, "v4", ["first"]),
    (5, "44", {JUDGE: 1, "other": 2}, "v4", ["second", "first", "first", "first"]),
    (6, "66", {JUDGE: 1}, "v5", ["third", "second", "first"]),
    (7, "77", {JUDGE: 1}, "v6", ["third", "second", "first", "first"]),
    (8, "77", {JUDGE: 1}, "v6", ["third", "second", "first", "first"]),
)
"""What a state of each schema before holds: schema, offset of the log, queue, detail of its event, ids of verdicts."""


DAMAGED = (5, 6)
"""Schemas of whose state some rows cannot be read."""


def test_t34_every_released_schema_has_a_fixture() -> None:
    """A new schema brings a state of the one before along, so that its upgrade is tried."""
    assert {path.name for path in OLD_STATES.glob("*.sql")} == {f"schema_{version}.sql" for version, *_ in HELD}
    assert len(HELD) == opening.VERSION - 1


def tables_of(path: Path) -> dict[str, object]:
    """Tables and indices of a database, with their columns."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'").fetchall()
        return {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in names}


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Tables and indices of a new database."""
    folder = tmp_path_factory.mktemp("new")
    SqliteStore(folder).close()
    return tables_of(folder / "ragwatch.db")


@pytest.mark.parametrize("held", HELD, ids=lambda held: f"schema {held[0]}")
def test_t34_an_upgrade_keeps_what_was_stored(tmp_path: Path, newest: dict[str, object], held: Any) -> None:
    """T34: offsets, queue, events, samples and verdicts; tables are those of a new database, and work goes on."""
    version, offset, pending, event, ids = held
    state = as_left_by(version, tmp_path / "state")
    with closing(SqliteStore(state)) as store:
        assert store.cursors("app") == {"log": f'{{"offset":{offset}}}'}
        assert (store.pending(), store.events(0.0)) == (pending, [RecordedEvent(AT, "release", event)])
        stored = store.find(Query())
        assert found_by(store) == ids
        assert version in DAMAGED or all(one.sample is not None and one.damage is None for one in stored)
        assert balanced(store)
        assert tables_of(state / "ragwatch.db") == newest
        waiting = store.lease(JUDGE, 9, now=AT, seconds=60)
        assert store.settle([a_verdict(draw) for draw in waiting]) == len(waiting) > 0
        assert balanced(store)


def test_t34_an_upgrade_from_schema_1_goes_on_counting(old: Path) -> None:
    """T34: each source has its cursor, counts and sequence numbers go on, and a known sample is known."""
    with closing(SqliteStore(old)) as store:
        assert store.cursors("other") == {"1:2": '{"offset":12}'}
        tallies = store.tallies()
        assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.DRAWN, ("search",)]) == (5, 3)
        assert tallies[Tally.ASSIGNED, (JUDGE,)] == 3
        assert [row.seq for row in store.window(0, 0.0, 9)] == [5, 6]
        assert store.lease(JUDGE, 9, now=AT, seconds=60) == [a_draw("third")]
        known = an_admission(a_draw("first"), a_draw("fourth"), tallies=Counter({(Tally.SEEN, ("app",)): 2}))
        assert store.admit(known) == 1
        assert violations(*store.tallies_and_pending()) == {}


def test_t34_a_failing_upgrade_leaves_the_old_state(old: Path) -> None:
    """A script that fails half way, or a disk that fills, changes nothing: the older program could still go on.

    Each version is a transaction of its own: when the second fails, the first stands, and the next start goes on.
    """
    first = scripts_of("sqlite")[0]
    with closing(sqlite3.connect(old / "ragwatch.db", isolation_level=None)) as connection:
        before = _everything(connection)
        connection.execute(f"PRAGMA max_page_count={connection.execute('PRAGMA page_count').fetchone()[0]}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            opening.prepare(connection)
        assert _everything(connection) == before
        connection.execute("PRAGMA max_page_count=1000000")
        with pytest.raises(sqlite3.OperationalError, match="no_such_thing"):
            opening.prepare(connection, (first, "DELETE FROM cursors; CREATE TABLE more (x); SELECT no_such_thing;"))
        assert _everything(connection) == before
        scripts = (first, "CREATE TABLE two (x);", "CREATE TABLE three (x);")
        with pytest.raises(sqlite3.OperationalError):
            opening.prepare(connection, (*scripts[:2], f"{scripts[2]} SELECT no_such_thing;"))
        assert opening.version_of(connection) == 2
        opening.prepare(connection, scripts)
        assert opening.version_of(connection) == 3
        assert connection.execute("SELECT cursor FROM cursors WHERE source = 'app'").fetchone() == ('{"offset":4711}',)


def test_t34_an_upgrade_from_schema_2_names_judges(tmp_path: Path) -> None:
    """T34: waiting draws wait since they were answered; stages name their judge, and are counted up in their rows."""
    with closing(SqliteStore(as_left_by(2, tmp_path / "state"))) as store:
        tallies = store.tallies()
        assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.N, ("faithfulness", "search", JUDGE)]) == (9, 2)
        assert {labels: value for (tally, labels), value in tallies.items() if tally is Tally.STAGE} == {
            ("search", JUDGE, "none"): 1,
            ("search", JUDGE, "generation"): 2,
            ("support", JUDGE, "generation"): 1,
        }
        assert tallies[Tally.FAULT, ("search", JUDGE, "generator")] == 2
        assert [row.probability for row in store.window(0, 0.0, 9)] == [0.5, 0.5, 0.5, 0.25, 0.25]
        assert store.overdue(AT + 4) == {("search", JUDGE, AT // 60): 2, ("search", "other", AT // 60): 4}
        assert store.lease("other", 9, now=AT, seconds=60, before=AT + 3) == []
        waiting = store.lease("other", 9, now=AT, seconds=60, before=AT + 4)
        assert [(draw.sample.id, draw.probability) for draw in waiting] == [("fourth", 0.25)]
        store.settle([a_verdict(draw) for draw in store.lease(JUDGE, 9, now=AT, seconds=60)])
        assert store.tallies()[Tally.STAGE, ("search", JUDGE, "none")] == 2
        rows = store.engine._writer.execute("SELECT name, json(labels) FROM tallies").fetchall()
        assert len(rows) == len(set(rows))


def test_t34_upgrades_from_schemas_3_and_4_keep_money_runs_and_feedback(tmp_path: Path) -> None:
    """T34: message batch, reservation, runs, states, feedback and received ids; later answers have traits."""
    with closing(SqliteStore(as_left_by(3, tmp_path / "state"))) as store:
        assert [batch.provider_id for batch in store.batches("other")] == ["provider-1"]
        assert (store.spent("other", 0.0).usd, store.recall("keeping")) == (0.5, {"at": AT, "doubted": False})
        assert [run.body for run in store.runs("canary", "docs", 9)] == [{"hits": 3}]
        assert len(store.lease("other", 9, now=AT, seconds=60)) == 2
        store.admit(replace(an_admission(), hold=[Part("t", "s", b"span", AT)]))
        assert [part.payload for part in store.parts("app")] == [b"span"]
    with closing(SqliteStore(as_left_by(4, tmp_path / "state of 4"))) as store:
        assert store.feedback_of(a_draw("first").key) == (1.0, AT + 5)
        assert (store.received("app", ["r-1"]), store.recall("keeping")) == ({"r-1"}, {"at": AT})
        draw = a_draw("fourth", at=AT + 9)
        admit_and_settle(store, draw)
        assert [traits is not None for _, traits in store.answers(AnswerQuery(0.0, AT + 10))] == [True, False]


def test_t34_an_upgrade_from_schema_5_sums_the_stored_scores(tmp_path: Path) -> None:
    """T34: charts begin with its scores (expectations, by judge), not damaged ones."""
    with closing(SqliteStore(as_left_by(5, tmp_path / "state"))) as store:
        assert violations(*store.tallies_and_pending()) == {}
        for span in SPANS:
            start = start_of(AT, span)
            rows = store.trends(TrendQuery(TrendKind.SCORE, "search", span, span, start, start + span))
            sums = {(one.series.judge, one.series.name): one.sums for one in rows}
            assert sums["embedded", "faithfulness"] == Addends.one(1.0, 1.0)
            assert sums["other", "faithfulness"] == Addends.one(1.0, 0.5)
            assert sums["other", "top_ranked_ignored"] == Addends.one(0.75, 0.5)
            assert "expected" not in {name for _, name in sums}


def test_t34_an_upgrade_from_schema_7_indexes_the_stored_scores(tmp_path: Path) -> None:
    """T34: the worst scores come first, other judges are seen, and no reply is stored."""
    with closing(SqliteStore(as_left_by(7, tmp_path / "state"))) as store:
        worst = Query(quantity=Quantity.FAITHFULNESS, worst=True)
        rows = [(one.verdict.id, one.verdict.judge) for one in store.find(worst)]
        assert rows == [("second", JUDGE), ("first", "other"), ("third", JUDGE), ("first", JUDGE)]
        ignored = replace(worst, quantity=Quantity.TOP_RANKED_IGNORED, above=0.5)
        assert found_by(store, ignored) == ["second", "first"]
        assert [one.verdict.judge for one in store.find(Query(disputed=True))] == ["other", JUDGE]
        assert found_by(store, Query(context="doc-9", stage="none")) == ["first"]


def test_t34_an_upgrade_from_schema_8_names_the_labels_of_counters(tmp_path: Path) -> None:
    """T34: every stored counter names its labels, all are read as before, and what is counted adds to them."""
    state = as_left_by(8, tmp_path / "state")
    with closing(sqlite3.connect(state / "ragwatch.db")) as connection:
        stored = connection.execute("SELECT name, labels, value FROM tallies").fetchall()
    before = {(Tally(name), tuple(json.loads(labels))): value for name, labels, value in stored}
    with closing(SqliteStore(state)) as store:
        assert store.tallies() == before
        assert store.engine._writer.execute("SELECT COUNT(*) FROM tallies WHERE label_names IS NULL").fetchone() == (0,)
        store.settle([a_verdict(draw) for draw in store.lease(JUDGE, 9, now=AT, seconds=60)])
        assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == before[Tally.JUDGED, ("search", JUDGE)] + 1
