"""Schema: made once, newer ones refused, a failed migration leaves nothing."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission

from ragwatch.core.estimate import Addends
from ragwatch.core.tally import Tally, violations
from ragwatch.core.trends import SPANS, TrendKind, start_of
from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import AnswerQuery, Part, Query, RecordedEvent, TrendQuery
from ragwatch.stores.sqlite import schema
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

OLD = Path(__file__).parents[2] / "data" / "state"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database that does not exist yet."""
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as opened:
        yield opened


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """One setting of the database."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_settings_of_durability(connection: sqlite3.Connection) -> None:
    """WAL, a sync at every commit, space given back on demand, and the version noted."""
    schema.prepare(connection)
    settings = {name: pragma(connection, name) for name in ("journal_mode", "synchronous", "auto_vacuum", "page_size")}
    assert settings == {"journal_mode": "wal", "synchronous": 2, "auto_vacuum": 2, "page_size": schema.PAGE_BYTES}
    assert pragma(connection, "user_version") == schema.VERSION


def test_preparing_twice_is_once(connection: sqlite3.Connection) -> None:
    """A database that is up to date is left alone."""
    schema.prepare(connection)
    connection.execute("INSERT INTO events VALUES (1.0, 'note', 'kept')")
    schema.prepare(connection)
    assert connection.execute("SELECT detail FROM events").fetchall() == [("kept",)]


def test_newer_schema_is_refused_with_advice(connection: sqlite3.Connection) -> None:
    """An older program must not write into a newer database."""
    schema.prepare(connection)
    connection.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    known, newer = schema.VERSION, schema.VERSION + 1
    advice = rf"newer ragwatch \(schema {newer}, this one knows {known}\); run that version, or point"
    with pytest.raises(StoreError, match=advice):
        schema.prepare(connection)


def test_a_migration_is_one_transaction(connection: sqlite3.Connection) -> None:
    """When a table is in the way, nothing of the script stays behind."""
    connection.execute("CREATE TABLE events (mine INTEGER)")
    with pytest.raises(sqlite3.OperationalError):
        schema.prepare(connection)
    assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("events",)]
    assert pragma(connection, "user_version") == 0


def _everything(connection: sqlite3.Connection) -> list[str]:
    """The whole database as SQL text, and its version."""
    return [*connection.iterdump(), str(schema.version_of(connection))]


def as_left_by(version: int, state: Path) -> Path:
    """A database as that schema left it."""
    scripts = files("ragwatch.stores.sqlite")
    state.mkdir()
    path = state / "ragwatch.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;")
        for script in ("schema.sql", *(f"schema_{number}.sql" for number in range(2, version + 1))):
            connection.executescript(scripts.joinpath(script).read_text(encoding="utf-8"))
        connection.executescript((OLD / f"schema_{version}.sql").read_text(encoding="utf-8"))
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A state as schema 1 left it."""
    return as_left_by(1, tmp_path / "state")


def test_t34_every_released_schema_has_a_fixture() -> None:
    """A new schema brings a state of the one before along, so that its upgrade is tried."""
    assert {path.name for path in OLD.glob("*.sql")} == {
        f"schema_{version}.sql" for version in range(1, schema.VERSION)
    }


def test_t34_an_upgrade_keeps_offsets_and_everything_else(old: Path) -> None:
    """T34: cursors, counts, queue, verdicts, samples and events of schema 1 are there; books balance, work goes on."""
    with closing(SqliteStore(old.parent)) as store:
        assert store.cursors("app") == {"log": '{"offset":4711}'}
        assert store.cursors("other") == {"1:2": '{"offset":12}'}
        tallies, pending = store.tallies_and_pending()
        assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.DRAWN, ("search",)], pending) == (5, 3, {JUDGE: 1})
        assert (tallies[Tally.ASSIGNED, (JUDGE,)], violations(tallies, pending)) == (3, {})
        assert [stored.verdict.id for stored in store.find(Query())] == ["second", "first"]
        assert all(stored.sample is not None for stored in store.find(Query()))
        assert [row.seq for row in store.window(0, 0.0, 9)] == [5, 6]
        assert store.events(0.0) == [RecordedEvent(AT, "release", "v1")]
        (waiting,) = store.lease(JUDGE, 9, now=AT, seconds=60)
        assert (waiting, store.settle([a_verdict(waiting)])) == (a_draw("third"), 1)
        known = an_admission(a_draw("first"), a_draw("fourth"), tallies=Counter({(Tally.SEEN, ("app",)): 2}))
        assert store.admit(known) == 1
        assert violations(*store.tallies_and_pending()) == {}


def test_t34_a_failing_upgrade_leaves_the_old_state(old: Path, tmp_path: Path) -> None:
    """A script that fails half way, or a disk that fills, changes nothing: the older program could still go on."""
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        before = _everything(connection)
        connection.execute(f"PRAGMA max_page_count={connection.execute('PRAGMA page_count').fetchone()[0]}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            schema.prepare(connection)
        assert _everything(connection) == before
        connection.execute("PRAGMA max_page_count=1000000")
        scripts = tmp_path / "scripts"
        scripts.mkdir()
        (scripts / "schema_2.sql").write_text("DELETE FROM cursors; CREATE TABLE more (x); SELECT no_such_thing;")
        with pytest.raises(sqlite3.OperationalError, match="no_such_thing"):
            schema.prepare(connection, scripts=scripts, version=2)
        assert _everything(connection) == before
        schema.prepare(connection)
        assert schema.version_of(connection) == schema.VERSION


def test_t34_several_upgrades_in_a_row(old: Path, tmp_path: Path) -> None:
    """Each version is a transaction of its own: when the second fails, the first stands, and the next start goes on."""
    (tmp_path / "schema_2.sql").write_text("CREATE TABLE two (x);")
    (tmp_path / "schema_3.sql").write_text("CREATE TABLE three (x); SELECT no_such_thing;")
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            schema.prepare(connection, scripts=tmp_path, version=3)
        assert schema.version_of(connection) == 2
        (tmp_path / "schema_3.sql").write_text("CREATE TABLE three (x);")
        schema.prepare(connection, scripts=tmp_path, version=3)
        assert schema.version_of(connection) == 3
        assert connection.execute("SELECT cursor FROM cursors WHERE source = 'app'").fetchone() == ('{"offset":4711}',)


def test_t34_an_upgrade_from_schema_2_keeps_everything(tmp_path: Path) -> None:
    """T34: what schema 2 held is there; waiting draws wait since they were answered; stages name their judge."""
    with closing(SqliteStore(as_left_by(2, tmp_path / "state").parent)) as store:
        assert store.cursors("app") == {"log": '{"offset":815}'}
        tallies, pending = store.tallies_and_pending()
        assert (pending, violations(tallies, pending)) == ({"embedded": 1, "other": 1}, {})
        assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.N, ("faithfulness", "search", JUDGE)]) == (9, 2)
        assert {labels: value for (tally, labels), value in tallies.items() if tally is Tally.STAGE} == {
            ("search", JUDGE, "none"): 1,
            ("search", JUDGE, "generation"): 2,
            ("support", JUDGE, "generation"): 1,
        }
        assert tallies[Tally.FAULT, ("search", JUDGE, "generator")] == 2
        assert [row.probability for row in store.window(0, 0.0, 9)] == [0.5, 0.5, 0.5, 0.25, 0.25]
        assert (len(store.find(Query())), store.events(0.0)) == (5, [RecordedEvent(AT, "release", "v2")])
        assert store.lease("other", 9, now=AT, seconds=60, before=AT + 3) == []
        waiting = store.lease("other", 9, now=AT, seconds=60, before=AT + 4)
        assert [(draw.sample.id, draw.probability) for draw in waiting] == [("fourth", 0.25)]
        assert store.overdue(AT + 4) == {("search", JUDGE, AT // 60): 2, ("search", "other", AT // 60): 4}


def test_t34_an_upgrade_from_schema_3_keeps_everything(tmp_path: Path) -> None:
    """T34: what schema 3 held is there: queue, message batch, reservation, runs and states; parts can be held."""
    with closing(SqliteStore(as_left_by(3, tmp_path / "state").parent)) as store:
        assert (store.cursors("app"), store.events(0.0)) == (
            {"log": '{"offset":99}'},
            [RecordedEvent(AT, "release", "v3")],
        )
        tallies, pending = store.tallies_and_pending()
        assert (pending, violations(tallies, pending)) == ({JUDGE: 1, "other": 3}, {})
        assert [batch.provider_id for batch in store.batches("other")] == ["provider-1"]
        assert (store.spent("other", 0.0).usd, store.recall("keeping")) == (0.5, {"at": AT, "doubted": False})
        assert [run.body for run in store.runs("canary", "docs", 9)] == [{"hits": 3}]
        assert len(store.lease("other", 9, now=AT, seconds=60)) == 2
        store.admit(replace(an_admission(), hold=[Part("t", "s", b"span", AT)]))
        assert [part.payload for part in store.parts("app")] == [b"span"]


def test_t34_an_upgrade_from_schema_4_keeps_everything(tmp_path: Path) -> None:
    """T34: what schema 4 held is there; earlier answers have no traits, and later ones do."""
    with closing(SqliteStore(as_left_by(4, tmp_path / "state").parent)) as store:
        assert (store.cursors("app"), store.pending()) == ({"log": '{"offset":44}'}, {JUDGE: 2})
        (first,) = store.find(Query())
        assert (first.verdict.id, store.feedback_of(first.verdict.key)) == ("first", (1.0, AT + 5))
        assert (store.received("app", ["r-1"]), store.recall("keeping")) == ({"r-1"}, {"at": AT})
        draw = a_draw("fourth", at=AT + 9)
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw)])
        assert [traits is not None for _, traits in store.answers(AnswerQuery(0.0, AT + 10))] == [True, False]


def test_t34_an_upgrade_from_schema_5_sums_the_stored_scores(tmp_path: Path) -> None:
    """T34: what schema 5 held is there; charts begin with its scores (expectations, by judge), not damaged ones."""
    with closing(SqliteStore(as_left_by(5, tmp_path / "state").parent)) as store:
        assert (store.cursors("app"), store.events(0.0)) == (
            {"log": '{"offset":44}'},
            [RecordedEvent(AT, "release", "v4")],
        )
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
    """T34: what schema 7 held is there; the worst scores come first, other judges are seen, and no reply is stored."""
    with closing(SqliteStore(as_left_by(7, tmp_path / "state").parent)) as store:
        assert (store.cursors("app"), store.pending()) == ({"log": '{"offset":77}'}, {JUDGE: 1})
        worst = Query(quantity=Quantity.FAITHFULNESS, worst=True)
        assert [(one.verdict.id, one.verdict.judge) for one in store.find(worst)] == [
            ("second", JUDGE),
            ("first", "other"),
            ("third", JUDGE),
            ("first", JUDGE),
        ]
        ignored = replace(worst, quantity=Quantity.TOP_RANKED_IGNORED, above=0.5)
        assert [one.verdict.id for one in store.find(ignored)] == ["second", "first"]
        assert [one.verdict.judge for one in store.find(Query(disputed=True))] == ["other", JUDGE]
        assert [one.verdict.id for one in store.find(Query(context="doc-9", stage="none"))] == ["first"]


def test_t34_counts_go_on_in_the_rows_of_before(tmp_path: Path) -> None:
    """A tally whose labels an upgrade wrote is the one that is counted up from now on, not a second of its name."""
    with closing(SqliteStore(as_left_by(2, tmp_path / "state").parent)) as store:
        store.settle([a_verdict(draw) for draw in store.lease(JUDGE, 9, now=AT, seconds=60)])
        assert store.tallies()[Tally.STAGE, ("search", JUDGE, "none")] == 2
        rows = store.engine._writer.execute("SELECT name, json(labels) FROM tallies").fetchall()
        assert len(rows) == len(set(rows))


@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_t34_an_upgraded_database_is_like_a_new_one(tmp_path: Path, version: int) -> None:
    """Tables and indices are the same whichever way a database came to its schema."""
    path = as_left_by(version, tmp_path / "state")
    with closing(SqliteStore(path.parent)), closing(SqliteStore(tmp_path / "new")):
        schemas = []
        for database in (path, tmp_path / "new" / "ragwatch.db"):
            with closing(sqlite3.connect(database)) as connection:
                names = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'").fetchall()
                schemas.append({name: connection.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in names})
        assert schemas[0] == schemas[1]


def test_t34_an_upgrade_from_schema_8_names_the_labels_of_counters(tmp_path: Path) -> None:
    """T34: every stored counter names its labels, all are read as before, and what is counted adds to them."""
    path = as_left_by(8, tmp_path / "state")
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT name, labels, value FROM tallies").fetchall()
    before = {(Tally(name), tuple(json.loads(labels))): value for name, labels, value in stored}
    with closing(SqliteStore(path.parent)) as store:
        assert store.tallies() == before
        assert store.engine._writer.execute("SELECT COUNT(*) FROM tallies WHERE label_names IS NULL").fetchone() == (0,)
        store.settle([a_verdict(draw) for draw in store.lease(JUDGE, 9, now=AT, seconds=60)])
        assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == before[Tally.JUDGED, ("search", JUDGE)] + 1
