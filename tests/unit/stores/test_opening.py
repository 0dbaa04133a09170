"""T22: what is at the place of the database is ours and sound, or the start is refused with advice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from support.kit import AT, a_draw, an_admission

from ragwatch.core.tally import Tally
from ragwatch.errors import StoreError
from ragwatch.ports import RecordedEvent
from ragwatch.stores.sqlite import opening, schema
from ragwatch.stores.sqlite.store import SqliteStore

ADVICE = r"(restore|move ragwatch\.\* away|start from scratch)"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state that was used, closed in good order."""
    with closing(SqliteStore(tmp_path)) as store:
        seen = Counter({(Tally.SEEN, ("app",)): 60})
        store.admit(an_admission(*(a_draw(f"r{index}") for index in range(60)), cursor="60", tallies=seen))
    return tmp_path


@pytest.mark.parametrize("left", [0, 1, 15, 50, 99, 100, 600, schema.PAGE_BYTES, 3 * schema.PAGE_BYTES])
def test_t22_truncated(state: Path, left: int) -> None:
    """A database that was cut anywhere is refused every time, and never begun from zero."""
    path = state / "ragwatch.db"
    path.write_bytes(path.read_bytes()[:left])
    for _ in range(2):
        with pytest.raises(StoreError, match=ADVICE):
            SqliteStore(state)
    assert path.stat().st_size == left


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"\xff" * 100, b"SQLite format 3\x00" + b"\xaa" * 84])
def test_t22_garbage_in_the_header(state: Path, garbage: bytes) -> None:
    """A header that is not ours is refused, and the file left as it is."""
    path = state / "ragwatch.db"
    body = garbage + path.read_bytes()[100:]
    path.write_bytes(body)
    for _ in range(2):
        with pytest.raises(StoreError, match=ADVICE):
            SqliteStore(state)
    assert path.read_bytes() == body


def _flip(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    body = bytearray(path.read_bytes())
    start = (page - 1) * schema.PAGE_BYTES
    body[start : start + 64] = bytes(255 - byte for byte in body[start : start + 64])
    path.write_bytes(body)


@pytest.mark.parametrize("table", ["tallies", "cursors", "samples", "work", "verdicts", "events"])
def test_t22_a_flipped_page(state: Path, table: str) -> None:
    """A page with flipped bits is found at the start, whatever it holds."""
    _flip(state / "ragwatch.db", table)
    with pytest.raises(StoreError, match=r"ragwatch.db(: database disk image is malformed| is damaged: .*); restore"):
        SqliteStore(state)


@pytest.mark.parametrize("table", opening.CHECKED_TABLES)
def test_t22_a_large_database_has_its_books_checked(state: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where looking at every page takes too long, those of offsets, counts and queue are looked at all the same."""
    monkeypatch.setattr(opening, "MAX_FULL_CHECK_BYTES", 0)
    SqliteStore(state).close()
    _flip(state / "ragwatch.db", table)
    with pytest.raises(StoreError, match=ADVICE):
        SqliteStore(state)


@pytest.mark.parametrize("gone", ["ragwatch.db", "everything but the mark", "all but the log"])
def test_t22_a_database_that_is_gone(state: Path, gone: str) -> None:
    """Where a database was made and is no more, counting does not begin again as if nothing had happened."""
    if gone == "all but the log":
        (state / opening.MARKER).unlink()
        (state / "ragwatch.db-wal").write_bytes(b"frames")
    elif gone != "ragwatch.db":
        (state / "ragwatch.lock").unlink()
    (state / "ragwatch.db").unlink()
    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"was created here and is missing or empty; restore it, or start from scratc"
        ):
            SqliteStore(state)
    assert not (state / "ragwatch.db").exists()


def test_starting_from_scratch(state: Path) -> None:
    """The advice works: with everything moved away the state begins from zero."""
    for path in state.glob("ragwatch.*"):
        path.rename(state / f"old.{path.name}")
    with closing(SqliteStore(state)) as store:
        assert (store.tallies(), store.cursors("app")) == ({}, {})


def test_a_state_from_before_the_mark_gets_one(state: Path) -> None:
    """A state without a mark, as earlier versions left it, is opened with everything in it."""
    mark = state / opening.MARKER
    mark.unlink()
    with closing(SqliteStore(state)) as store:
        assert store.cursors("app") == {"log": "60"}
    assert "start from scratch" in mark.read_text()


def test_a_first_start_that_was_cut_short_is_no_state(tmp_path: Path) -> None:
    """A lock and an empty file are what a first start on a full disk may leave: the next one begins."""
    (tmp_path / "ragwatch.lock").write_text("123")
    (tmp_path / "ragwatch.db").touch()
    with closing(SqliteStore(tmp_path)) as store:
        store.record(RecordedEvent(AT, "note", ""))


def test_no_room_for_the_file(tmp_path: Path) -> None:
    """A name that cannot be made a file is told with advice."""
    (tmp_path / "ragwatch.db").symlink_to(tmp_path / "no" / "such" / "folder")
    with pytest.raises(StoreError, match=r"cannot open .*: No such file or directory; it must be on a writable disk"):
        SqliteStore(tmp_path)
