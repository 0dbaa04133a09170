"""The state directory: one process owns it, its disk is local and has room, its database is sound."""

import os
import sqlite3
import stat
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.stores import ONE_DAY

from ragwatch.daemon.process import state_secret
from ragwatch.errors import StoreError
from ragwatch.ports import RecordedEvent
from ragwatch.statistics.tally import Tally
from ragwatch.stores.lock import StateLock, worker_name
from ragwatch.stores.sqlite import opening
from ragwatch.stores.sqlite.opening import MARKER, NETWORKED, TEMPORARY, advice, file_system, free_bytes, refuse_network
from ragwatch.stores.sqlite.store import Options, SqliteStore, build


def mode(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_x17_directory_is_made_for_us_alone(tmp_path: Path) -> None:
    """A missing directory is made with its parents, mode 0700; the lock file has 0600 and names the owner."""
    state = tmp_path / "a" / "b"
    lock = StateLock(state)
    assert (mode(state), mode(state / "ragwatch.lock")) == (0o700, 0o600)
    assert (state / "ragwatch.lock").read_text() == str(os.getpid())
    lock.close()


def test_x17_files_are_ours_alone(tmp_path: Path) -> None:
    """The database and its WAL have mode 0600 from the first byte on."""
    state = tmp_path / "state"
    store = build(Options(), state)
    store.record(RecordedEvent(AT, "note", ""))
    worker_name(state)
    state_secret(state)
    modes = {path.name: mode(path) for path in state.iterdir()}
    assert modes.pop(TEMPORARY) == 0o700
    assert {"ragwatch.db", "ragwatch.db-wal", "ragwatch.lock", MARKER, "ragwatch.worker"} <= set(modes)
    assert set(modes.values()) == {0o600}
    store.close()
    for path in (state / MARKER, state / "ragwatch.worker"):
        path.chmod(0o644)  # as an earlier version made it
    build(Options(), state).close()
    worker_name(state)
    assert {mode(state / MARKER), mode(state / "ragwatch.worker")} == {0o600}


def test_only_an_empty_directory_is_closed_to_others(tmp_path: Path) -> None:
    """`state: /tmp` must not close /tmp to everybody else; a file where it should be is told in one line."""
    for name in ("empty", "used"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
    (tmp_path / "used" / "of_somebody_else").touch()
    for name, closed in (("empty", 0o700), ("used", 0o755)):
        StateLock(tmp_path / name).close()
        assert mode(tmp_path / name) == closed
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot use .*give a directory that this user may write"):
        StateLock(tmp_path / "file")


MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:30 / /srv rw shared:2 - nfs4 files:/export rw,vers=4.2
23 22 8:2 / /srv/local rw shared:3 master:1 - xfs /dev/sdb1 rw
24 21 0:31 / /with\\040space rw - cifs //host/share rw
25 21 0:32 /inner /bind rw - fuse.sshfs me@host:/home rw
26 21 0:33 / /covered rw - nfs host:/old rw
27 21 0:34 / /covered rw - tmpfs tmpfs rw
torn line
28 21 - none
"""


def test_the_file_system_of_a_path() -> None:
    """The longest mount point above a path holds it; of two on one point, the later. Without mounts none is known.

    Networked are those whose locks do not hold across machines; not disks of this one, also behind a layer.
    """
    kinds = {
        "/var/lib/ragwatch": "ext4",
        "/srv": "nfs4",
        "/srv/state": "nfs4",
        "/srvother": "ext4",
        "/srv/local/state": "xfs",
        "/with space/x": "cifs",
        "/bind/x": "fuse.sshfs",
        "/covered/x": "tmpfs",
    }
    assert {path: file_system(Path(path), MOUNTS) for path in kinds} == kinds
    assert file_system(Path("/srv"), "") is None
    networked = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse.glusterfs", "ceph", "lustre")
    local = ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fuse.bindfs")
    assert [kind for kind in (*networked, *local) if NETWORKED.fullmatch(kind)] == list(networked)


def test_a_state_on_a_network_is_refused(tmp_path: Path) -> None:
    """Before anything is written; one whose disk cannot be asked is an error of the store, not a crash."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {tmp_path.resolve()} rw - nfs4 host:/x rw\n")
    with pytest.raises(StoreError, match=r"is on a network file system \(nfs4\).*give a local disk"):
        refuse_network(tmp_path / "not" / "yet", mounts)
    refuse_network(Path("/"), mounts)
    refuse_network(tmp_path, tmp_path / "nowhere")
    state = tmp_path / "state"
    with closing(SqliteStore(state)) as store:
        state.rename(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="cannot read the free space"):
            store.admit(an_admission(a_draw("a")))


def test_below_the_floor_nothing_is_admitted_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Intake stops with the reason; judging, events, reading and forgetting go on; offsets and counts stand."""
    with closing(SqliteStore(tmp_path / "state")) as store:
        store.admit(an_admission(a_draw("a"), a_draw("b"), cursor="1"))
    floor = free_bytes(tmp_path) * 4
    with closing(build(Options(min_free=floor), tmp_path / "state")) as store:
        before = (store.tallies(), store.pending(), store.cursors("app"))
        with pytest.raises(StoreError, match=r"MiB are free on the disk of .*store\.min_free.*free some space"):
            store.admit(an_admission(a_draw("c"), cursor="2"))
        assert (store.tallies(), store.pending(), store.cursors("app")) == before
        draws = store.lease(JUDGE, 9, now=AT, seconds=60)
        assert store.settle([a_verdict(draw) for draw in draws]) == 2
        store.engine._min_free *= 8
        with pytest.raises(StoreError, match=r"store\.min_free"):
            store.settle([])  # the last of the floor is for folding the log and for forgetting
        store.record(RecordedEvent(AT, "note", ""))
        assert store.prune(ONE_DAY, now=AT + 1e7) == 2
    with closing(SqliteStore(tmp_path / "state")) as store:
        assert store.admit(an_admission(a_draw("c"), cursor="2")) == 1


def test_advice_for_a_database_that_another_program_holds(tmp_path: Path) -> None:
    """It is not that of a full disk, nor that of a damaged file."""
    one, other = (closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None, timeout=0)) for _ in range(2))
    with one as holding, other as waiting:
        holding.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as held:
            waiting.execute("BEGIN IMMEDIATE")
    assert [advice(error).split()[0] for error in (held.value, sqlite3.ProgrammingError("x"))] == ["another", "restore"]


ADVICE = r"(restore|move ragwatch\.\* away|start from scratch)"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state that was used, closed in good order."""
    with closing(SqliteStore(tmp_path)) as store:
        seen = Counter({(Tally.SEEN, ("app",)): 60})
        store.admit(an_admission(*(a_draw(f"r{index}") for index in range(60)), cursor="60", tallies=seen))
    return tmp_path


def test_t22_truncated_or_with_garbage_in_the_header(state: Path) -> None:
    """A database that was cut anywhere, or is not ours, is refused every time, left as it is, and never begun anew."""
    path = state / "ragwatch.db"
    whole = path.read_bytes()
    cuts = (0, 1, 15, 50, 99, 100, 600, opening.PAGE_BYTES, 3 * opening.PAGE_BYTES)
    headers = (b"\x00" * 100, b"\xff" * 100, b"SQLite format 3\x00" + b"\xaa" * 84)
    for body in (*(whole[:left] for left in cuts), *(header + whole[len(header) :] for header in headers)):
        path.write_bytes(body)
        for _ in range(2):
            with pytest.raises(StoreError, match=ADVICE):
                SqliteStore(state)
        assert path.read_bytes() == body


def _flip(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    body = bytearray(path.read_bytes())
    start = (page - 1) * opening.PAGE_BYTES
    body[start : start + 64] = bytes(255 - byte for byte in body[start : start + 64])
    path.write_bytes(body)


def test_t22_a_flipped_page(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with flipped bits is found at the start, whatever it holds.

    Where looking at every page takes too long, those of offsets, counts and queue are looked at all the same.
    """
    path = state / "ragwatch.db"
    whole = path.read_bytes()
    found = r"ragwatch.db(: database disk image is malformed| is damaged: .*); restore"
    for table in ("tallies", "cursors", "samples", "work", "verdicts", "events"):
        path.write_bytes(whole)
        _flip(path, table)
        with pytest.raises(StoreError, match=found):
            SqliteStore(state)
    monkeypatch.setattr(opening, "MAX_FULL_CHECK_BYTES", 0)
    path.write_bytes(whole)
    SqliteStore(state).close()
    whole = path.read_bytes()
    for table in opening.CHECKED_TABLES:
        path.write_bytes(whole)
        _flip(path, table)
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
        with pytest.raises(StoreError, match="was created here and is missing or empty; restore it, or start from scr"):
            SqliteStore(state)
    assert not (state / "ragwatch.db").exists()


def test_a_state_from_before_the_mark_gets_one(state: Path) -> None:
    """With everything in it, as earlier versions left it; moved away as advised, the state begins from zero."""
    mark = state / opening.MARKER
    mark.unlink()
    with closing(SqliteStore(state)) as store:
        assert store.cursors("app") == {"log": "60"}
    assert "start from scratch" in mark.read_text()
    for path in state.glob("ragwatch.*"):
        path.rename(state / f"old.{path.name}")
    with closing(SqliteStore(state)) as store:
        assert (store.tallies(), store.cursors("app")) == ({}, {})


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
