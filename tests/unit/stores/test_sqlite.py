"""The SQLite store under bad luck: full disks, damaged files, odd paths, many threads, and too much to keep."""

from __future__ import annotations

import stat
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE

from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tally
from ragwatch.core.trends import TrendKind
from ragwatch.daemon.state_secret import state_secret
from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import AnswerQuery, Query, RecordedEvent, Retention, TrendQuery
from ragwatch.stores.answer_terms import asked_terms
from ragwatch.stores.lock import worker_name
from ragwatch.stores.queries import answers_statement
from ragwatch.stores.settling import SETTLED
from ragwatch.stores.sqlite.disk import TEMPORARY
from ragwatch.stores.sqlite.opening import MARKER
from ragwatch.stores.sqlite.sqlite_queries import SqliteQueries
from ragwatch.stores.sqlite.store import Options, SqliteStore, build
from ragwatch.stores.trends import HIGHEST, MERGED, parameters_of


def noise(seed: str) -> str:
    """Some 20 KB that compress badly."""
    return "".join(blake2b(f"{seed}{index}".encode()).hexdigest() for index in range(160))


def big(name: str, *, at: float = AT) -> Draw:
    """A draw of some 10 KB on disk."""
    return a_draw(name, at=at, contexts=(noise(name), "Dogs bark."))


def limit(store: SqliteStore, pages: int) -> None:
    """Leave the database so many pages, as a full disk would."""
    store.engine._writer.execute(f"PRAGMA max_page_count={pages}")


def test_x17_files_are_ours_alone(tmp_path: Path) -> None:
    """The database and its WAL have mode 0600 from the first byte on."""
    state = tmp_path / "state"
    store = build(Options(), state)
    store.record(RecordedEvent(AT, "note", ""))
    worker_name(state)
    state_secret(state)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()}
    assert modes.pop(TEMPORARY) == 0o700
    assert {"ragwatch.db", "ragwatch.db-wal", "ragwatch.lock", MARKER, "ragwatch.worker"} <= set(modes)
    assert set(modes.values()) == {0o600}
    store.close()
    for path in (state / MARKER, state / "ragwatch.worker"):
        path.chmod(0o644)  # as an earlier version made it
    build(Options(), state).close()
    worker_name(state)
    assert {stat.S_IMODE((state / name).stat().st_mode) for name in (MARKER, "ragwatch.worker")} == {0o600}


def test_what_sqlite_sorts_stays_in_the_state(tmp_path: Path) -> None:
    """A sort that does not fit in memory is written below the state directory, not to /var/tmp."""
    state = tmp_path / "it's a state"
    store = build(Options(), state)
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    rows = store.engine._reader.walk(f"{many} SELECT hex(randomblob(200)) AS x FROM n ORDER BY x")  # noqa: S608 - no value
    next(rows)
    opened = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    written = [path for path in opened if "etilqs_" in path]
    rows.close()
    store.close()
    assert written
    assert all(path.startswith(f"{state / TEMPORARY}/") for path in written)


@pytest.mark.parametrize("name", ["with space", "q?mode=memory", "hash#tag", "per%20cent", "ümlaut"])
def test_odd_paths(tmp_path: Path, name: str) -> None:
    """Reader and writer open the same file, whatever its path holds."""
    store = SqliteStore(tmp_path / name)
    store.admit(an_admission(a_draw("a")))
    assert store.pending() == {JUDGE: 1}
    store.close()
    assert (tmp_path / name / "ragwatch.db").exists()


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`state: here` is a directory below the one we stand in."""
    monkeypatch.chdir(tmp_path)
    SqliteStore(Path("here")).close()
    assert (tmp_path / "here" / "ragwatch.db").exists()


def test_full_disk_writes_nothing_and_recovers(store: SqliteStore) -> None:
    """A full disk is a StoreError that leaves everything as it was; with room again the same batch goes in."""
    store.admit(an_admission(a_draw("a"), cursor="1"))
    before = (store.tallies(), store.pending(), store.cursors("app"))
    limit(store, 1)
    batch = an_admission(
        *(big(f"b{index}") for index in range(50)), cursor="2", tallies=Counter({(Tally.SEEN, ("app",)): 50})
    )
    for _ in range(2):
        with pytest.raises(StoreError, match=r"state: cannot write: .*full"):
            store.admit(batch)
        assert (store.tallies(), store.pending(), store.cursors("app")) == before
    limit(store, 1 << 30)
    assert store.admit(batch) == 50
    assert store.cursors("app") == {"log": "2"}


def test_full_disk_while_settling(store: SqliteStore) -> None:
    """Verdicts that could not be written are not counted, and their draws are still pending."""
    draws = [a_draw(f"b{index}") for index in range(30)]
    store.admit(an_admission(*draws))
    rows = [a_verdict(draw, an_evidence(a_claim(text=noise(draw.key)))) for draw in draws]
    limit(store, 1)
    with pytest.raises(StoreError, match="full"):
        store.settle(rows)
    assert store.pending() == {JUDGE: 30}
    limit(store, 1 << 30)
    assert store.settle(rows) == 30
    assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == 30


def test_full_disk_while_recording_and_forgetting(store: SqliteStore) -> None:
    """An event that does not fit is told and not half kept; forgetting needs no room of the file, and makes some."""
    for index in range(40):
        draw = big(f"b{index}")
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw)])
    limit(store, 1)
    with pytest.raises(StoreError, match=r"cannot write: .*full; free some space"):
        store.record(RecordedEvent(AT, "note", noise("long") * 10))
    assert store.events(0.0) == []
    assert store.prune(Retention(1, 1, 1 << 40), now=AT + 1e7) == 40
    store.record(RecordedEvent(AT, "note", "short"))
    assert len(store.events(0.0)) == 1


def test_a_size_that_cannot_be_reached_ends(store: SqliteStore) -> None:
    """What waits for a judge is never taken: pruning ends when no verdict is left."""
    store.admit(an_admission(big("a"), big("b")))
    assert store.prune(Retention(1, 1, 1), now=AT + 1e9) == 0
    assert store.pending() == {JUDGE: 2}


@pytest.mark.costly
def test_many_threads(store: SqliteStore) -> None:
    """Intake, two judges and readers at once: nothing lost, nothing counted twice."""
    names = [f"r{index}" for index in range(120)]
    judges = (JUDGE, "second", "third")

    def admit(part: int) -> None:
        for name in names[part::3]:
            store.admit(an_admission(a_draw(name), judges=judges))

    def judge(name: str) -> int:
        done = idle = 0
        while done < len(names) and idle < 5000:
            draws = store.lease(name, 7, now=AT, seconds=60)
            idle = 0 if draws else idle + 1
            done += store.settle([a_verdict(draw, reading=a_reading(name)) for draw in draws])
            store.find(Query(limit=3))
            store.tallies()
        return done

    with ThreadPoolExecutor(6) as pool:
        admitting = [pool.submit(admit, part) for part in range(3)]
        judging = [pool.submit(judge, name) for name in judges]
        for future in admitting:
            future.result()
        assert [future.result() for future in judging] == [120, 120, 120]
    assert store.pending() == {}
    assert store.tallies()[Tally.DRAWN, ("search",)] == 120


def test_a_closed_store_refuses(tmp_path: Path) -> None:
    """After closing, reading and writing are errors of the store, not of sqlite3."""
    store = SqliteStore(tmp_path)
    store.close()
    with pytest.raises(StoreError, match="cannot read"):
        store.tallies()
    with pytest.raises(StoreError, match="cannot read"):
        store.tallies_and_pending()
    with pytest.raises(StoreError, match="cannot write"):
        store.record(RecordedEvent(AT, "note", ""))
    with pytest.raises(StoreError, match="cannot free space"):
        store.engine.checkpoint()


def test_closing_waits_for_what_is_under_way(tmp_path: Path) -> None:
    """Threads outlive the loops that began them: connections are closed once nothing uses them any more."""
    with closing(SqliteStore(tmp_path / "state")) as store:
        store.admit(an_admission(a_draw("a"), a_draw("b")))
    for of_pages in (False, True):
        store = SqliteStore(tmp_path / "state")
        walk = (store.engine.pages if of_pages else store.engine).walk("SELECT key FROM samples")
        next(walk)
        ending = threading.Thread(target=store.close)
        ending.start()
        ending.join(0.1)
        assert ending.is_alive()
        assert len(list(walk)) == 1
        ending.join(DEADLINE)


def plan_of(store: SqliteStore, query: Query) -> list[str]:
    """Steps of a search."""
    sql, parameters = SqliteQueries.full(query, asked_terms(query, None))
    return [str(row[-1]) for row in store.engine.rows(f"EXPLAIN QUERY PLAN {sql}", parameters)]


def test_labels_and_other_judges_are_looked_up_by_index(store: SqliteStore) -> None:
    """A search for labelled or disputed answers goes through time; rows of other judges are near by in an index."""
    for query in (Query(labelled=True), Query(disputed=True), Query(labelled=False, disputed=False)):
        plan = plan_of(store, query)
        assert any("SCAN v USING INDEX verdicts_at" in step for step in plan)
        inner = [step for step in plan if step.startswith(("SEARCH l ", "SEARCH o "))]
        assert {step.partition(" USING ")[2] for step in inner} <= {
            "PRIMARY KEY (key=?)",
            "COVERING INDEX verdicts_answer (at=? AND key=?)",
        }
        assert inner
        assert not [step for step in plan if "TEMP" in step]


def test_the_worst_scores_are_read_in_the_order_of_their_index(store: SqliteStore) -> None:
    """Nothing is sorted, and bounds of the score are bounds of the index, also where low is good.

    Only what the index of searches finds is sorted, and texts are read of what is returned.
    """
    worst = Query(quantity=Quantity.CONTRADICTION, worst=True, route="search", since=1.0)
    plan = plan_of(store, worst)
    assert "SEARCH x USING PRIMARY KEY (name=?)" in plan
    assert "SEARCH v USING INDEX verdicts_at (at>?)" in plan
    assert not [step for step in plan if "TEMP" in step]
    assert plan_of(store, replace(worst, below=0.5, above=0.0))[0] == (
        "SEARCH x USING PRIMARY KEY (name=? AND rank>? AND rank<?)"
    )
    for indexed in (replace(worst, context="doc-1"), replace(worst, words=(("cats",),))):
        plan = plan_of(store, indexed)
        assert "MATERIALIZE m" in plan
        assert [number for number, step in enumerate(plan) if step.startswith("SEARCH s ")] == [len(plan) - 2]
        assert "SEARCH v USING INDEX verdicts_answer (at=? AND key=?)" in plan


def test_settling_looks_up_its_draws(store: SqliteStore) -> None:
    """However long the queue of the judge is."""
    with store.engine.transaction() as writer:
        rows = writer.rows(f"EXPLAIN QUERY PLAN {SETTLED}", {"judge": JUDGE, "keys": ["a"]})
    assert "SEARCH w USING COVERING INDEX sqlite_autoindex_work_1 (judge=? AND key=?)" in [row[-1] for row in rows]


def test_trends_are_read_by_index(store: SqliteStore) -> None:
    """Sums and peaks of a place and a time are found by their key, however many places and hours there are."""
    query = TrendQuery(TrendKind.SCORE, "search", 3600, 86400, since=0, until=86400)
    for sql, table in ((MERGED, "trends"), (HIGHEST, "peaks")):
        plan = store.engine.rows(f"EXPLAIN QUERY PLAN {sql}", parameters_of(query))
        assert (
            f"SEARCH {table} USING PRIMARY KEY (span=? AND kind=? AND place=? AND start>? AND start<?)" in plan[0][-1]
        )


def test_answers_are_read_by_index(store: SqliteStore) -> None:
    """Time, route and cursor scan no table."""
    sql, parameters = answers_statement(AnswerQuery(0.0, AT, "search", "embedded", (AT, 7)))
    plan = [row[-1] for row in store.engine.rows(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert any("verdicts_at" in step for step in plan)
    assert not [step for step in plan if step.startswith(("SCAN v", "SCAN t ")) or "TEMP" in step]
