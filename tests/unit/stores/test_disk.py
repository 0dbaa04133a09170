"""Network file systems are refused, and a floor of free space stops what comes in before the disk is full."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission

from ragwatch.errors import StoreError
from ragwatch.ports import RecordedEvent, Retention
from ragwatch.stores.sqlite.disk import NETWORKED, advice, file_system, free_bytes, refuse_network
from ragwatch.stores.sqlite.store import Options, SqliteStore, build

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


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/ragwatch", "ext4"),
        ("/srv", "nfs4"),
        ("/srv/state", "nfs4"),
        ("/srvother", "ext4"),
        ("/srv/local/state", "xfs"),
        ("/with space/x", "cifs"),
        ("/bind/x", "fuse.sshfs"),
        ("/covered/x", "tmpfs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    """The longest mount point above a path holds it; of two on one point, the later. Without mounts none is known."""
    assert file_system(Path(path), MOUNTS) == kind
    assert file_system(Path(path), "") is None


def test_networked() -> None:
    """File systems whose locks do not hold across machines; not disks of this one, also behind a layer."""
    networked = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse.glusterfs", "ceph", "lustre")
    local = ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fuse.bindfs")
    assert [kind for kind in (*networked, *local) if NETWORKED.fullmatch(kind)] == list(networked)


def test_a_state_on_a_network_is_refused(tmp_path: Path) -> None:
    """Before anything is written; the advice is a local disk. Where nobody tells the mounts, nothing is refused."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {tmp_path.resolve()} rw - nfs4 host:/x rw\n")
    with pytest.raises(StoreError, match=r"is on a network file system \(nfs4\).*give a local disk"):
        refuse_network(tmp_path / "not" / "yet", mounts)
    refuse_network(Path("/"), mounts)
    refuse_network(tmp_path, tmp_path / "nowhere")


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
        assert store.prune(Retention(1, 1, 1 << 40), now=AT + 1e7) == 2
    with closing(SqliteStore(tmp_path / "state")) as store:
        assert store.admit(an_admission(a_draw("c"), cursor="2")) == 1


def test_a_disk_that_cannot_be_asked_is_told(tmp_path: Path) -> None:
    """A state directory that vanished is an error of the store, not a crash."""
    state = tmp_path / "state"
    with closing(SqliteStore(state)) as store:
        state.rename(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="cannot read the free space"):
            store.admit(an_admission(a_draw("a")))


def test_advice_fits_the_error(tmp_path: Path) -> None:
    """Full, read-only, held and damaged databases ask for different things."""
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as mine:
        mine.execute("CREATE TABLE t (x)")
        mine.execute("PRAGMA max_page_count=1")
        with pytest.raises(sqlite3.OperationalError) as full:
            mine.execute("CREATE TABLE u (x)")
        mine.execute("PRAGMA query_only=ON")
        with pytest.raises(sqlite3.OperationalError) as closed:
            mine.execute("DELETE FROM t")
        with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None, timeout=0)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(sqlite3.OperationalError) as held:
                _locked(tmp_path)
    words = [advice(raised.value).split()[0] for raised in (full, closed, held)]
    assert words == ["free", "it", "another"]
    assert advice(sqlite3.ProgrammingError("no code")).startswith("restore")


def _locked(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "x.db", isolation_level=None, timeout=0)) as third:
        third.execute("BEGIN IMMEDIATE")


def test_a_read_only_database_writes_nothing_and_recovers(store: SqliteStore) -> None:
    """A disk that turns read-only under us is an error with advice; what is there can be read; later all goes on."""
    store.admit(an_admission(a_draw("a"), cursor="1"))
    store.engine._writer.execute("PRAGMA query_only=ON")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"cannot write: .*readonly.*; it must be on a disk that we may write"):
            store.admit(an_admission(a_draw("b"), cursor="2"))
    assert (store.cursors("app"), store.pending()) == ({"log": "1"}, {JUDGE: 1})
    store.engine._writer.execute("PRAGMA query_only=OFF")
    assert store.admit(an_admission(a_draw("b"), cursor="2")) == 1
