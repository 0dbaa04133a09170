"""The SQLite store under bad luck: full disks, odd paths, many threads, long readers, and too much to keep."""

import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import blake2b
from itertools import product
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE
from support.stores import ONE_DAY, admit_and_settle

from ragwatch.errors import StoreError
from ragwatch.model.sample import Draw
from ragwatch.ports import Query, RecordedEvent, Retention
from ragwatch.statistics.tally import Tally
from ragwatch.stores.settling import MAX_LEASED_CHARS
from ragwatch.stores.sqlite import opening
from ragwatch.stores.sqlite.opening import TEMPORARY
from ragwatch.stores.sqlite.store import Options, SqliteStore, build


def noise(seed: str) -> str:
    """Some 20 KB that compress badly."""
    return "".join(blake2b(f"{seed}{index}".encode()).hexdigest() for index in range(160))


def big(name: str, *, at: float = AT) -> Draw:
    """A draw of some 10 KB on disk."""
    return a_draw(name, at=at, contexts=(noise(name), "Dogs bark."))


def pragma(store: SqliteStore, setting: str) -> None:
    """Set a PRAGMA of the writer: `max_page_count=1` is a full disk, `query_only=ON` one that is read-only."""
    store.engine._writer.execute(f"PRAGMA {setting}")


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


def test_odd_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reader and writer open the same file, whatever its path holds; a relative one is below where we stand."""
    monkeypatch.chdir(tmp_path)
    for name in ("with space", "q?mode=memory", "hash#tag", "per%20cent", "ümlaut", "here"):
        with closing(SqliteStore(Path(name) if name == "here" else tmp_path / name)) as store:
            store.admit(an_admission(a_draw("a")))
            assert store.pending() == {JUDGE: 1}, name
        assert (tmp_path / name / "ragwatch.db").exists()


@pytest.mark.parametrize(
    ("harm", "cure", "message"),
    [
        ("max_page_count=1", f"max_page_count={1 << 30}", "full; free some space"),
        ("query_only=ON", "query_only=OFF", "readonly.*; it must be on a disk that this user may write"),
    ],
)
def test_a_disk_that_refuses_keeps_all_and_recovers(store: SqliteStore, harm: str, cure: str, message: str) -> None:
    """Full or read-only, it is a StoreError with advice that leaves everything as it was; later the same batch goes in.

    What is there can be read meanwhile.
    """
    store.admit(an_admission(a_draw("a"), cursor="1"))
    before = (store.tallies(), store.pending(), store.cursors("app"))
    pragma(store, harm)
    seen = Counter({(Tally.SEEN, ("app",)): 50})
    batch = an_admission(*(big(f"b{index}") for index in range(50)), cursor="2", tallies=seen)
    rows = [a_verdict(a_draw("a"), an_evidence(a_claim(text="".join(map(noise, "abcdef")))))]
    for write in (lambda: store.admit(batch), lambda: store.admit(batch), lambda: store.settle(rows)):
        with pytest.raises(StoreError, match=rf"state: cannot write: .*{message}"):
            write()
        assert (store.tallies(), store.pending(), store.cursors("app")) == before
    pragma(store, cure)
    assert store.admit(batch) == 50
    assert store.settle(rows) == 1
    assert (store.cursors("app"), store.pending()) == ({"log": "2"}, {JUDGE: 50})


def test_full_disk_while_recording_and_forgetting(store: SqliteStore) -> None:
    """An event that does not fit is told and not half kept; forgetting needs no room of the file, and makes some."""
    for index in range(40):
        admit_and_settle(store, big(f"b{index}"))
    pragma(store, "max_page_count=1")
    with pytest.raises(StoreError, match=r"cannot write: .*full; free some space"):
        store.record(RecordedEvent(AT, "note", noise("long") * 10))
    assert store.events(0.0) == []
    assert store.prune(ONE_DAY, now=AT + 1e7) == 40
    store.record(RecordedEvent(AT, "note", "short"))
    assert len(store.events(0.0)) == 1


@pytest.mark.costly
def test_many_threads(store: SqliteStore) -> None:
    """Intake, two judges and readers at once: nothing lost, nothing counted twice."""
    names = [f"r{index}" for index in range(60)]
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
        assert [future.result() for future in judging] == [60, 60, 60]
    assert store.pending() == {}
    assert store.tallies()[Tally.DRAWN, ("search",)] == 60


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


PARTS = product(("ra", "ko", "mil"), ("", "ne", "st", "vor", "ti"), ("n", "per", "ling", "de", "os", "ung", "a", "ert"))
WORDS = ["".join(parts) for parts in PARTS]
NOUNS = [a + b for a in WORDS[:40] for b in WORDS[40:]]
SAMPLE_CHARS = 6000
MANY = 2000


def prose(rng: random.Random, chars: int) -> str:
    """Words that recur as those of a language do (Zipf): it compresses like text, not like noise."""
    words = (NOUNS[min(int(rng.paretovariate(0.6)), len(NOUNS)) - 1] for _ in range(chars // 6))
    return " ".join(words)[:chars]


def usual(rng: random.Random, index: int) -> Draw:
    """A sample of some 6 KB: five passages and an answer."""
    contexts = tuple(prose(rng, (SAMPLE_CHARS - 500) // 5) for _ in range(5))
    return a_draw(f"r{index}", at=AT + index, contexts=contexts, answer=prose(rng, 400), question=prose(rng, 100))


GOOD = an_evidence((1, 0, 0, 0, 0), (0, 1, 0, 0, 0), relevant=(True, True, False, False, False))
BAD = an_evidence((0, 0, 0, 0, 0), relevant=(True, True, False, False, False))


def fill(store: SqliteStore, count: int) -> None:
    """Admit and settle so many, twenty at a time; every tenth is faulty."""
    rng = random.Random(count)
    for start in range(0, count, 20):
        read = (a_verdict(usual(rng, start + place), GOOD if place % 10 else BAD) for place in range(20))
        admit_and_settle(store, *read)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """A state of `MANY` usual samples, closed, and how long its log was before."""
    state = tmp_path_factory.mktemp("size")
    with closing(SqliteStore(state)) as store:
        fill(store, MANY)
        logged = (state / "ragwatch.db-wal").stat().st_size
        assert store.engine._writer.execute("PRAGMA journal_size_limit").fetchone() == (opening.WAL_BYTES,)
        store.engine.checkpoint()
    return state, logged


def on_disk(state: Path) -> int:
    """Bytes of the database and its log."""
    return sum(path.stat().st_size for path in state.glob("ragwatch.db*") if not path.name.endswith("-shm"))


@pytest.mark.costly
@pytest.mark.uncounted
def test_a_usual_sample_takes_some_three_kilobytes(full: tuple[Path, int]) -> None:
    """6 KB of text with its verdict and index entries, over 2,000 rows, is at most 3.5 KB on disk.

    The log is no longer than what it is cut back to meanwhile.
    """
    size = on_disk(full[0]) / MANY
    print(f"\n{size:.0f} bytes on disk for a sample of {SAMPLE_CHARS} characters with its verdict")
    assert size <= 3500
    assert full[1] <= opening.WAL_BYTES // 2


@pytest.mark.uncounted
def test_retention_shrinks_the_file_and_failures_outlive(full: tuple[Path, int]) -> None:
    """Bytes taken back are bytes on disk, not only pages marked free; successes go first, the oldest of them."""
    state, _ = full
    with closing(SqliteStore(state)) as store:
        before = on_disk(state)
        allowed = before * 6 // 10
        deleted = store.prune(Retention(1e6, 1e6, allowed), now=AT)
        assert MANY // 2 <= deleted <= MANY * 3 // 4  # words are freed when their index is merged
        assert on_disk(state) <= allowed + opening.PAGE_BYTES
        assert store.engine._pragma("freelist_count") == 0
        assert len(store.find(Query(stage="generation", limit=MANY))) == MANY // 10
        left = [stored.verdict.at for stored in store.find(Query(stage="none", limit=MANY))]
        assert (len(left), left[0]) == (MANY * 9 // 10 - deleted, AT + MANY - 1)


def test_a_file_that_cannot_be_shrunk_ends(store: SqliteStore) -> None:
    """A database without a page map keeps its size; pruning it ends all the same."""
    fill(store, 20)
    store.engine._writer.executescript("PRAGMA auto_vacuum=NONE; VACUUM;")
    assert store.prune(Retention(1e-9, 1e-9, 1 << 40), now=AT + 1e7) == 20
    assert store.engine._pragma("freelist_count") > 0


@pytest.mark.costly
@pytest.mark.uncounted
def test_a_long_reader_does_not_hold_up_the_writer(store: SqliteStore, tmp_path: Path) -> None:
    """Two hundred admissions go on under a reader that holds one instant all the while; pruning does not wait."""
    fill(store, 20)
    with closing(store.engine.pages.walk("SELECT key FROM samples")) as walk:
        next(walk)
        for index in range(200):
            store.admit(an_admission(a_draw(f"new{index}"), cursor=str(index)))
        assert store.pending() == {"embedded": 200}
        assert store.prune(ONE_DAY, now=AT + 1e7) == 20
        assert len(list(walk)) == 19  # it saw its instant all along
    store.engine.checkpoint()
    assert (tmp_path / "state" / "ragwatch.db-wal").stat().st_size == 0


def test_a_search_on_pages_does_not_hold_up_the_loops(store: SqliteStore) -> None:
    """While a page's search has the turn, what loops read answers."""
    fill(store, 20)
    with store.engine.pages._turn:
        assert len(store.window(0, 0.0, 100)) == 20
        assert store.tallies_and_pending()[1] == {}
        assert store.lease("embedded", 1, now=AT, seconds=1) == []


def test_a_silent_service_costs_nothing(store: SqliteStore) -> None:
    """A window that nothing is young enough for does not look at row after row, every few seconds for ever."""
    admit_and_settle(store, *(a_draw(f"r{number}", at=AT + number) for number in range(200)))
    turns: list[None] = []
    store.engine._reader._connection.set_progress_handler(lambda: turns.append(None), 10)
    assert store.window(0, AT + 1e6, 1000) == []
    assert len(turns) < 20
    assert len(store.window(0, AT, 1000)) == 200
    assert len(turns) > 100


def test_a_lease_ends_when_texts_are_large_together(store: SqliteStore) -> None:
    """However many draws a judge asks for, it is given a few megabytes at a time, and all of them in the end."""
    store.admit(an_admission(*(a_draw(name, answer="x" * (MAX_LEASED_CHARS // 2)) for name in "abcdefg")))
    taken = [len(store.lease("embedded", 32, now=AT, seconds=60)) for _ in range(4)]
    assert taken == [2, 2, 2, 1]
