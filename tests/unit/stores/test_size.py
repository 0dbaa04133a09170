"""What a sample takes on disk, what retention gives back, and that readers never hold up the writer."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.kit import AT, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE

from ragwatch.core.sample import Draw
from ragwatch.ports import Query, Retention
from ragwatch.stores.limits import MAX_LEASED_CHARS
from ragwatch.stores.sqlite import schema
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

WORDS = [
    f"{first}{middle}{last}"
    for first in ("ra", "ko", "mil")
    for middle in ("", "ne", "st", "vor", "ti")
    for last in ("n", "per", "ling", "de", "os", "ung", "a", "ert")
]
NOUNS = [a + b for a in WORDS[:40] for b in WORDS[40:]]
SAMPLE_CHARS = 6000
MANY = 2000


def prose(rng: random.Random, chars: int) -> str:
    """Words that recur as those of a language do (Zipf): it compresses like text, not like noise."""
    words: list[str] = []
    length = 0
    while length < chars:
        word = NOUNS[min(int(rng.paretovariate(0.6)), len(NOUNS)) - 1]
        words.append(word)
        length += len(word) + 1
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
        draws = [usual(rng, index) for index in range(start, start + 20)]
        store.admit(an_admission(*draws, cursor=str(start)))
        store.settle([a_verdict(draw, BAD if index % 10 == 0 else GOOD) for index, draw in enumerate(draws)])


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state of `MANY` usual samples, closed."""
    state = tmp_path_factory.mktemp("size")
    with closing(SqliteStore(state)) as store:
        fill(store, MANY)
        store.engine.checkpoint()
    return state


def on_disk(state: Path) -> int:
    """Bytes of the database and its log."""
    return sum(path.stat().st_size for path in state.glob("ragwatch.db*") if not path.name.endswith("-shm"))


@pytest.mark.costly
def test_a_usual_sample_takes_some_three_kilobytes(full: Path) -> None:
    """6 KB of text with its verdict and index entries, over 2,000 rows, is at most 3.5 KB on disk."""
    size = on_disk(full) / MANY
    print(f"\n{size:.0f} bytes on disk for a sample of {SAMPLE_CHARS} characters with its verdict")
    assert size <= 3500


def test_retention_shrinks_the_file_and_failures_outlive(full: Path) -> None:
    """Bytes taken back are bytes on disk, not only pages marked free; successes go first, the oldest of them."""
    with closing(SqliteStore(full)) as store:
        before = on_disk(full)
        allowed = before * 6 // 10
        deleted = store.prune(Retention(1e6, 1e6, allowed), now=AT)
        assert MANY // 2 <= deleted <= MANY * 3 // 4  # deleted words are freed when their index is merged, not at once
        assert on_disk(full) <= allowed + schema.PAGE_BYTES
        assert store.engine._pragma("freelist_count") == 0
        assert len(store.find(Query(stage="generation", limit=MANY))) == MANY // 10
        left = [stored.verdict.at for stored in store.find(Query(stage="none", limit=MANY))]
        assert (len(left), left[0]) == (MANY * 9 // 10 - deleted, AT + MANY - 1)


@pytest.mark.costly
def test_retention_by_age_goes_in_small_steps(store: SqliteStore) -> None:
    """However much is past its age, the log stays short and everything past it goes."""
    fill(store, 1200)
    assert store.prune(Retention(days=1, failing_days=1e6, bytes=1 << 40), now=AT + 1e7) == 1080
    assert store.engine._pragma("freelist_count") == 0
    assert len(store.find(Query(limit=2000))) == 120


def test_a_file_that_cannot_be_shrunk_ends(store: SqliteStore) -> None:
    """A database without a page map keeps its size; pruning it ends all the same."""
    fill(store, 100)
    store.engine._writer.executescript("PRAGMA auto_vacuum=NONE; VACUUM;")
    assert store.prune(Retention(1e-9, 1e-9, 1 << 40), now=AT + 1e7) == 100
    assert store.engine._pragma("freelist_count") > 0


@pytest.mark.costly
def test_a_long_reader_does_not_hold_up_the_writer(store: SqliteStore, tmp_path: Path) -> None:
    """A thousand admissions go on under a reader that holds one instant all the while; pruning does not wait either."""
    fill(store, 20)
    held, done = threading.Event(), threading.Event()
    counts: list[int] = []

    def read_long() -> None:
        with closing(store.engine.pages._connection.cursor()) as cursor:
            cursor.execute("BEGIN")
            counts.append(cursor.execute("SELECT COUNT(*) FROM samples").fetchone()[0])
            held.set()
            done.wait(DEADLINE)
            counts.append(cursor.execute("SELECT COUNT(*) FROM samples").fetchone()[0])
            cursor.execute("COMMIT")

    reader = threading.Thread(target=read_long)
    reader.start()
    try:
        assert held.wait(DEADLINE)
        for index in range(1000):
            store.admit(an_admission(a_draw(f"new{index}"), cursor=str(index)))
        assert store.pending() == {"embedded": 1000}
        assert store.prune(Retention(1, 1, 1 << 40), now=AT + 1e7) == 20
    finally:
        done.set()
        reader.join()
    assert counts == [20, 20]  # it saw its instant all along
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
    fill(store, 200)
    turns: list[None] = []
    store.engine._reader._connection.set_progress_handler(lambda: turns.append(None), 10)
    assert store.window(0, AT + 1e6, 1000) == []
    assert len(turns) < 20
    assert len(store.window(0, AT, 1000)) == 200
    assert len(turns) > 100


@pytest.mark.costly
def test_the_log_stays_short(store: SqliteStore, tmp_path: Path) -> None:
    """After 8 MB of admissions and settlements the log is no longer than what it is cut back to."""
    fill(store, 1000)
    assert (tmp_path / "state" / "ragwatch.db-wal").stat().st_size <= schema.WAL_BYTES // 2
    assert store.engine._writer.execute("PRAGMA journal_size_limit").fetchone() == (schema.WAL_BYTES,)


def test_a_lease_ends_when_texts_are_large_together(store: SqliteStore) -> None:
    """However many draws a judge asks for, it is given a few megabytes at a time, and all of them in the end."""
    store.admit(an_admission(*(a_draw(name, answer="x" * (MAX_LEASED_CHARS // 2)) for name in "abcdefg")))
    taken = [len(store.lease("embedded", 32, now=AT, seconds=60)) for _ in range(4)]
    assert taken == [2, 2, 2, 1]
